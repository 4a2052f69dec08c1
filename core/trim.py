"""Deleting records below an offset, for whoever asks: a client, or retention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.calls import RecordsDeleted
from dragoman.core.change import Trimmed
from dragoman.core.error import EngineError, ErrorCode

if TYPE_CHECKING:
    from dragoman.core.calls import DeleteRecords
    from dragoman.core.clock import Now
    from dragoman.core.directory import Directory
    from dragoman.core.outcome import Client, Outcome
    from dragoman.core.partition import Partition
    from dragoman.core.waiting import Waiting


class Trimming:
    """Serves DeleteRecords, and moves log starts on."""

    def __init__(self, directory: Directory, waiting: Waiting) -> None:
        self._directory = directory
        self._waiting = waiting

    def delete(self, request: DeleteRecords, client: Client, now: Now) -> Outcome:
        """Deletes what lies below an offset; what is deleted already is deleted well.

        Who reads below it goes on at the new log start.
        """
        topic = self._directory.topic(request.namespace, request.topic)
        partition = self._directory.partition(topic, request.partition)
        before = request.before
        end = partition.high_watermark
        if before == -1:
            before = end
        if not 0 <= before <= end:
            raise EngineError(
                ErrorCode.INVALID_OFFSET,
                f"records are deleted below an offset of 0 to {end}",
                requested=before,
                latest=end,
            )
        self._directory.check_writable()
        self.trim(partition, before)
        state = partition.state
        reply = RecordsDeleted(partition.number, state.log_start_offset)
        return self._waiting.answer(client, reply, partition.start_sequence)

    def trim(self, partition: Partition, log_start_offset: int) -> bool:
        """Moves the log start up to an offset that is visible; returns whether it moved."""
        if log_start_offset <= partition.state.log_start_offset:
            return False
        trimmed = Trimmed(partition.topic_id, partition.number, log_start_offset)
        directory = self._directory
        partition.start_sequence = directory.trims_sequence = directory.apply(trimmed)
        return True
