"""Committed offsets: who may store what, and what is stored.

Core stores the next offset to read as a signed 64-bit number and takes any; what a dialect itself
forbids it asks to be checked (`monotonic`, `within_log`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import ASSIGNED, OffsetCommitted, OffsetFetched, OffsetKind
from dragoman.core.change import OffsetPut
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.name import NAME_BYTES_MAX

if TYPE_CHECKING:
    from dragoman.core.calls import CommitOffset, FetchOffset
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.groups.coordinator import Coordinator
    from dragoman.core.options import EngineOptions
    from dragoman.core.outcome import Client, Outcome
    from dragoman.core.partition import Partition, Topic
    from dragoman.core.waiting import Waiting

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


def checked_group(group: str) -> str:
    """Returns the group's name, or refuses it.

    Groups are never paths and no dialect nests them, so any printable text of 1-255 bytes will do.

    Raises:
        EngineError: INVALID_NAME.
    """
    if not group.isprintable() or not 0 < len(group.encode()) <= NAME_BYTES_MAX:
        raise EngineError(
            ErrorCode.INVALID_NAME, f"a group name is 1-{NAME_BYTES_MAX} bytes of printable text"
        )
    return group


class Offsets:
    """Serves CommitOffset and FetchOffset, and the commits of fetches and follows."""

    def __init__(
        self,
        options: EngineOptions,
        directory: Directory,
        coordinator: Coordinator,
        waiting: Waiting,
    ) -> None:
        self._options = options
        self._directory = directory
        self._coordinator = coordinator
        self._waiting = waiting
        self.commits = 0
        self.unfenced_commits = 0

    def commit(self, request: CommitOffset, client: Client, now: Now) -> Outcome:
        """Stores all offsets of the request, or none."""
        coordinator = self._coordinator
        generation_sequence = 0
        if request.member:
            generation_sequence = coordinator.check_commit(request, now)
        directory = self._directory
        topic = directory.topic(request.namespace, request.topic)
        group = self._group(topic, request)
        self.check_group(topic, request.kind, group)
        offsets = request.offsets
        is_fenced = bool(request.member)
        is_assigned = len(offsets) == 1 and offsets[0][0] == ASSIGNED
        if is_assigned and not is_fenced and request.kind is OffsetKind.GROUP:
            number = coordinator.current(topic, group, client, now, to_commit=True)
            offsets = ((number, offsets[0][1]),)
            is_fenced = True
        key = (request.kind.value, group)
        committed = topic.state.offsets.get(key)
        for number, offset in offsets:
            partition = directory.partition(topic, number)
            if not _INT64_MIN <= offset <= _INT64_MAX:
                raise EngineError(ErrorCode.INVALID_OFFSET, "an offset is a signed 64-bit number")
            if request.within_log and not 0 <= offset <= partition.high_watermark:
                raise EngineError(
                    ErrorCode.INVALID_OFFSET,
                    "the offset is beyond the end of the partition",
                    requested=offset,
                    latest=partition.high_watermark,
                )
            if request.monotonic and committed is not None:
                current = committed.get(number)
                if current is not None and offset < current:
                    raise EngineError(
                        ErrorCode.OFFSET_REGRESSION,
                        f"offset {offset} is below the committed {current}",
                        current=current,
                        requested=offset,
                        partition=number,
                    )
        directory.check_writable()
        if not is_fenced and request.kind is OffsetKind.GROUP:
            self.unfenced_commits += coordinator.is_active(topic, group, now)
        for number, offset in offsets:
            self.put(topic, request.kind, group, number, offset)
        return self._waiting.answer(
            client,
            OffsetCommitted(len(offsets)),
            max(topic.offset_sequences.get(key, 0), topic.sequence, generation_sequence),
        )

    def fetch(self, request: FetchOffset, client: Client, now: Now) -> Outcome:
        """Reads a committed offset."""
        directory = self._directory
        topic = directory.topic(request.namespace, request.topic)
        group = self._group(topic, request)
        number = request.partition
        if number == ASSIGNED and request.kind is OffsetKind.GROUP:
            number = self._coordinator.current(topic, group, client, now, to_commit=False)
        partition = directory.partition(topic, number)
        offset = self.committed(partition, request.kind, group)
        reply = OffsetFetched(partition.number, offset, partition.high_watermark)
        sequence = max(self.revealed_by(topic, request.kind, group), topic.sequence)
        return self._waiting.answer(client, reply, sequence)

    def _group(self, topic: Topic, request: CommitOffset | FetchOffset) -> str:
        """The name of whose offsets they are."""
        number = request.group_number
        if not number:
            return request.group
        if request.kind is OffsetKind.GROUP:
            return self._coordinator.name_of(topic, number)
        return str(number)

    def check_group(self, topic: Topic, kind: OffsetKind, group: str) -> None:
        """Refuses to commit for a group whose name is not legal, or for one group too many.

        Raises:
            EngineError: INVALID_NAME, LIMIT_REACHED.
        """
        checked_group(group)
        is_new = (kind.value, group) not in topic.state.offsets
        if is_new and self._directory.offset_groups >= self._options.groups_max:
            raise EngineError(
                ErrorCode.LIMIT_REACHED, "there are too many groups with committed offsets"
            )

    def committed(self, partition: Partition, kind: OffsetKind, group: str) -> int | None:
        """The next offset to read, or None where nothing was ever committed."""
        offsets = partition.topic.state.offsets.get((kind.value, group))
        return None if offsets is None else offsets.get(partition.number)

    def put(self, topic: Topic, kind: OffsetKind, group: str, partition: int, offset: int) -> int:
        """Stores an offset that was checked; returns the sequence that makes it durable."""
        key = (kind.value, group)
        offsets = topic.state.offsets.get(key)
        self.commits += 1
        if offsets is not None and offsets.get(partition) == offset:
            return topic.offset_sequences.get(key, 0)
        directory = self._directory
        if offsets is None:
            directory.offset_groups += 1
        change = OffsetPut(topic.state.topic_id, kind.value, group, partition, offset)
        sequence = directory.apply(change)
        topic.offset_sequences[key] = directory.offsets_sequence = sequence
        return sequence

    def revealed_by(self, topic: Topic, kind: OffsetKind, group: str) -> int:
        """The sequence of the newest offset that this group committed."""
        return topic.offset_sequences.get((kind.value, group), 0)
