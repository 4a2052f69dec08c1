"""What came of a run, for people and for other processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.simulation.rule import Broken
    from dragoman.simulation.run import Simulation


@dataclass(frozen=True, slots=True)
class Report:
    """One run.

    Attributes:
        digest: Stands for the whole trace: the same for the same seed and code.
        broken: The name of the broken rule, empty where all held.
        detail: What exactly was seen.
        last_steps: The end of the trace, where a rule was broken.
        counts: What happened how often.
    """

    seed: int
    operations: int
    digest: str
    broken: str
    detail: str
    last_steps: tuple[str, ...]
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, simulation: Simulation, operations: int, broken: Broken | None) -> Report:
        """The report of a run that is over."""
        world = simulation.world
        model = world.model
        counts = {
            "steps": simulation.trace.step,
            "lives": simulation.server.lives,
            "connections": simulation.server.connected,
            "records": len(model.sent),
            "acked": model.acked,
            "read": model.read,
            "pushed": sum([audience.count for audience in world.audiences.values()]),
            "events": sum([aggregate.version for aggregate in world.aggregates.values()]),
            **{stop.value: count for stop, count in simulation.stops.items()},
        }
        return cls(
            simulation.seed,
            operations,
            simulation.trace.digest,
            "" if broken is None else broken.rule.name,
            "" if broken is None else str(broken),
            () if broken is None else tuple(simulation.trace.lines),
            counts,
        )

    @property
    def held(self) -> bool:
        """Whether every rule held."""
        return not self.broken

    @property
    def command(self) -> str:
        """What plays this run again."""
        return f"dragoman sim --seed {self.seed} --operations {self.operations} --trace"

    def line(self) -> str:
        """The run in one line."""
        told = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        return f"seed {self.seed}: {self.broken or 'held'} ({told}) {self.digest}"

    def story(self) -> str:
        """What broke, what came before it, and how to see it again."""
        return "\n".join(
            (
                f"seed {self.seed} broke {self.detail}",
                "its last steps:",
                *(f"  {line}" for line in self.last_steps),
                f"again: {self.command}",
            )
        )
