"""The engine's statistics as Prometheus text, for the binary metrics command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_]")


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def exposition(values: Mapping[str, int | float | str]) -> str:
    """One gauge a figure, by name; a text becomes the label of a gauge that is always 1."""
    lines = []
    for name in sorted(values):
        value = values[name]
        metric = "dragoman_" + _ILLEGAL.sub("_", name)
        if isinstance(value, str):
            lines.append(f"# TYPE {metric}_info gauge\n")
            lines.append(f'{metric}_info{{value="{_escaped(value)}"}} 1\n')
        else:
            lines.append(f"# TYPE {metric} gauge\n")
            lines.append(f"{metric} {value}\n")
    return "".join(lines)
