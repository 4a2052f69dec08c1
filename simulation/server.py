"""A whole gateway in one thread: the engine over a simulated disk, its sessions, its works.

What the gateway's threads would do is done here one piece at a time and in whatever order the run
draws: a work that was taken need not run at once, and one that ran need not be reported at once. A
life ends by an orderly stop, a kill (all that was written is there) or a power cut (only what was
synced is certain), also in the middle of a work or of a recovery.
"""

from __future__ import annotations

import errno
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Any

from dragoman.codecs.rendering import RenderingCache
from dragoman.core.engine import Engine
from dragoman.core.interface import WorkLane
from dragoman.core.options import EngineOptions
from dragoman.core.storage.disk_store import DiskStore
from dragoman.core.storage.options import Durability, StorageOptions
from dragoman.gateway.delivery import deliver
from dragoman.simulation.disk import PowerCut, SimDisk
from dragoman.simulation.rule import Broken, Rule
from dragoman.simulation.wire import Connection

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from dragoman.codecs.base import Dialect
    from dragoman.core.interface import LogEngine, Work
    from dragoman.core.store import Store
    from dragoman.simulation.clock import SimClock
    from dragoman.simulation.trace import Trace

KIB = 1024
STORAGE = StorageOptions(
    segment_bytes=2 * KIB,
    journal_file_bytes=32 * KIB,
    journal_first_bytes=16 * KIB,
    journal_files_max=6,
    reserve_bytes=4 * KIB,
    tail_bytes_max=16 * KIB,
    cold_bytes_max=16 * KIB,
    checkpoint_interval_s=3.0,
    segment_linger_ms=5,
    retry_ms=100,
)
"""Files roll, are recycled, checkpointed and read back within a few hundred records."""
ENGINE = EngineOptions(retention_check_us=500_000)
"""Records expire and are compacted soon after they may be."""
SETTLE_ROUNDS_MAX = 2000
"""A server that still moves after so many rounds without a request never comes to rest."""
RECOVERIES_MAX = 8
"""After so many recoveries that failed or were cut off in a row one has to succeed."""


class Stop(Enum):
    """How a life of the server ends."""

    ORDERLY = "stop"
    KILL = "kill"
    POWER = "power cut"


class Life:
    """One life of the server, from a start to its end.

    Attributes:
        is_impaired: Something was done to it for which it may refuse requests.
    """

    __slots__ = ("is_impaired",)

    def __init__(self) -> None:
        self.is_impaired = False


class Handed:
    """A work that was taken from the engine.

    Attributes:
        has_run: It ran and was not reported yet.
    """

    __slots__ = ("error", "has_run", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.has_run = False
        self.error: OSError | None = None


class Server:
    """The gateway of a run.

    Args:
        storage: The settings of the data directory.
        caches_reads: Whether reads of files need no thread.
        make_engine: Puts an engine on a store; tests put broken ones there.

    Attributes:
        engine: None while the server is down.
        life: The present one, or the last.
        lives, connected: How often it was started and connected to.
        connections: Those that the server has not let go of.
    """

    def __init__(
        self,
        random: Random,
        clock: SimClock,
        trace: Trace,
        *,
        storage: StorageOptions = STORAGE,
        caches_reads: bool = True,
        options: EngineOptions = ENGINE,
        make_engine: Callable[[Store, EngineOptions], LogEngine] = Engine,
    ) -> None:
        self._random = random
        self._clock = clock
        self._trace = trace
        self._storage = storage
        self._caches_reads = caches_reads
        self._options = options
        self._make_engine = make_engine
        self._lanes: dict[WorkLane, deque[Handed]] = {lane: deque() for lane in WorkLane}
        self.connected = 0
        self._renderings = RenderingCache()
        self.disk = SimDisk()
        self.engine: LogEngine | None = None
        self.store: DiskStore | None = None
        self.life = Life()
        self.lives = 0
        self.connections: list[Connection] = []

    # ------------------------------------------------------------ lives

    def start(self, cuts: int = 0) -> None:
        """Starts on what the disk holds.

        Args:
            cuts: So many recoveries are cut off in their middle first.
        """
        for cut in range(RECOVERIES_MAX):
            self.disk.fails = None
            self.disk.caches_reads = self._caches_reads
            if cut < cuts:
                self.disk.cut_power_at(self._random.randint(1, 20))
            self.lives += 1
            try:
                store = DiskStore("data", self._storage, disk=self.disk)
            except PowerCut:
                self._trace.add(f"server: recovery cut off, operation {self.disk.operations}")
                self.disk = self._after(Stop.POWER)
                continue
            except OSError as error:
                if self.disk.bytes_max is None:
                    raise
                self._trace.add(f"server: does not start, {error}")
                is_synced = self._storage.durability is Durability.FSYNC
                self.disk = self._after(Stop.POWER if is_synced else Stop.KILL)
                continue
            self.disk.fails = None
            break
        else:
            raise Broken(Rule.FAULT, "the server does not start")
        if store.damage:
            raise Broken(Rule.LOST, f"recovery found damage on a sound disk: {store.damage}")
        self._renderings = RenderingCache()
        self.store = store
        self.engine = self._make_engine(store, self._options)
        self.life = Life()
        self._trace.add(f"server: life {self.lives} at sequence {store.revealed_sequence}")

    def crash(self, stop: Stop) -> None:
        """Ends this life at once; every connection breaks."""
        self._trace.add(f"server: {stop.value} at operation {self.disk.operations}")
        self.engine = self.store = None
        for lane in self._lanes.values():
            lane.clear()
        for connection in self.connections:
            connection.broken()
        self.connections.clear()
        self.disk = self._after(stop)

    def _after(self, stop: Stop) -> SimDisk:
        """The disk that the next life finds; what a kill leaves unsynced a later cut may take."""
        return self.disk.crashed(self._random) if stop is Stop.POWER else self.disk.killed()

    def fail_sync(self) -> None:
        """One of the next syncs fails."""
        name = self._random.choice(("sync", "sync", "sync directory"))
        self.disk.fail_at(self._random.randint(1, 3), errno.EIO, name)
        self.life.is_impaired = True
        self._trace.add(f"disk: a {name} is about to fail")

    def stop(self) -> None:
        """Ends this life in good order: what was asked is answered, a last checkpoint stands."""
        engine = self.engine
        assert engine is not None
        self.life.is_impaired = True
        self._trace.add("server: stop")
        for connection in self.connections:
            connection.session.drain(self._clock.now)
        engine.begin_close(self._clock.now)
        self.settle()
        for connection in self.connections:
            connection.broken()
        self.connections.clear()
        engine.close()
        self.engine = self.store = None

    @property
    def is_fenced(self) -> bool:
        """Whether the log takes nothing until a restart."""
        return self.store is not None and self.store.failure is not None

    # ------------------------------------------------------------ connections

    def connect(self, dialect: Dialect) -> Connection | None:
        """Opens a connection; None while the server is down."""
        if self.engine is None:
            return None
        self.connected += 1
        connection = Connection(
            self.connected, dialect, self.engine, self.life, self._renderings, self._clock
        )
        self.connections.append(connection)
        return connection

    def bring(self, connection: Connection, size: int) -> None:
        """Up to `size` bytes of a client arrive."""
        assert self.engine is not None
        connection.arrive(size)
        if connection.is_gone:
            self.forget(connection)

    def forget(self, connection: Connection) -> None:
        """A connection is over."""
        if connection in self.connections:
            self.connections.remove(connection)

    def attend(self) -> None:
        """Looks after every connection, as the reaper and the selector do."""
        for connection in list(self.connections):
            connection.attend()
            if connection.is_gone:
                self.forget(connection)

    # ------------------------------------------------------------ works

    def step(self) -> None:
        """Does one of the things that the gateway's threads and loop could do next."""
        engine = self.engine
        assert engine is not None
        busy = [lane for lane, handed in self._lanes.items() if handed]
        choice = self._random.randrange(len(busy) + 1)
        if choice == len(busy):
            self.poke()
            return
        lane = busy[choice]
        handed = self._lanes[lane]
        at = self._random.randrange(len(handed)) if lane is WorkLane.READ else 0
        if handed[at].has_run:
            self._report(lane, at)
        else:
            self._run(lane, handed[at])

    def poke(self) -> None:
        """Takes what is due and answers what became ready, as the loop does after each round."""
        engine = self.engine
        assert engine is not None
        flushes = self._lanes[WorkLane.FLUSH]
        if not flushes and (flush := engine.take_flush()) is not None:
            flushes.append(Handed(flush))
        for session in deliver(engine, self._clock.now):
            session.carrier.flush(self._clock.now)
        for work in engine.take_work():
            self._lanes[work.lane].append(Handed(work))

    def tick(self, passed_us: int) -> None:
        """Time passes."""
        now = self._clock.advance(passed_us)
        if self.engine is not None:
            self.engine.tick(now)
            for connection in self.connections:
                connection.session.keep_alive(now)
                connection.attend()

    def settle(self) -> None:
        """Goes on until nothing is left to do for what has arrived."""
        for _ in range(SETTLE_ROUNDS_MAX):
            self.poke()
            self.attend()
            busy = [lane for lane, handed in self._lanes.items() if handed]
            if not busy and self._is_quiet():
                return
            for lane in busy:
                handed = self._lanes[lane]
                while handed:
                    if not handed[0].has_run:
                        self._run(lane, handed[0])
                    self._report(lane, 0)
        raise Broken(Rule.FAULT, "the server never comes to rest")

    def _is_quiet(self) -> bool:
        """Whether a poke finds nothing to do."""
        engine = self.engine
        assert engine is not None
        self.poke()
        return not any(self._lanes.values())

    def _run(self, lane: WorkLane, handed: Handed) -> None:
        before = self.disk.operations
        try:
            handed.work.run()
        except OSError as error:
            handed.error = error
            self.life.is_impaired = True
        handed.has_run = True
        self._trace.add(
            f"{lane.value}: ran, operations {before} to {self.disk.operations}"
            + (f", {handed.error}" if handed.error else "")
        )

    def _report(self, lane: WorkLane, at: int) -> None:
        engine: Any = self.engine
        done = self._lanes[lane][at]
        del self._lanes[lane][at]
        if lane is WorkLane.FLUSH:
            engine.flushed(done.work, done.error, self._clock.now)
        else:
            engine.finished(done.work, done.error, self._clock.now)
        self._trace.add(f"{lane.value}: reported")
