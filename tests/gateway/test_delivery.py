from __future__ import annotations

from dragoman.gateway.delivery import deliver
from support.conversation import Conversation
from support.toy import TOY


def test_every_session_that_became_ready_is_told_and_returned_once() -> None:
    writer = Conversation(TOY)
    writer.send(b"p a\n")
    readers = [writer.another(TOY), writer.another(TOY)]
    for reader in readers:
        reader.session.received(b"w 1 60000\n", writer.now)
    writer.session.received(b"p b\np c\n", writer.now)
    flush = writer.engine.take_flush()
    assert flush is not None
    flush.run()
    writer.engine.flushed(flush, None, writer.now)
    told = deliver(writer.engine, writer.now)
    assert {id(session) for session in told} == {id(one.session) for one in [writer, *readers]}
    assert len(told) == 3
    assert [reader.session.outbox.take() for reader in readers] == [b"got b c\n"] * 2
    assert deliver(writer.engine, writer.now) == []
