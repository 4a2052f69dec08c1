"""Groups as a run knows them: what members were told of generations and of what they own."""

from __future__ import annotations

from dragoman.simulation.rule import Broken, Rule


class Membership:
    """One group on one topic.

    Attributes:
        generation: The newest that anybody was told.
        owners: By generation and partition the member that was told it owns it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.generation = 0
        self.owners: dict[int, dict[int, str]] = {}

    def joined(
        self, member: str, generation: int, partitions: tuple[int, ...], *, before: int, count: int
    ) -> None:
        """A member is told what it owns.

        Args:
            before: The newest generation that was known when it asked.
            count: How many partitions the topic may have.
        """
        if generation < before:
            raise Broken(
                Rule.GENERATION, f"{self._name}: {member} is told {generation} after {before}"
            )
        owners = self.owners.setdefault(generation, {})
        for partition in partitions:
            owner = owners.setdefault(partition, member)
            if owner != member or not 0 <= partition < count:
                raise Broken(
                    Rule.OWNER,
                    f"{self._name}: {member} is told that it owns {partition} of {count} in "
                    f"generation {generation}, as was {owner}",
                )
        told = [partition for partition, owner in owners.items() if owner == member]
        if sorted(told) != sorted(partitions):
            raise Broken(
                Rule.OWNER,
                f"{self._name}: {member} is told {partitions} in generation {generation}, "
                f"and was told {told}",
            )
        self.generation = max(self.generation, generation)

    def committed(self, member: str, generation: int, partition: int, *, before: int) -> None:
        """A fenced commit was accepted.

        Args:
            before: The newest generation that was known when it was asked for.
        """
        owner = self.owners.get(generation, {}).get(partition)
        if generation < before or (owner is not None and owner != member):
            raise Broken(
                Rule.FENCED,
                f"{self._name}: a commit by {member} of generation {generation} for partition "
                f"{partition} is accepted; generation {before} was known, its owner is {owner}",
            )
