"""Walking a segment: every batch or every damage, and nothing in silence."""

from __future__ import annotations

from dragoman.core.batch import Origin, RecordBatch, encode_batch
from dragoman.core.column import VarColumn
from dragoman.core.storage.walk import Broken, Intact, walk


def batch_bytes(base: int, count: int = 1, size: int = 50) -> bytes:
    batch = RecordBatch(count, VarColumn.of([b"v" * size] * count), origin=Origin.NONE)
    batch.place(base_offset=base, timestamp_us=base, log_epoch=0)
    return b"".join(encode_batch(batch, 7, 2))


def walked(data: bytes, *, offset: int = 0, window: int = 1 << 20) -> list[Intact | Broken]:
    def read(length: int, position: int) -> bytes:
        return data[position : position + length]

    return list(walk(read, len(data), 7, 2, offset=offset, window=window))


def shapes(data: bytes, **options: int) -> list[tuple[int, ...] | int]:
    return [
        piece.head.base_offset
        if isinstance(piece, Intact)
        else (piece.first, -1 if piece.last is None else piece.last)
        for piece in walked(data, **options)
    ]


THREE = [batch_bytes(0, 2), batch_bytes(2, 3), batch_bytes(5)]


def test_every_batch_is_found_whatever_the_window() -> None:
    for window in (1, 8, 72, 100, 4096):
        assert shapes(b"".join(THREE), window=window) == [0, 2, 5]


def test_a_damaged_batch_is_named_by_its_offsets_and_the_next_is_found() -> None:
    for window in (1, 100, 4096):
        first, second, third = THREE
        damaged = second[:90] + bytes([second[90] ^ 4]) + second[91:]
        assert shapes(first + damaged + third, window=window) == [0, (2, 4), 5]


def test_a_damaged_end_has_no_known_last_offset() -> None:
    first, second, third = THREE
    assert shapes(first + second + bytes(len(third))) == [0, 2, (5, -1)]
    assert shapes(first + second + third[:-8]) == [0, 2, (5, -1)]


def test_a_missing_batch_is_damage_although_all_others_verify() -> None:
    first, _, third = THREE
    assert shapes(first + third) == [0, (2, 4), 5]


def test_a_batch_that_stands_twice_is_named_and_read_once() -> None:
    first, second, third = THREE
    assert shapes(first + first + second + third) == [0, (2, 1), 2, 5]


def test_a_magic_inside_a_value_is_not_taken_for_a_batch() -> None:
    inner = batch_bytes(3)
    hidden = RecordBatch(1, VarColumn.single(b"DRGB" * 20 + inner[:-8]), origin=Origin.NONE)
    hidden.place(base_offset=0, timestamp_us=0, log_epoch=0)
    data = bytearray(b"".join(encode_batch(hidden, 7, 2)))
    data[20] ^= 1
    assert shapes(bytes(data) + batch_bytes(1)) == [(0, 0), 1]


def test_no_single_flipped_bit_passes_in_silence() -> None:
    data = b"".join(THREE)
    sound = shapes(data)
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit >> 3] ^= 1 << (bit & 7)
        found = shapes(bytes(flipped))
        assert found != sound, bit
        assert sum(isinstance(piece, tuple) for piece in found) == 1, bit
