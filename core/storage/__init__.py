"""The one place that touches files: journal, segments, catalog, checkpoints and recovery."""
