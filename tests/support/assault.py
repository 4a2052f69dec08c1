"""Many connections of one dialect, one hostile input each, on servers that are watched.

What a server may not do whatever it is sent: raise (a "fault" line), answer something that is not
its dialect, leave a whole frame unanswered, take long, keep memory, or refuse an honest client.
"""

from __future__ import annotations

import resource
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from dragoman.core import calls
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.column import VarColumn
from dragoman.core.name import DEFAULT_NAMESPACE
from support.conversation import Conversation, Exchange
from support.mutation import corpus, frames_of
from support.talk import Talk
from support.wellformed import REPLIES

if TYPE_CHECKING:
    from collections.abc import Iterator

INPUTS_OF_ONE_SERVER = 250
"""Then a fresh one: what was created piles up otherwise."""
INPUTS_BETWEEN_HONEST_CLIENTS = 25
ADDRESS_SPACE_BYTES = 512 * 1024 * 1024
"""How much more a run may ask the system for: far less than a length or count can declare."""
LONGEST_POLL_S = 301


class Assault:
    """Plays inputs of one dialect.

    Attributes:
        inputs: How many were played.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs = 0
        self._exchange = self._fresh()

    def play(self, data: bytes, *, whole: bool = False) -> None:
        """Sends an input on a connection of its own, and checks what came back.

        Args:
            whole: Its frames are whole, so that each has to be answered.
        """
        self.inputs += 1
        if self.inputs % INPUTS_OF_ONE_SERVER == 0:
            self._exchange = self._fresh()
        exchange = self._exchange
        connection = Conversation(self.name, exchange=exchange)
        heard = connection.send(data)
        session = connection.session
        if whole and not connection.closed and not session.waiting and not session.follows:
            replies = self._count(heard, data, closed=False)
            assert replies == len(frames_of(self.name, data)), f"unanswered: {data[:300]!r}"
        if self.inputs % INPUTS_BETWEEN_HONEST_CLIENTS == 0:
            heard += connection.hang_up()
            heard += connection.advance(LONGEST_POLL_S)
            assert connection.closed, f"still open after its end: {data[:300]!r}"
            self._honest_client()
        else:
            session.gone(exchange.now)
        self._count(heard, data, closed=connection.closed)
        exchange.sessions.remove(session)

    def _count(self, heard: bytes, data: bytes, *, closed: bool) -> int:
        """How many replies these are; none if they are none of this dialect."""
        if closed and self.name == "cursus":
            # The document's CONSUME sends bare payloads before it closes: the framing is all
            # that can be asserted.
            return len(frames_of(self.name, heard))
        try:
            return REPLIES[self.name](heard)
        except Exception as reason:
            raise AssertionError(
                f"{reason!r}: {heard[:300]!r} is no answer to {data[:300]!r}"
            ) from None

    def _honest_client(self) -> None:
        """A valid exchange on a fresh connection: a record in, the same record out."""
        exchange = self._exchange
        talk = Talk(self.name, exchange)
        topic, home, number = f"honest-{self.inputs}", DEFAULT_NAMESPACE, 0
        route: calls.Route = 0
        if self.name == "iggy":
            # Numbers of this wire are the client's to choose; an attack took any of them.
            home, number = topic, 1 << 31 | self.inputs
            created = talk.ask(calls.CreateNamespace(home, number))
            assert isinstance(created, calls.NamespaceCreated), created
        if self.name == "v1":
            route = calls.ROUND_ROBIN
        else:
            exists = calls.IfExists.GROW if self.name == "cursus" else calls.IfExists.REFUSE
            create = calls.CreateTopic(topic, 1, home, number, if_exists=exists)
            created = talk.ask(create)
            assert isinstance(created, calls.TopicCreated), created
        batch = RecordBatch(1, VarColumn.single(b"value"), origin=Origin.NONE)
        produced = talk.ask(calls.Produce(topic, batch, route, home))
        assert isinstance(produced, calls.Produced), produced
        fetched = talk.ask(calls.Fetch(topic, max(produced.partition, 0), 0, home))
        assert isinstance(fetched, calls.Fetched), fetched
        (piece,) = fetched.slices
        assert [record.value for record in piece.batch.records(0, 1)] == [b"value"]
        talk.conversation.session.gone(exchange.now)
        exchange.sessions.remove(talk.conversation.session)

    def _fresh(self) -> Exchange:
        """A server on which the requests of the corpus mostly succeed."""
        exchange = Exchange()
        for frame in corpus(self.name)[:40]:
            connection = Conversation(self.name, exchange=exchange)
            connection.send(frame)
            connection.session.gone(exchange.now)
            exchange.sessions.remove(connection.session)
        return exchange


@contextmanager
def assaulting(name: str) -> Iterator[Assault]:
    """Watches an assault: faults and memory are checked when it is over.

    The address space is bounded meanwhile, so that who allocates what a peer declares fails.
    """
    before = resource.getrlimit(resource.RLIMIT_AS)
    room = _status("VmSize") + ADDRESS_SPACE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (room, before[1]))
    try:
        with capture_logs() as logs:
            assault = Assault(name)
            yield assault
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    faults = [line for line in logs if line["log_level"] == "error" or line["event"] == "fault"]
    for fault in faults:
        raised = fault.get("exc_info")
        if isinstance(raised, BaseException):
            raise AssertionError(f"one of {len(faults)} faults") from raised
    assert not faults, faults[0]


def _status(field: str) -> int:
    """Bytes that the system says this process has; 0 where it does not say."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return 1 << 46
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if field in line)
