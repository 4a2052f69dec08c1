"""V1 as the gateway and the clients know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.codecs.base import Dialect, Limits
from dragoman.codecs.v1.codec import LOOPBACK, V1Codec
from dragoman.codecs.v1.speaker import V1Speaker
from dragoman.codecs.v1.translate import ERRORS

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULTS: dict[str, int | bool | str] = {
    "partitions": 3,
    "escape_marker": True,
    "escape_spaces": False,
    "replication": LOOPBACK,
}
_REPLICATION = {True: True, False: False, "true": True, "false": False, LOOPBACK: LOOPBACK}
_PARTITIONS_MAX = 1024


def options(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Validates the options of a V1 listener and fills in the defaults.

    Options:
        partitions: Of a topic that PRODUCE or CONSUME creates; 3.
        escape_marker: Name the escaped records of a CONSUME reply; true.
        escape_spaces: Escape spaces inside values too, for readers that split on them; false.
        replication: Serve REPLICA_FETCH and SET_PARTITION_ROLE, which concern clients of every
            dialect: true, false, or only where the listener is on loopback ("loopback", the
            default).

    Raises:
        ValueError: An option is unknown, or a value is not its own.
    """
    found = {**_DEFAULTS, **given}
    for name, value in given.items():
        if name not in _DEFAULTS:
            raise ValueError(f"unknown option {name!r}; V1 has {', '.join(_DEFAULTS)}")
        if name == "replication":
            if type(value) not in (bool, str) or value not in _REPLICATION:
                raise ValueError(f"replication is {value!r}, but is true, false or {LOOPBACK!r}")
            found[name] = _REPLICATION[value]
        elif type(value) is not type(_DEFAULTS[name]):
            kind = type(_DEFAULTS[name]).__name__
            raise ValueError(f"{name} is {value!r}, but takes a value of type {kind}")
        if name == "partitions" and not 1 <= value <= _PARTITIONS_MAX:
            raise ValueError(f"partitions is {value}, but must be from 1 to {_PARTITIONS_MAX}")
    return found


DIALECT = Dialect(
    name="v1",
    port=9092,
    limits=Limits(frame_bytes_max=2 * 1024 * 1024, reply_bytes_max=1024 * 1024),
    codec=V1Codec,
    speaker=V1Speaker,
    errors=ERRORS,
    options=options,
)
