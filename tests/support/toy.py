"""A dialect of lines, small enough to see through: the gateway's own tests speak it.

p VALUE          produce to topic "toy"            ok OFFSET
f OFFSET         fetch one record                  got VALUE ... | none
w OFFSET MS      the same, waiting                 got VALUE ... | none
s OFFSET IDLE_MS follow                            push VALUE ... , "idle" when silent
e TEXT           answered without the engine       TEXT
n COUNT          the same with COUNT bytes         nnn...
o TEXT           the same, after a thread said so  TEXT
r                refused                           refused UNKNOWN_COMMAND
R                refused, position lost            refused MALFORMED
i TEXT           there, TEXT where the topic "toy" exists | missing
q                hangs up
b                a bug while receiving
B                a bug while sending
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.codecs.base import (
    NOTHING,
    Asked,
    Dialect,
    HungUp,
    IfTopic,
    Limits,
    Offload,
    Refused,
    Sent,
    no_options,
)
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    Answer,
    Answered,
    Fetch,
    Fetched,
    Follow,
    Followed,
    Produce,
    Produced,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure

if TYPE_CHECKING:
    from dragoman.codecs.base import Buffer, Facts, Heard
    from dragoman.core.calls import Reply


class ToyCodec:
    """The server's half of the toy dialect."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._held = b""

    def receive(self, data: Buffer) -> list[Heard]:
        *lines, self._held = (self._held + bytes(data)).split(b"\n")
        return [self._heard(line) for line in lines]

    def _heard(self, line: bytes) -> Heard:
        word, _, rest = line.partition(b" ")
        numbers = [int(part) for part in rest.split()] if word in (b"f", b"w", b"s", b"n") else []
        match word:
            case b"p":
                return Asked("p", Produce("toy", one_record(rest), 0, create_partitions=1))
            case b"f":
                return Asked("f", Fetch("toy", 0, numbers[0], create_partitions=1))
            case b"w":
                wait_us = numbers[1] * 1000
                return Asked("f", Fetch("toy", 0, numbers[0], wait_us=wait_us, create_partitions=1))
            case b"s":
                return Asked("s", Follow("toy", 0, numbers[0], idle_us=numbers[1] * 1000))
            case b"e":
                return Asked("e", Answer(rest))
            case b"n":
                return Asked("e", Answer(b"n" * numbers[0]))
            case b"o":
                return Offload(lambda: [Asked("e", Answer(rest))])
            case b"i":
                there, missing = Answer(b"there"), Answer(b"missing")
                after = Asked("e", Answer(rest))
                return IfTopic("toy", "default", [Asked("e", there), after], [Asked("e", missing)])
            case b"R":
                return Refused("r", Failure(ErrorCode.MALFORMED, "position lost"), fatal=True)
            case b"q":
                return HungUp("asked to")
            case b"b":
                raise RuntimeError("a bug in receive")
            case b"B":
                return Asked("B", Answer(b""))
            case _:
                return Refused("r", Failure(ErrorCode.UNKNOWN_COMMAND, "no such word"))

    def wanted(self) -> int:
        return 0

    def held(self) -> int:
        return len(self._held)

    def send(self, tag: Any, reply: Reply) -> Sent:
        match reply:
            case Produced():
                return Sent((b"ok %d\n" % reply.base_offset,))
            case Fetched():
                if not reply.slices:
                    return Sent((b"none\n",))
                return Sent((b"got ", b" ".join(values(reply)), b"\n"))
            case Followed():
                return Sent((b"push ", b" ".join(values(reply)), b"\n"))
            case Answered(payload):
                if tag == "B":
                    raise RuntimeError("a bug in send")
                assert isinstance(payload, bytes)
                return Sent((payload, b"\n"))
            case _:
                raise AssertionError(f"the toy never asks for {reply!r}")

    def send_failure(self, tag: Any, failure: Failure) -> Sent:
        return Sent((f"refused {failure.code.name}\n".encode(),))

    def send_idle(self, tag: Any) -> Sent:
        return Sent((b"idle\n",)) if tag == "s" else NOTHING


def one_record(value: bytes) -> RecordBatch:
    """A batch of one record."""
    return RecordBatch(1, VarColumn.single(value), origin=Origin.FOREIGN)


def values(read: Fetched | Followed) -> list[bytes]:
    """The values of what was read."""
    return [
        record.value or b""
        for piece in read.slices
        for record in piece.batch.records(piece.first, piece.last)
    ]


def _no_speaker() -> Any:
    raise AssertionError("tests speak the toy dialect by hand")


TOY = Dialect(
    name="toy",
    port=0,
    limits=Limits(1 << 20, 1 << 20),
    codec=ToyCodec,
    speaker=_no_speaker,
    errors={},
    options=no_options,
)
