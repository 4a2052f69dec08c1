"""What a Cursus server acknowledges: the ACK object of a batch or a PUBLISH, read by a client.

Brokers leave out what is empty, older ones more; what is there is held against the request, since
an acknowledgement of other messages than those that were sent last is not ours to count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from dragoman.codecs.base import ProtocolError
from dragoman.codecs.cursus.fault import address_of, failure_of
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from dragoman.core.batch import RecordBatch


def acknowledged(request: calls.Produce, body: bytes) -> calls.Produced | Failure:
    """The reply to a batch or a PUBLISH; `count` is how many of its records are stored.

    Raises:
        ProtocolError: The body is no acknowledgement, or one of something else.
    """
    partition = request.route if isinstance(request.route, int) else -1
    count = request.batch.count
    if body == b"OK" and request.acks is calls.Acks.NONE:
        return calls.Produced(partition, -1, count)
    try:
        answer: dict[str, Any] = orjson.loads(body)
        status, last_offset = answer["status"], answer.get("last_offset")
    except (ValueError, KeyError, TypeError) as fault:
        raise ProtocolError(f"not an acknowledgement: {fault!r}") from None
    leader = address_of(answer.get("leader"))
    if status not in ("OK", "PARTIAL"):
        return failure_of(str(answer.get("error", "")), leader)
    if type(last_offset) is not int:
        raise ProtocolError("last_offset is not a number")
    _check_producer(request.batch, answer)
    sequence = request.batch.sequence_at(count - 1)
    end = answer.get("seq_end")
    if sequence and type(end) is int and (end or status == "PARTIAL"):
        if end > sequence or (end < sequence and status == "OK"):
            raise ProtocolError(f"an acknowledgement up to {end} of messages up to {sequence}")
        count = _stored(request.batch, end)
    elif status == "PARTIAL":
        unknown = "only a part was stored, and messages without sequences do not tell which"
        return Failure(ErrorCode.INTERNAL, unknown)
    base_offset = max(last_offset - count + 1, -1) if count else -1
    return calls.Produced(partition, base_offset, count, leader=leader)


def _stored(batch: RecordBatch, end: int) -> int:
    """How many of the first records have sequences up to `end`."""
    count = batch.count
    while count and (batch.sequence_at(count - 1) or 0) > end:
        count -= 1
    return count


def _check_producer(batch: RecordBatch, answer: dict[str, Any]) -> None:
    """Holds the producer, where the answer names one, against that of the batch."""
    if len(batch.producers) != 1:
        return
    name = answer.get("producer_id")
    if name and name != batch.producers[0].decode(errors="replace"):
        raise ProtocolError("an acknowledgement of another producer's messages")
    epoch = answer.get("producer_epoch")
    if name and epoch and batch.epochs is None and epoch != (batch.producer_epoch or 0):
        raise ProtocolError("an acknowledgement of another epoch's messages")
