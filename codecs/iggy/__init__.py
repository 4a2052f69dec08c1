"""The Iggy dialect: little-endian binary commands, the generation of August 2023."""
