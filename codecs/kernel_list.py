"""Which declared bodies get generated kernels, and what is known of their fields.

The hints speed up batches of mixed sizes and never change what is accepted:

* `varying`: variable fields whose sizes differ from record to record;
* `steady`: fields that mostly repeat the previous record's value.

Two more shape the columns: `columns` are variable fields that always come as a `VarColumn`, and
`counting` integers come as a `range` where they count upwards.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kernel:
    """One declared body and its module in `codecs/kernels/`.

    Attributes:
        module: Name of the generated module.
        declaration: `module:NAME` of the construct, a Struct whose last member is the records.
        varying, steady, columns, counting: Names of record members; see above.
    """

    module: str
    declaration: str
    varying: tuple[str, ...] = ()
    steady: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    counting: tuple[str, ...] = ()


_CURSUS_STEADY = ("offset", "producer_id", "epoch")
_CURSUS_EVENT = ("event_type", "schema_version", "aggregate_version", "metadata")


def _cursus(layout: str, steady: tuple[str, ...]) -> Kernel:
    return Kernel(
        f"cursus_{layout}",
        f"dragoman.codecs.cursus.wire:BATCH_{layout.upper()}",
        varying=("key", "payload"),
        steady=steady,
        columns=("payload",),
        counting=("offset", "seq_num"),
    )


KERNELS = (
    _cursus("l1", _CURSUS_STEADY),
    _cursus("l2", _CURSUS_STEADY),
    _cursus("l3", _CURSUS_STEADY + _CURSUS_EVENT),
    _cursus("document", _CURSUS_STEADY + _CURSUS_EVENT),
    Kernel(
        "iggy_send",
        "dragoman.codecs.iggy.wire:SEND_MESSAGES",
        varying=("payload",),
        columns=("payload",),
    ),
    Kernel(
        "iggy_poll",
        "dragoman.codecs.iggy.wire:POLLED_MESSAGES",
        varying=("payload",),
        steady=("state", "timestamp_us"),
        columns=("payload",),
        counting=("offset",),
    ),
)
