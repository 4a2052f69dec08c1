"""0xBA7C batches: which layout a frame has, what a produce asks, and the heads of reply batches.

The code's layouts and the document's are told apart by what follows the topic: a 32-bit partition
has a high half of 0000 (FFFF for a negative one), a text partition a length of 1 to 10 and digits.
The code's layouts have no mark of their own; the newest in which the messages fill the frame
exactly is it.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from dragoman.codecs.base import Asked, Refused
from dragoman.codecs.cursus.columns import headers_of, to_batch
from dragoman.codecs.cursus.publish import ACKS
from dragoman.codecs.cursus.translate import AckTag, Style, printable
from dragoman.codecs.cursus.wire import COUNT_MAX
from dragoman.codecs.kernels import cursus_document, cursus_l1, cursus_l2, cursus_l3
from dragoman.codecs.malformed import Malformed
from dragoman.core import calls
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from dragoman.codecs.base import Heard
    from dragoman.core.batch import RecordBatch

_U16 = Struct(">H").unpack_from
_NO_ACKS = calls.Acks.NONE
_DOCUMENT, _L1 = Style.DOCUMENT, Style.L1
_TEXT_PARTITION = re.compile(rb"-?[0-9]{1,10}")


class BadBatch(Exception):
    """A batch that cannot be taken; never leaves the dialect.

    Args:
        wording: The exact words of the refusal.
    """

    def __init__(self, wording: str, code: ErrorCode = ErrorCode.MALFORMED) -> None:
        super().__init__(wording)
        self.wording = wording
        self.code = code


def is_document(data: bytes, at: int, end: int) -> bool:
    """Whether a batch's head has the document's layout."""
    if at + 6 > end:
        return False
    place = at + 4 + _U16(data, at + 2)[0]
    if place + 2 > end:
        return False
    (size,) = _U16(data, place)
    if not 0 < size <= 10 or place + 4 + size > end:
        return False
    partition = data[place + 2 : place + 2 + size]
    # A 32-bit partition of 77824 and more would begin like this too: then the text length of acks
    # decides, which is at most 3.
    return _TEXT_PARTITION.fullmatch(partition) is not None and data[place + 2 + size] == 0


class Decoded(NamedTuple):
    """A batch in any layout."""

    topic: bytes
    partition: int
    acks: bytes
    idempotent: bool
    batch: RecordBatch


def decode(data: bytes, at: int, end: int) -> Decoded:
    """Takes a batch in any layout apart.

    Raises:
        BadBatch: It is in none, or has too many messages.
    """
    if is_document(data, at, end):
        try:
            document, records_at = cursus_document.decode_head(data, at, end)
            _check_count(document.count)
            columns = cursus_document.decode_records(data, records_at, end, document.count)
            batch = to_batch(columns, headers_of(columns))
            partition = int(document.partition)
            return Decoded(document.topic, partition, document.acks, document.idempotent, batch)
        except Malformed as malformed:
            raise _undecodable(malformed, at) from None
    try:
        head, records_at = cursus_l3.decode_head(data, at, end)
        _check_count(head.count)
        columns_l3 = cursus_l3.decode_records(data, records_at, end, head.count)
        batch = to_batch(columns_l3, headers_of(columns_l3))
        return Decoded(head.topic, head.partition, head.acks, head.idempotent, batch)
    except (Malformed, BadBatch) as newest:
        return _decode_older(data, at, end, newest)


def _decode_older(data: bytes, at: int, end: int, newest: Malformed | BadBatch) -> Decoded:
    """The batch in L2 or L1; where it is neither, the refusal is that of the newest layout."""
    for kernel in (cursus_l2, cursus_l1):
        try:
            head, records_at = kernel.decode_head(data, at, end)
            _check_count(head.count)
            columns = kernel.decode_records(data, records_at, end, head.count)
        except (Malformed, BadBatch):
            continue
        idempotent = isinstance(head, cursus_l2.Head) and head.idempotent
        return Decoded(head.topic, head.partition, head.acks, idempotent, to_batch(columns, None))
    if isinstance(newest, BadBatch):
        raise newest
    raise _undecodable(newest, at)


def _undecodable(malformed: Malformed, begin: int) -> BadBatch:
    where = f"{malformed.path or 'the end'} at byte {malformed.at - begin}"
    return BadBatch(f'batch_decode_failed reason="{where} {malformed.reason}"')


def _check_count(count: int) -> None:
    if count > COUNT_MAX:
        raise BadBatch(f'batch_decode_failed reason="{count} messages, {COUNT_MAX} are allowed"')


def ask(data: bytes, at: int, end: int, create_partitions: int) -> Heard:
    """The produce that a batch asks for."""
    tag = AckTag()
    try:
        topic, partition, acks, idempotent, batch = decode(data, at, end)
        tag.partition = partition
        try:
            tag.topic = topic.decode()
        except UnicodeDecodeError:
            reason = 'invalid_name reason="a topic is UTF-8"'
            raise BadBatch(reason, ErrorCode.INVALID_NAME) from None
        meant = ACKS.get(acks)
        if meant is None:
            shown = printable(acks[:16].decode(errors="replace"))
            raise BadBatch(f"invalid_acks value={shown}")
        tag.droppable = meant is _NO_ACKS
        last = batch.count - 1
        if last < 0:
            return Refused(tag, Failure(ErrorCode.EMPTY_BATCH))
        if batch.producers:
            tag.producer = batch.producer_at(last) or b""
        tag.epoch = batch.epoch_at(last) or 0
        tag.seq_start = tag.seq_end = batch.sequence_at(0) or 0
        if last:
            tag.seq_end = batch.sequence_at(last) or 0
        namespace, name = split_flat(tag.topic)
        request = calls.Produce(
            name, batch, partition, namespace, meant, create_partitions, idempotent
        )
    except BadBatch as bad:
        tag.wording = bad.wording
        return Refused(tag, Failure(bad.code, bad.wording.partition(" ")[0]))
    return Asked(tag, request)


def head_of(
    topic: bytes, partition: int, seq_start: int, seq_end: int, count: int, style: Style
) -> bytes:
    """The head of a reply batch; acks are always `1` and it is never marked idempotent."""
    if style is _DOCUMENT:
        place = str(partition).encode()
        return cursus_document.encode_head(topic, place, b"1", False, seq_start, seq_end, count)
    if style is _L1:
        return cursus_l1.encode_head(topic, partition, b"1", seq_start, seq_end, count)
    return cursus_l3.encode_head(topic, partition, b"1", False, seq_start, seq_end, count)
