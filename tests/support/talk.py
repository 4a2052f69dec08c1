"""A client's speaker against a server's codec without sockets: core's words in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.codecs.registry import dialect
from dragoman.core.batch import Origin, Record, RecordBatch
from dragoman.core.calls import ROUND_ROBIN, Fetch, Fetched, Produce, Produced
from dragoman.core.column import VarColumn
from support.conversation import Conversation, Exchange

if TYPE_CHECKING:
    from dragoman.codecs.base import Speaker
    from dragoman.core.calls import Reply, Request
    from dragoman.core.error import Failure


class Talk:
    """One client of a dialect on an exchange.

    Args:
        name: The dialect.
        speaker: Another speaker of the same dialect than its usual one.
    """

    def __init__(self, name: str, exchange: Exchange, speaker: Speaker | None = None) -> None:
        self.conversation = Conversation(name, exchange=exchange)
        self.speaker = dialect(name).speaker() if speaker is None else speaker

    def ask(self, request: Request) -> Reply | Failure:
        """Asks one request; returns its one reply."""
        sent = b"".join(map(bytes, self.speaker.ask(request)))
        told = self.speaker.receive(self.conversation.send(sent))
        assert len(told) == 1, f"one request, {len(told)} replies"
        return told[0].reply

    def produce(self, topic: str, value: bytes, partition: int = 0) -> Produced:
        """Writes one record; V1 alone leaves the partition to the server."""
        batch = RecordBatch(1, VarColumn.single(value), origin=Origin.NONE)
        chooses = self.conversation.dialect.name != "v1"
        reply = self.ask(Produce(topic, batch, partition if chooses else ROUND_ROBIN))
        assert isinstance(reply, Produced), reply
        return reply

    def read_all(self, topic: str, partition: int = 0) -> list[Record]:
        """Every visible record, by as many fetches as it takes."""
        records: list[Record] = []
        offset = 0
        while True:
            reply = self.ask(Fetch(topic, partition, offset))
            assert isinstance(reply, Fetched), reply
            if not reply.slices:
                return records
            for piece in reply.slices:
                records.extend(piece.batch.records(piece.first, piece.last))
            assert reply.next_offset > offset, "a fetch with records moves on"
            offset = reply.next_offset
