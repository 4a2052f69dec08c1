"""`dragoman sim`: plays simulated runs of the whole gateway and checks them against a model."""

from __future__ import annotations

from dragoman.cli.asking import complain
from dragoman.simulation.run import OPERATIONS, run

HELD, BROKEN, MISUSED = 0, 1, 2


def sim(*, seed: int = 0, seeds: int = 1, operations: int = OPERATIONS, trace: bool = False) -> int:
    """Play simulated runs: clients of mixed dialects, crashes, a failing disk, and no real time.

    The clients write, read, follow and commit; members of groups and subscribers come and go, and
    several writers append to the same streams of events.

    Prints a line a run; of a run that broke a rule also the rule, the last steps and the command
    that plays it again. The same seed plays the same run. Exits with 1 where a rule was broken.

    Parameters
    ----------
    seed
        The first seed.
    seeds
        How many to play, one after the other.
    operations
        Requests of one run.
    trace
        Print every step.
    """
    if seeds < 1 or operations < 1:
        return complain("--seeds and --operations are at least 1", MISUSED)
    broken = 0
    for number in range(seed, seed + seeds):
        report = run(number, operations, echo=print if trace else None)
        print(report.line(), flush=True)
        if not report.held:
            broken += 1
            print(report.story(), flush=True)
    if seeds > 1:
        print(f"{seeds - broken} of {seeds} runs held")
    return BROKEN if broken else HELD
