"""Patterns of topic names: `*` stands for any characters, `?` for one."""

from __future__ import annotations

import re


def is_pattern(name: str) -> bool:
    """Whether a name is a pattern; no topic's name is."""
    return "*" in name or "?" in name


def compiled(pattern: str) -> re.Pattern[str]:
    """What matches the names that a pattern means, whole.

    Why: each piece between two stars is taken where it comes first and never again looked for
    further on, which finds the same names and cannot take longer than the product of the lengths.
    """
    first, *rest = [re.escape(piece).replace(r"\?", ".") for piece in pattern.split("*")]
    if not rest:
        return re.compile(rf"{first}\Z")
    *middle, last = rest
    sought = "".join([f"(?>.*?{piece})" for piece in middle if piece])
    return re.compile(rf"{first}{sought}.*{last}\Z")
