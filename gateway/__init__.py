"""The only place with Trio: listeners, lanes, sessions, configuration and the running server."""
