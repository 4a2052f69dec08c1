"""Committed offsets as a run knows them: registers that several clients write and read.

A commit takes effect at some time between its asking and its answer; one without an answer may have
done so until its connection was over, or never. A read is wrong where no order of effects explains
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.simulation.rule import Broken, Rule

if TYPE_CHECKING:
    from dragoman.simulation.model import Topic


ANY = -(1 << 63)
"""Stands for an offset that only the server knows."""
NEVER = 1 << 62
"""Later than any step."""


class Commit:
    """One commit.

    Attributes:
        offset: What was committed; `ANY` where only the server knows.
        asked: The step at which it was asked for.
        done: The step by which it had taken effect, or None where nobody knows of it.
        until: It took effect by this step or never.
    """

    __slots__ = ("asked", "done", "offset", "until")

    def __init__(self, offset: int | None, asked: int, done: int | None = None) -> None:
        self.offset = offset
        self.asked = asked
        self.done = done
        self.until = NEVER


class Register:
    """The committed offset of one group and partition, or something else that is written over.

    Args:
        rule: What a wrong read breaks.
    """

    def __init__(self, name: str, rule: Rule = Rule.COMMIT) -> None:
        self._name = name
        self._rule = rule
        self._commits = [Commit(None, -1, -1)]

    def asks(self, offset: int, step: int) -> Commit:
        """Somebody asks to commit."""
        commit = Commit(offset, step)
        self._commits.append(commit)
        return commit

    def forget(self, commit: Commit) -> None:
        """The commit was refused: it never took effect."""
        self._commits.remove(commit)

    def reads(self, told: tuple[int | None, ...], asked: int, step: int) -> None:
        """Somebody who asked at step `asked` is told one of these offsets at `step`."""
        wanted = (*told, ANY)
        found = [commit for commit in self._commits if commit.offset in wanted]
        found = [commit for commit in found if commit.asked < step and self._stands(commit, asked)]
        if not found:
            raise Broken(
                self._rule,
                f"{self._name} reads {told[0]}; committed were "
                f"{[(c.offset, c.asked, c.done) for c in self._commits[-6:]]}",
            )
        if len(found) == 1 and (found[0].done is None or found[0].done > step):
            found[0].done = step

    def _stands(self, commit: Commit, asked: int) -> bool:
        """Whether it may still have been the last one at step `asked`."""
        by = commit.until if commit.done is None else commit.done
        return not any(
            later.done is not None and later.asked > by and later.done < asked
            for later in self._commits
        )


class Registers:
    """The registers of all groups."""

    def __init__(self) -> None:
        self._registers: dict[tuple[str, int, str, str, int], Register] = {}

    def of(self, topic: Topic, kind: str, group: str, partition: int) -> Register:
        """The register of a group's partition; a topic made again begins anew."""
        key = (topic.name, topic.epoch, kind, group, partition)
        register = self._registers.get(key)
        if register is None:
            name = f"{kind} {group} of {topic.name}/{partition}"
            register = self._registers[key] = Register(name)
        return register

    def __len__(self) -> int:
        return len(self._registers)
