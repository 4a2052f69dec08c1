"""The `dragoman` command: reads its arguments, calls the others, holds no logic."""
