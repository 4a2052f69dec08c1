"""Arguments in, requests out: what each of V1's commands asks of the log.

The order of checks is the one that `wire.COMMANDS` documents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.codecs.v1.line import integer
from dragoman.codecs.v1.routing import key_hash
from dragoman.codecs.v1.translate import core_generation
from dragoman.codecs.v1.wire import COMMANDS, INVALID_NAME, REPLICATION
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    Acks,
    Assignor,
    ByHash,
    CommitOffset,
    Fetch,
    FetchOffset,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    Produce,
    ReportReplica,
    Role,
    SetRole,
    SyncGroup,
)
from dragoman.core.column import VarColumn
from dragoman.core.name import split_flat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman.core.calls import Request

ACKS = {b"0": Acks.NONE, b"1": Acks.LEADER, b"all": Acks.ALL}
_ASSIGNORS = {assignor.value.encode(): assignor for assignor in Assignor}
_ROLES = {role.value.encode(): role for role in Role}
_SESSION_TIMEOUT_US = 10_000_000
_NOWHERE = 1 << 62
"""A partition that no topic has, for every negative one: core's negative numbers have a meaning."""
_RECORD_OVERHEAD_BYTES = 12
"""What `<offset>:` and `,` usually add to a record; the codec cuts the reply exactly."""


class Wrong(ValueError):
    """A command's arguments are not its own; the message is the answer's text."""


class Commands:
    """The commands as one listener serves them.

    Args:
        partitions: Of a topic that a command creates.
        reply_bytes_max: Of one CONSUME.
        replication: The commands of `wire.REPLICATION` are served too.
    """

    def __init__(self, *, partitions: int, reply_bytes_max: int, replication: bool) -> None:
        self._partitions = partitions
        self._reply_bytes_max = reply_bytes_max
        served: dict[str, Callable[[list[bytes]], Request]] = {
            "PRODUCE": self._produce,
            "CONSUME": self._consume,
            "JOIN": self._join,
            "SYNC": self._sync,
            "HEARTBEAT": self._heartbeat,
            "LEAVE": self._leave,
            "COMMIT": self._commit,
            "OFFSET": self._offset,
            "REPLICA_FETCH": self._replica_fetch,
            "SET_PARTITION_ROLE": self._set_role,
        }
        self._served = {
            name.encode(): (name, *COMMANDS[name].counts, COMMANDS[name].usage, build)
            for name, build in served.items()
            if replication or name not in REPLICATION
        }

    def request(self, command: bytes, arguments: list[bytes]) -> tuple[str, Request] | None:
        """The command's name and what it asks for, or None where there is no such command.

        Raises:
            Wrong: The arguments are not the command's.
        """
        known = self._served.get(command)
        if known is None:
            return None
        name, least, most, usage, build = known
        if not least <= len(arguments) <= most:
            raise Wrong(usage)
        return name, build(arguments)

    def produce(
        self, topic: bytes, keys: Sequence[bytes], batch: RecordBatch, acks: Acks
    ) -> Produce:
        """Records of one key hash: what one PRODUCE, or a run of them, asks for."""
        namespace, name = split_flat(named(topic))
        return Produce(name, batch, ByHash(key_hash(keys[0])), namespace, acks, self._partitions)

    def _produce(self, arguments: list[bytes]) -> Request:
        key, colon, value = arguments[1].partition(b":")
        if not colon:
            raise Wrong("message must be key:value")
        acks = Acks.LEADER
        if len(arguments) == 3:
            option, _, mode = arguments[2].lower().partition(b"=")
            if option != b"acks" or mode not in ACKS:
                raise Wrong("invalid ack mode; expected acks=0|1|all")
            acks = ACKS[mode]
        return self.produce(arguments[0], (key,), one_record(key, value), acks)

    def _consume(self, arguments: list[bytes]) -> Request:
        partition = _integer(arguments[1], "invalid partition")
        offset = _integer(arguments[2], "invalid offset")
        if partition < 0:
            raise Wrong("invalid partition")
        if offset < 0:
            raise Wrong("invalid offset")
        namespace, topic = split_flat(named(arguments[0]))
        return Fetch(
            topic,
            partition,
            offset,
            namespace,
            bytes_max=self._reply_bytes_max,
            record_overhead=_RECORD_OVERHEAD_BYTES,
            create_partitions=self._partitions,
        )

    def _join(self, arguments: list[bytes]) -> Request:
        assignor = None
        if len(arguments) == 4:
            option, _, name = arguments[3].lower().partition(b"=")
            assignor = _ASSIGNORS.get(name) if option == b"assignor" else None
            if assignor is None:
                raise Wrong("invalid assignor; expected assignor=round_robin|range")
        group, topic, member, namespace = _names(arguments)
        return JoinGroup(
            topic,
            group,
            member,
            namespace,
            assignor,
            session_timeout_us=_SESSION_TIMEOUT_US,
            assume_partitions=self._partitions,
        )

    def _sync(self, arguments: list[bytes]) -> Request:
        generation = _generation(arguments)
        group, topic, member, namespace = _names(arguments)
        return SyncGroup(topic, group, member, generation, namespace)

    def _heartbeat(self, arguments: list[bytes]) -> Request:
        generation = _generation(arguments)
        group, topic, member, namespace = _names(arguments)
        return Heartbeat(topic, group, member, generation, namespace)

    def _leave(self, arguments: list[bytes]) -> Request:
        generation = _generation(arguments)
        group, topic, member, namespace = _names(arguments)
        return LeaveGroup(topic, group, member, generation, namespace)

    def _commit(self, arguments: list[bytes]) -> Request:
        generation = _generation(arguments)
        partition = _partition(arguments[4])
        offset = _integer(arguments[5], "invalid offset")
        group, topic, member, namespace = _names(arguments)
        return CommitOffset(
            topic,
            group,
            ((partition, offset),),
            namespace,
            member=member,
            generation=generation,
        )

    def _offset(self, arguments: list[bytes]) -> Request:
        partition = _partition(arguments[2])
        namespace, topic = split_flat(named(arguments[1]))
        return FetchOffset(topic, named(arguments[0]), partition, namespace)

    def _replica_fetch(self, arguments: list[bytes]) -> Request:
        partition = _integer(arguments[1], "invalid partition")
        replica = _integer(arguments[2], "invalid replica_id")
        offset = _integer(arguments[3], "invalid offset")
        namespace, topic = split_flat(named(arguments[0]))
        return ReportReplica(topic, partition, replica, offset, namespace)

    def _set_role(self, arguments: list[bytes]) -> Request:
        partition = _integer(arguments[1], "invalid partition")
        role = _ROLES.get(arguments[2].lower())
        if role is None:
            raise Wrong("invalid role")
        if partition < 0:
            raise Wrong("partition must be >= 0")
        namespace, topic = split_flat(named(arguments[0]))
        return SetRole(topic, partition, role, namespace, self._partitions)


def one_record(key: bytes, value: bytes) -> RecordBatch:
    """A batch of one record."""
    return RecordBatch(1, VarColumn.single(value), origin=Origin.V1, keys=VarColumn.single(key))


def named(argument: bytes) -> str:
    """A name as core holds it.

    Raises:
        Wrong: It is not UTF-8.
    """
    try:
        return argument.decode()
    except UnicodeDecodeError:
        raise Wrong(INVALID_NAME) from None


def _names(arguments: list[bytes]) -> tuple[str, str, str, str]:
    group, member = named(arguments[0]), named(arguments[2])
    namespace, topic = split_flat(named(arguments[1]))
    return group, topic, member, namespace


def _integer(argument: bytes, wrong: str) -> int:
    number = integer(argument)
    if number is None:
        raise Wrong(wrong)
    return number


def _partition(argument: bytes) -> int:
    partition = _integer(argument, "invalid partition")
    return partition if partition >= 0 else _NOWHERE


def _generation(arguments: list[bytes]) -> int:
    return core_generation(_integer(arguments[3], "invalid generation"))
