"""The Cursus batch in its four layouts, declared once with construct.

This is the specification in code: the oracle of the differential tests, what the straight-line code
of `codecs.kernels` is generated from, and what a dissector walks. Framing is not here (a frame is
`u32 length | body`, both ways); neither is any rule about values: an unknown acks or a partition
that does not exist parse, and `translate` refuses them in the dialect's own words.

L3 is what clients and brokers of the published generation exchange; L2 lacks the event fields, L1
also the idempotent byte. The Cursus document writes partition and acks as text with 16-bit lengths.
All integers are big-endian; lengths and counts are unsigned, and a batch ends where its frame ends.
"""

from __future__ import annotations

from construct import (
    Const,
    Flag,
    GreedyBytes,
    Int8ub,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    Int64ub,
    Prefixed,
    PrefixedArray,
    Struct,
)

MAGIC = b"\xba\x7c"
FRAME_BYTES_MAX = 64 * 1024 * 1024
"""The largest frame without its length; clients of the published generation refuse larger ones."""
COUNT_MAX = 100_000
"""The most messages of one batch."""

TINY = Prefixed(Int8ub, GreedyBytes)
"""Bytes with a length of one byte: acks in the code's layouts."""

SHORT = Prefixed(Int16ub, GreedyBytes)
"""Bytes with a length of two bytes: every string of a batch."""

LONG = Prefixed(Int32ub, GreedyBytes)
"""Bytes with a length of four bytes: payloads."""

MESSAGE_L1 = Struct(
    "offset" / Int64ub,
    "seq_num" / Int64ub,
    "producer_id" / SHORT,
    "key" / SHORT,
    "epoch" / Int64sb,
    "payload" / LONG,
)
MESSAGE_L3 = Struct(
    *MESSAGE_L1.subcons,
    "event_type" / SHORT,
    "schema_version" / Int32ub,
    "aggregate_version" / Int64ub,
    "metadata" / SHORT,
)

BATCH_L1 = Struct(
    "magic" / Const(MAGIC),
    "topic" / SHORT,
    "partition" / Int32sb,
    "acks" / TINY,
    "seq_start" / Int64ub,
    "seq_end" / Int64ub,
    "messages" / PrefixedArray(Int32ub, MESSAGE_L1),
)
BATCH_L2 = Struct(
    "magic" / Const(MAGIC),
    "topic" / SHORT,
    "partition" / Int32sb,
    "acks" / TINY,
    "idempotent" / Flag,
    "seq_start" / Int64ub,
    "seq_end" / Int64ub,
    "messages" / PrefixedArray(Int32ub, MESSAGE_L1),
)
BATCH_L3 = Struct(
    "magic" / Const(MAGIC),
    "topic" / SHORT,
    "partition" / Int32sb,
    "acks" / TINY,
    "idempotent" / Flag,
    "seq_start" / Int64ub,
    "seq_end" / Int64ub,
    "messages" / PrefixedArray(Int32ub, MESSAGE_L3),
)
BATCH_DOCUMENT = Struct(
    "magic" / Const(MAGIC),
    "topic" / SHORT,
    "partition" / SHORT,
    "acks" / SHORT,
    "idempotent" / Flag,
    "seq_start" / Int64ub,
    "seq_end" / Int64ub,
    "messages" / PrefixedArray(Int32ub, MESSAGE_L3),
)

LAYOUTS = {"l3": BATCH_L3, "l2": BATCH_L2, "l1": BATCH_L1, "document": BATCH_DOCUMENT}
"""Every layout by its name, in the order in which the code's ones are tried."""
