"""How a topic's partitions are dealt to a group's members: two pure functions.

A share is a `range`: it costs the same for three partitions and for a hundred thousand, and whether
it holds a partition is one comparison. Members are known here by their place among the members
sorted by the byte order of their ids.
"""

from __future__ import annotations

from dragoman.core.calls import Assignor


def round_robin(place: int, members: int, partitions: int) -> range:
    """Partition p goes to member p mod n."""
    return range(place, partitions, members)


def contiguous(place: int, members: int, partitions: int) -> range:
    """Neighbouring partitions; the first P mod n members have one more."""
    each, more = divmod(partitions, members)
    first = place * each + min(place, more)
    return range(first, first + each + (place < more))


def shares(assignor: Assignor, members: int, partitions: int) -> list[range]:
    """What each member owns, in the order of the sorted members."""
    share = round_robin if assignor is Assignor.ROUND_ROBIN else contiguous
    return [share(place, members, partitions) for place in range(members)]
