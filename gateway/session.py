"""One connection's life between a codec and the engine, without I/O: bytes in, bytes out.

The session is the only place where a dialect meets the engine. It keeps the queue of requests and
releases replies in the order in which they were asked, however their outcomes complete; pushes of a
Follow go between whole replies. A carrier (`gateway.lane`, a test) feeds it, sends its outbox and
asks `wants_read`.

An exception out of a codec or the engine is our own bug: it is logged with the session's number and
ends this connection only. It never leaves the session.
"""

from __future__ import annotations

from collections import deque
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, assert_never

import structlog

from dragoman.codecs.base import Asked, HungUp, IfTopic, Offload, Refused, foreign_protocol
from dragoman.core.calls import Fetch, FetchMatching, Follow, Produce, ProduceMany
from dragoman.core.error import Failure
from dragoman.core.event import AppendEvent, ReadEvents, ReadSnapshot
from dragoman.core.outcome import Outcome
from dragoman.gateway.carrier import NOBODY
from dragoman.gateway.following import Following
from dragoman.gateway.meter import Meter
from dragoman.gateway.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.codecs.base import Buffer, Codec, Heard, Sent
    from dragoman.core.clock import Now
    from dragoman.core.interface import LogEngine
    from dragoman.core.outcome import Client

REQUESTS_WAITING_MAX = 1024
"""Requests of one connection that may wait for their outcome before reading stops."""
REPLY_BYTES_WAITING_MAX = 1 << 20
"""Bytes of one connection that may wait to be sent before reading, releasing and pushing stop."""

REPLY_BYTES_KEPT = REPLY_BYTES_WAITING_MAX // 2
"""Once so many bytes wait, replies whose tag is `droppable` are left out, so that a peer that never
reads what it did not ask to be told is still heard."""
HEARING_NS_MAX = 5_000_000
"""How long a connection is heard at a time; what it asked beyond that waits for its next turn."""
_READS = frozenset({Fetch, FetchMatching, Follow, ReadEvents, ReadSnapshot})
"""Requests whose answer depends on what is visible when they are served."""
_WRITES = frozenset({Produce, ProduceMany, AppendEvent})
"""Requests that bring records."""

_log = structlog.get_logger("dragoman.session")


class Session:
    """Drives one codec with one engine.

    Args:
        codec: Made for this connection.
        client: The connection as the engine knows it; its number is the session's id in logs.
        meter: What its listener counts.

    Attributes:
        outbox: What the carrier has to send.
        closing: Once the outbox is sent the carrier closes the connection; nothing more comes.
        offload: A call that the carrier takes (`take_offload`), runs in a thread and answers with
            `offloaded`; or None.
        listening: The peer may be heard as far as its requests go; kept up to date, because the
            lane looks at it twice a request.
        held: Something stopped for want of room in the outbox: `advance` once it is empty.
        paused: Hearing stopped because others wait: `resume` after their turn.
        produces: It has sent records; such connections rest while the engine is overloaded.
        reads: It has asked for records.
        arrived: Bytes of the peer that are not served yet: the half of a frame, or what waits for
            its turn or for a thread.
        wanted: The codec's hint for the size of the next read, where something has arrived.
        carrier: Whoever moves its bytes; set and read by that carrier alone.
        requests, refusals: Counters; `gone` hands the requests to the meter.
    """

    __slots__ = (
        "_away",
        "_backlog",
        "_codec",
        "_deaf",
        "_engine",
        "_first",
        "_following",
        "_follows_asked",
        "_held",
        "_over",
        "_queue",
        "_received_bytes",
        "arrived",
        "carrier",
        "client",
        "closing",
        "held",
        "listening",
        "meter",
        "offload",
        "outbox",
        "paused",
        "produces",
        "reads",
        "refusals",
        "requests",
        "wanted",
    )

    def __init__(
        self, codec: Codec, engine: LogEngine, client: Client, now: Now, meter: Meter | None = None
    ) -> None:
        self._codec = codec
        self._engine = engine
        self.client = client
        self.meter = Meter() if meter is None else meter
        self._queue: deque[tuple[Any, Outcome, int]] = deque()
        self._backlog: deque[Heard] = deque()
        self._following: dict[Outcome, Following] = {}
        self._follows_asked: dict[Outcome, Follow] = {}
        self._deaf = False
        self._over = False
        self._first = b""
        self._received_bytes = 0
        self.outbox = Outbox()
        self.closing = False
        self.offload: Callable[[], list[Heard]] | None = None
        self._away = False
        self.held = False
        self.paused = False
        self.listening = True
        self.produces = False
        self.reads = False
        self.arrived = 0
        self.wanted = codec.wanted
        self._held = codec.held
        self.carrier: Any = None
        self.requests = 0
        self.refusals = 0
        engine.connected(client, now)

    # ------------------------------------------------------------ what carriers ask

    @property
    def wants_read(self) -> bool:
        """Whether more bytes of the peer may be taken in now."""
        return self.listening and self.outbox.size < REPLY_BYTES_WAITING_MAX

    @property
    def busy(self) -> bool:
        """Whether something is owed: a reply, a push, a thread's result or bytes to send."""
        return bool(
            self._queue
            or self._following
            or self._backlog
            or self.outbox.size
            or self._away
            or self.offload is not None
        )

    @property
    def follows(self) -> bool:
        """Whether a Follow is active."""
        return bool(self._following)

    @property
    def waiting(self) -> int:
        """Requests that wait for their outcome."""
        return len(self._queue)

    # ------------------------------------------------------------ what carriers tell

    def received(self, data: Buffer, now: Now) -> None:
        """Takes what arrived; b"" is the end of the stream."""
        if self._deaf or self._over:
            return
        if not self._first:
            self._first = bytes(data[:8])
        self._received_bytes = len(data)
        self.arrived += len(data)
        self.meter.bytes_in += len(data)
        try:
            heard = self._codec.receive(data)
            if not data and not any(type(item) is HungUp for item in heard):
                heard = [*heard, HungUp("end of stream")]
            is_first = not self._backlog
            self._backlog.extend(heard)
            if is_first and not self._away and self.offload is None:
                self._hear(now)
        except Exception as error:
            self._fail(error)

    def take_offload(self) -> Callable[[], list[Heard]] | None:
        """The call to run in a thread, once; nothing more is heard until `offloaded`."""
        call, self.offload = self.offload, None
        self._away = call is not None or self._away
        return call

    def offloaded(self, result: list[Heard] | Exception, now: Now) -> None:
        """The thread that ran the offloaded call is done."""
        self._away = False
        if self._over:
            return
        self.held = False
        try:
            if isinstance(result, Exception):
                raise result
            self._backlog.extendleft(reversed(result))
            self._hear(now)
        except Exception as error:
            self._fail(error)

    def woken(self, outcome: Outcome) -> None:
        """An outcome of this session is ready, or a Follow may have something to push; `advance`
        follows once all that became ready together are told."""
        if outcome.follows and (following := self._following.get(outcome)) is not None:
            following.due = True

    def advance(self, now: Now) -> None:
        """Releases what became ready and pushes what there is room for.

        Called after `woken`, and whenever the outbox has emptied after it was full.
        """
        if self._over:
            return
        self.held = False
        try:
            if self._queue:
                self._release(now)
            if self._backlog and not (self.paused or self._away or self.offload is not None):
                self._hear(now)
            if self._following:
                self._push(now)
            self._settle(now)
        except Exception as error:
            self._fail(error)

    def resume(self, now: Now) -> None:
        """Hears on where it paused: the others had their turn."""
        self.paused = False
        self.advance(now)

    def keep_alive(self, now: Now) -> None:
        """Sends the keep-alive of every Follow that was silent for its interval."""
        try:
            for following in list(self._following.values()):
                if self.outbox.size < REPLY_BYTES_WAITING_MAX and following.is_silent(now):
                    following.last_us = now.mono_us
                    self._emit(self._codec.send_idle(following.tag))
        except Exception as error:
            self._fail(error)

    def drain(self, now: Now) -> None:
        """Hears no more: answers what was asked, ends every Follow, then closes."""
        if self._over:
            return
        if self._backlog or self._away or self.offload is not None:
            self._backlog.append(HungUp("the server stops"))
        else:
            self._deaf = True
        self._settle(now)

    def end(self) -> None:
        """Says no more than what the outbox holds, whatever was asked."""
        if not self._over:
            self._end()

    def gone(self, now: Now) -> None:
        """The connection is closed, for whatever reason. Idempotent."""
        if self._over:
            return
        self._over = True
        self._end()
        self.meter.requests += self.requests
        self.requests = 0
        self._follows_asked.clear()
        self.outbox.clear()
        self.arrived = 0
        # The carrier holds the session: left in a circle, what the codec keeps of a frame would
        # stay until the garbage collector comes round, which a few large buffers do not call for.
        self.carrier = NOBODY
        self.offload = None
        if self.refusals > 1:
            _log.info("refusals", **self._who(), count=self.refusals)
        try:
            self._engine.disconnected(self.client, now)
        except Exception:
            _log.exception("fault", **self._who())

    # ------------------------------------------------------------ hearing

    def _hear(self, now: Now) -> None:
        """Serves the backlog in order, as far as replies find room and time lasts.

        A read rests there too while something asked before it is not done, so that whoever writes
        and reads in one breath reads what it wrote.
        """
        queue = self._queue
        outbox = self.outbox
        handle = self._engine.handle
        backlog = self._backlog
        ends_ns = monotonic_ns() + HEARING_NS_MAX if len(backlog) > 1 else 0
        is_first = True
        while backlog:
            item = backlog[0]
            if outbox.size >= REPLY_BYTES_WAITING_MAX:
                self.held = True
                break
            if queue and (
                len(queue) >= REQUESTS_WAITING_MAX
                or (type(item) is Asked and type(item[1]) in _READS)
            ):
                head = queue[0][1]
                if not (head.ready or head.follows):
                    break
                # A Follow that has begun is not waited for: nothing would wake this session again.
                self._release(now)
                continue
            if self.offload is not None:
                break
            if is_first:
                is_first = False
            elif monotonic_ns() >= ends_ns:
                self.paused = True
                break
            backlog.popleft()
            if type(item) is Asked:
                tag, request = item
                self.requests += 1
                outcome = handle(request, self.client, now)
                heard_us = 0
                if type(request) in _WRITES:
                    self.produces = True
                    heard_us = now.mono_us
                elif type(request) in _READS:
                    self.reads = True
                if outcome.ready and not queue:
                    self._reply(tag, outcome)
                    if heard_us and type(outcome.reply) is not Failure:
                        self.meter.latency.quick += 1
                else:
                    outcome.owner = self
                    if outcome.follows and type(request) is Follow:
                        self._follows_asked[outcome] = request
                    queue.append((tag, outcome, heard_us))
            else:
                self._hear_other(item, now)
            if self._deaf:
                backlog.clear()
                break
        if queue and (queue[0][1].ready or queue[0][1].follows):
            self._release(now)
        if self._following:
            self._push(now)
        self._settle(now)

    def _hear_other(self, item: Heard, now: Now) -> None:
        match item:
            case Refused(tag, failure, fatal):
                self._note_refusal(failure, fatal=fatal)
                self._queue.append((tag, Outcome(failure), 0))
                self._release(now)
                if fatal:
                    self._deaf = True
            case Offload(call):
                self.offload = call
            case HungUp():
                self._deaf = True
            case IfTopic(topic, namespace, there, missing):
                exists = self._engine.has_topic(namespace, topic)
                self._backlog.extendleft(reversed(there if exists else missing))
            case Asked():  # pragma: no cover - served by the caller, which is the hot path
                raise AssertionError("a request is served in _hear")
            case _:
                assert_never(item)

    # ------------------------------------------------------------ answering

    def _release(self, now: Now) -> None:
        """Renders the replies at the head of the queue whose outcomes are complete."""
        queue = self._queue
        outbox = self.outbox
        while queue:
            tag, outcome, heard_us = queue[0]
            if outbox.size >= REPLY_BYTES_WAITING_MAX:
                self.held = True
                return
            if outcome.follows:
                queue.popleft()
                request = self._follows_asked.pop(outcome)
                following = Following(tag, outcome, request, now)
                if request.replaces:
                    self._replace(following, now)
                self._following[outcome] = following
            elif outcome.ready:
                queue.popleft()
                self._reply(tag, outcome)
                if heard_us and type(outcome.reply) is not Failure:
                    self.meter.latency.observe(now.mono_us - heard_us)
            else:
                return

    def _replace(self, newer: Following, now: Now) -> None:
        """Ends the Follows that a newer one on the same partition takes the place of."""
        for following in list(self._following.values()):
            if following.place == newer.place:
                del self._following[following.outcome]
                self._engine.cancel(following.outcome, now)

    def _reply(self, tag: Any, outcome: Outcome) -> None:
        reply = outcome.reply
        assert reply is not None, "a ready outcome has a reply"
        if self.outbox.size >= REPLY_BYTES_KEPT and getattr(tag, "droppable", False):
            return
        if type(reply) is Failure:
            self.meter.refusals[reply.code] += 1
            self._emit(self._codec.send_failure(tag, reply))
            return
        buffers, close_after = self._codec.send(tag, reply)  # type: ignore[arg-type]
        self.outbox.add(buffers)
        if close_after:
            self._end()

    def _push(self, now: Now) -> None:
        """Pulls every Follow that may have something, in turn, as long as there is room."""
        for following in [each for each in self._following.values() if each.due]:
            while following.due:
                if self.outbox.size >= REPLY_BYTES_WAITING_MAX:
                    self.held = True
                    return
                pushed = self._engine.pull(following.outcome, now)
                if pushed is None:
                    following.due = False
                    break
                following.last_us = now.mono_us
                if type(pushed) is Failure:
                    self._following.pop(following.outcome, None)
                    self.meter.refusals[pushed.code] += 1
                    self._emit(self._codec.send_failure(following.tag, pushed))
                    break
                self._emit(self._codec.send(following.tag, pushed))  # type: ignore[arg-type]

    def _emit(self, sent: Sent) -> None:
        buffers, close_after = sent
        self.outbox.add(buffers)
        if close_after:
            self._end()

    def _end(self) -> None:
        """Says no more than what the outbox holds."""
        self._deaf = True
        self.listening = False
        self._queue.clear()
        self._backlog.clear()
        self._following.clear()
        self.closing = True

    def _settle(self, now: Now) -> None:
        """Says whether more may be heard; closes once nothing is owed to a peer that is heard no
        more."""
        unserved = bool(self._backlog) or self._away or self.offload is not None
        full = self.held or len(self._queue) >= REQUESTS_WAITING_MAX
        self.listening = not (self._deaf or unserved or full)
        if self.arrived and not unserved:
            self.arrived = self._held()
        if self._deaf and not self._queue and not unserved:
            for following in self._following.values():
                self._engine.cancel(following.outcome, now)
            self._following.clear()
            self.closing = True

    # ------------------------------------------------------------ telling

    def _note_refusal(self, failure: Failure, *, fatal: bool) -> None:
        """Logs the first refusal of a connection and every fatal one; the rest are counted."""
        self.refusals += 1
        if fatal or self.refusals == 1:
            stranger = foreign_protocol(self._first)
            _log.info(
                "refused",
                **self._who(),
                code=failure.code.name,
                detail=failure.detail,
                fatal=fatal,
                received_bytes=self._received_bytes,
                **({"looks_like": stranger} if stranger else {}),
            )

    def _fail(self, error: Exception) -> None:
        """Our own bug: this connection ends, the others never know."""
        _log.error("fault", **self._who(), exc_info=error)
        self._end()

    def _who(self) -> dict[str, object]:
        client = self.client
        return {"session": client.number, "dialect": client.dialect, "peer": client.peer}
