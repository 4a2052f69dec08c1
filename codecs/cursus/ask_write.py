"""Commands that write: PUBLISH in both forms, and the document's direct message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.codecs.base import Asked, Refused
from dragoman.codecs.cursus.argument import (
    INT32,
    INT64,
    Bad,
    decoded,
    flag,
    number_in,
    shown,
    topic_of,
)
from dragoman.codecs.cursus.legacy import producer_digest
from dragoman.codecs.cursus.publish import ACKS, one_record
from dragoman.codecs.cursus.translate import AckTag, Tag
from dragoman.core import calls
from dragoman.core.dedupe import HASHED_HERE_MAX, digest_of
from dragoman.core.error import Failure
from dragoman.core.name import split_flat
from dragoman.core.route import fnv1a_64

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.codecs.base import Heard
    from dragoman.codecs.cursus.argument import Context, Handler
    from dragoman.codecs.cursus.command import Command

_NO_ACKS: Final = calls.Acks.NONE
KEY_BYTES_MAX: Final = 4096
"""The longest key of a PUBLISH: it is hashed byte by byte."""


def direct(context: Context, topic: bytes, payload: bytes) -> Heard:
    """A message in an envelope that is not a command: it is published to the topic."""
    tag = Tag("PUBLISH", positional=True)
    try:
        tag.topic = decoded(topic, "topic")
    except Bad as bad:
        tag.wording = bad.wording
        return Refused(tag, Failure(bad.code, "invalid_name"))
    namespace, name = split_flat(tag.topic)
    request = calls.Produce(
        name,
        one_record(payload),
        namespace=namespace,
        create_partitions=context.create_partitions,
    )
    return Asked(tag, _once(request, payload))


def _publish(context: Context, command: Command, tag: Tag) -> Heard:
    values = command.values
    namespace, topic = topic_of(command, tag)
    if (message := values.get("message")) is None:
        raise Bad("missing_message command=PUBLISH")
    if command.positional:
        record = one_record(message)
        create = context.create_partitions
        request = calls.Produce(topic, record, namespace=namespace, create_partitions=create)
        return Asked(tag, _once(request, message))
    if not (producer := values.get("producerId", b"")):
        raise Bad("missing_producer_id command=PUBLISH")
    acks = ACKS.get(values.get("acks", b""))
    if acks is None:
        raise Bad(f"invalid_acks value={shown(values['acks'])}")
    sequence = epoch = 0
    if "seqNum" in values:
        sequence = number_in(values["seqNum"], (0, (1 << 64) - 1), "invalid_seq_num")
    if "epoch" in values:
        epoch = number_in(values["epoch"], INT64, "invalid_epoch")
    key = values.get("key", b"")
    if len(key) > KEY_BYTES_MAX:
        raise Bad(f"invalid_key bytes={len(key)} limit={KEY_BYTES_MAX}")
    route: calls.Route = calls.ROUND_ROBIN
    if "partition" in values:
        route = number_in(values["partition"], INT32, "invalid_partition")
    elif key:
        route = calls.ByHash(fnv1a_64(key))
    batch = one_record(message, key, producer=producer, epoch=epoch, sequence=sequence)
    partition = route if isinstance(route, int) else 0
    ack = AckTag(tag.topic, partition, producer, epoch, sequence, sequence, is_object=False)
    ack.droppable = acks is _NO_ACKS
    idempotent = "isIdempotent" in values and flag(values, "isIdempotent")
    request = calls.Produce(
        topic, batch, route, namespace, acks, context.create_partitions, idempotent
    )
    if context.is_legacy and sequence:
        request.dedupe = True
        request.digest = producer_digest(producer, sequence)
    return Asked(ack, request)


def _once(request: calls.Produce, payload: bytes) -> calls.Produce:
    """A publish of the document: the topic's window of payloads applies. What is long is read in a
    thread, and its digest made there."""
    request.dedupe = True
    if len(payload) > HASHED_HERE_MAX:
        request.digest = digest_of(payload)
    return request


WRITING: Final[Mapping[str, Handler]] = {
    "PUBLISH": _publish,
}
"""Which function asks what each of these commands means."""
