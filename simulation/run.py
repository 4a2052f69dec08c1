"""One simulated run: a gateway, its clients, its weather, drawn from one seed and checked.

Everything that happens is drawn from `Random(seed)`: who acts, which bytes arrive, which work runs,
what fails. The same seed on the same code gives the same run, byte for byte.
"""

from __future__ import annotations

import traceback
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from dragoman.core.engine import Engine
from dragoman.core.storage.error import StorageError
from dragoman.simulation.actor import World
from dragoman.simulation.audit import Auditor
from dragoman.simulation.clock import SimClock
from dragoman.simulation.crew import make_crew
from dragoman.simulation.disk import PowerCut
from dragoman.simulation.model import Model
from dragoman.simulation.report import Report
from dragoman.simulation.rule import Broken, Rule
from dragoman.simulation.server import STORAGE, Server, Stop
from dragoman.simulation.trace import Trace
from dragoman.simulation.weather import Weather

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dragoman.core.interface import LogEngine
    from dragoman.core.options import EngineOptions
    from dragoman.core.store import Store
    from dragoman.simulation.actor import Actor
    from dragoman.simulation.operator import Operator

OPERATIONS = 200
"""Requests of one run, unless somebody asks for more or fewer."""
STEPS_PER_OPERATION_MAX = 200
"""A run that takes more steps than so for its requests does not move on."""
JUMPS_US = (400_000, 1_500_000, 6_000_000, 12_000_000)
"""Long enough for keep-alives, checkpoints, long polls and the end of a member's session."""
QUIET_US = 45_000_000
"""How long a run rests at its end: every deadline that a client asked for is over by then."""


class Simulation:
    """One run of one seed.

    Args:
        make_engine: Puts an engine on a store; tests put broken ones there.
        echo: Told every line of the trace.
    """

    def __init__(
        self,
        seed: int,
        *,
        make_engine: Callable[[Store, EngineOptions], LogEngine] = Engine,
        echo: Callable[[str], None] | None = None,
    ) -> None:
        self.seed = seed
        self.random = random = Random(seed)
        self.trace = trace = Trace(echo)
        self.clock = clock = SimClock()
        self.weather = weather = Weather.drawn(random)
        storage = replace(
            STORAGE, durability=weather.durability, segment_bytes=weather.segment_bytes
        )
        self.server = Server(
            random,
            clock,
            trace,
            storage=storage,
            caches_reads=weather.caches_reads,
            make_engine=make_engine,
        )
        self.world = World(random, clock, trace, self.server, Model(clock))
        self.actors: list[Actor | Operator] = []
        self.stops = dict.fromkeys(Stop, 0)
        self._full_until_us = 0

    def play(self, operations: int) -> None:
        """Plays the whole run.

        Raises:
            Broken: A rule did not hold.
        """
        self.trace.add(f"seed {self.seed}: {self.weather}")
        self.server.start()
        auditor = Auditor(self)
        auditor.prepare()
        self.actors = make_crew(self.world)
        steps_max = operations * STEPS_PER_OPERATION_MAX
        begun = self.world.operations
        while self.world.operations - begun < operations:
            self._step()
            if self.trace.step > steps_max:
                raise Broken(Rule.FAULT, "the run does not move on")
        auditor.conclude()

    # ------------------------------------------------------------ steps

    def _step(self) -> None:
        """One thing happens."""
        random = self.random
        server = self.server
        try:
            if server.engine is None:
                self._restart()
                return
            if random.random() < 0.08:
                self._trouble()
                return
            choice = random.random()
            if choice < 0.25:
                random.choice(self.actors).act()
            elif choice < 0.50:
                self._bring_one()
            elif choice < 0.72:
                self._hear_one()
            elif choice < 0.95:
                server.step()
            else:
                server.tick(random.choice((100, 2_000, 20_000)))
        except PowerCut:
            self.stop(random.choice((Stop.KILL, Stop.POWER)))
        if server.is_fenced and random.random() < 0.1:
            self.stop(random.choice((Stop.KILL, Stop.POWER)))

    def _bring_one(self) -> None:
        """Some bytes of a client reach the server."""
        heard = [one for one in self.server.connections if one.is_heard]
        if heard:
            connection = self.random.choice(heard)
            self.server.bring(connection, self._piece(len(connection.to_server)))

    def _hear_one(self) -> None:
        """Some bytes of the server reach a client."""
        clients = [actor.client for actor in self.actors if actor.client.has_news]
        if clients:
            client = self.random.choice(clients)
            client.hear(self._piece(client.news))

    def _piece(self, size: int) -> int:
        """How much of what is on its way arrives: all mostly, or cut anywhere."""
        if size > 1 and self.random.random() < 0.3:
            return self.random.randint(1, size - 1)
        return size

    def _trouble(self) -> None:
        """Perhaps something goes wrong."""
        random, weather, server = self.random, self.weather, self.server
        if self._full_until_us and self.clock.now.mono_us >= self._full_until_us:
            self._full_until_us = 0
            server.disk.bytes_max = None
            self.trace.add("disk: has room again")
        # This is asked for in 80 of 1,000 steps.
        draw = random.random() * 80
        for chance, happens in (
            (weather.hang_ups, self._hang_up),
            (weather.jumps, self._jump),
            (weather.kills, self._kill),
            (weather.power_cuts, self._cut_power),
            (weather.stops, self._stop_in_order),
            (weather.sync_failures, self._fail_sync),
            (weather.full_disks, self._fill_disk),
        ):
            if draw < chance:
                happens()
                return
            draw -= chance

    def _hang_up(self) -> None:
        random = self.random
        random.choice(self.actors).client.hang_up(reset=random.random() < 0.5)

    def _jump(self) -> None:
        self.server.tick(self.random.choice(JUMPS_US))

    def _kill(self) -> None:
        self._end_soon(Stop.KILL)

    def _cut_power(self) -> None:
        self._end_soon(Stop.POWER)

    def _end_soon(self, stop: Stop) -> None:
        """Ends this life now, or within one of the next operations of the disk."""
        if self.random.random() < 0.5:
            self.stop(stop)
            return
        self.server.disk.cut_power_at(self.random.randint(1, 8))
        self.trace.add("server: about to be cut off")

    def _stop_in_order(self) -> None:
        if not self.server.is_fenced:
            self.server.stop()
            self.stops[Stop.ORDERLY] += 1

    def _fail_sync(self) -> None:
        if self.weather.durability is self.weather.durability.FSYNC:
            self.server.fail_sync()

    def _fill_disk(self) -> None:
        disk = self.server.disk
        self.server.life.is_impaired = True
        disk.bytes_max = disk.used + self.random.choice((0, 2_000, 20_000))
        self._full_until_us = self.clock.now.mono_us + 2_000_000
        self.trace.add(f"disk: full at {disk.bytes_max} bytes")

    # ------------------------------------------------------------ lives

    def stop(self, stop: Stop) -> None:
        """The server's life ends at once; where power cuts lose what was promised none is cut."""
        if self.weather.durability is not self.weather.durability.FSYNC:
            stop = Stop.KILL
        self.stops[stop] += 1
        self.server.crash(stop)

    def _restart(self) -> None:
        if self.random.random() < 0.3:
            self._full_until_us = 0
            cuts = self.random.choice((0, 0, 0, 1, 2))
            self.server.start(cuts if self.weather.power_cuts else 0)
        else:
            self._hear_one()

    # ------------------------------------------------------------ rest

    def rest(self) -> None:
        """Lets everything that is on its way arrive, and time pass until nothing waits for it."""
        passed_us = 0
        while passed_us < QUIET_US:
            self.clear()
            for actor in self.actors:
                if not (actor.is_idle or actor.client.is_connected):
                    actor.act()
            self.exchange()
            self.server.tick(JUMPS_US[2])
            passed_us += JUMPS_US[2]
        self.exchange()

    def clear(self) -> None:
        """The weather is fine from now on; a server that is down or fenced starts anew."""
        server = self.server
        server.disk.fails = None
        server.disk.bytes_max = None
        if server.engine is not None and server.is_fenced:
            self.stop(Stop.KILL)
        if server.engine is None:
            server.start()

    def exchange(self) -> None:
        """Brings everything to where it goes, until nothing is on its way."""
        server = self.server
        for _ in range(1000):
            server.settle()
            heard = [one for one in server.connections if one.is_heard]
            for connection in heard:
                server.bring(connection, len(connection.to_server))
            news = [actor.client for actor in self.actors if actor.client.has_news]
            for client in news:
                client.hear(1 << 20)
            if not heard and not news:
                return
        raise Broken(Rule.FAULT, "bytes go to and fro without end")


def run(
    seed: int,
    operations: int = OPERATIONS,
    *,
    make_engine: Callable[[Store, EngineOptions], LogEngine] = Engine,
    echo: Callable[[str], None] | None = None,
) -> Report:
    """Plays one seed; returns what happened, and which rule was broken if one was."""
    simulation = Simulation(seed, make_engine=make_engine, echo=echo)
    broken: Broken | None = None
    with capture_logs() as logged:
        try:
            simulation.play(operations)
            _check_log(logged)
        except Broken as error:
            broken = error
        except StorageError as error:
            broken = Broken(Rule.LOST, f"a restart refuses what is on the disk: {error}")
        except Exception:
            broken = Broken(Rule.FAULT, traceback.format_exc())
        if broken is not None and broken.rule is not Rule.FAULT:
            try:
                _check_log(logged)
            except Broken as fault:
                broken = fault
    return Report.of(simulation, operations, broken)


def _check_log(logged: Sequence[Mapping[str, object]]) -> None:
    """A session that met a bug of ours says so in the log and nowhere else."""
    for entry in logged:
        if entry.get("log_level") == "error":
            error = entry.get("exc_info")
            text = (
                "".join(traceback.format_exception(error)) if isinstance(error, Exception) else ""
            )
            raise Broken(Rule.FAULT, f"{entry.get('event')}: {text or entry}")
