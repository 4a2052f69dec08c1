"""What a simulated run may break: every rule by name, and the exception that tells of it."""

from __future__ import annotations

from enum import Enum


class Rule(Enum):
    """What has to hold in every run, whatever the seed; the value says it to people."""

    PROTOCOL = "every reply parses in its dialect and answers what was asked"
    ANSWER = "every request gets exactly one answer, or its connection closes"
    CLOSED = "a connection that did nothing wrong is not closed"
    REFUSED = "nothing is refused without a reason"
    PHANTOM = "no record is read that nobody sent, or in a place where nobody sent it"
    CHANGED = "what was acknowledged or read keeps its place and its value"
    DUPLICATE = "a record has one place"
    ORDER = "records of one writer keep their order within a partition"
    DENSE = "what is visible has no holes but for what was compacted or deleted"
    LOST = "what was acknowledged is there"
    DELETED = "what was deleted stays deleted"
    WATERMARK = "the high watermark never falls"
    ROLE = "a partition that another server leads takes no records here"
    OWNER = "a partition has one owner in a generation"
    GENERATION = "generations never fall"
    FENCED = "a commit of a stale member, or of a partition that it does not own, is refused"
    PUSHED = "while a group has a subscriber every record is pushed once, to one of them, in order"
    EVENT = "versions of a stream count up from 1, each is one event, and none is lost"
    SNAPSHOT = "a snapshot reads back until a later one"
    COMMIT = "a committed offset reads back until a later commit"
    LEAK = "once everyone has hung up nothing waits"
    STATISTICS = "statistics agree with what was done"
    FAULT = "neither the engine nor a codec raises, and nothing hangs"


class Broken(Exception):
    """A rule is broken.

    Attributes:
        rule: Which one.
    """

    def __init__(self, rule: Rule, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule

    def __str__(self) -> str:
        return f"{self.rule.name}: {self.args[0]} ({self.rule.value})"
