"""The numbers by which numbering dialects know namespaces and topics."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER

if TYPE_CHECKING:
    from collections.abc import Container

TOPIC_NUMBER_MAX = (1 << 32) - 1
NAMESPACE_NUMBER_MAX = DEFAULT_NAMESPACE_NUMBER - 1


def next_number(used: int, taken: Container[int], number_max: int) -> int:
    """The number after the highest ever given.

    Only where a client itself chose the very last one does the search begin again from 1, so that
    one request cannot stop all later ones.
    """
    if used < number_max:
        return used + 1
    return next(number for number in count(1) if number not in taken)
