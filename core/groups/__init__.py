"""Consumer groups: one coordinator for members of all dialects."""
