"""The event store: streams of events in ordinary records."""
