"""Every built-in compression opens what it and others made, and never more than it may."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import cramjam
import lz4.frame
import pytest
import zstandard

from dragoman.codecs.builtin_compression import (
    BLOCK_BYTES,
    BLOCKS_MAX,
    BUILT_IN,
    XERIAL_MAGIC,
)
from dragoman.codecs.compression import BadCompression, Compression, registry

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1024 * 1024
BOMB_BYTES = 64 * MIB
LIMIT = 4 * MIB
BLOCKS = ((0, 1), (100 * BLOCK_BYTES, 100), (BOMB_BYTES, BLOCKS_MAX))
"""How many blocks may come for a limit."""
SLACK_BYTES = 16 * MIB
"""What decompressors hold besides their output: windows, blocks, and a copy while they grow."""
TEXT = b'{"order":17,"customer":"anna","amount":12.5}\n' * 100

BOMBS = (
    "gzip",
    "gzip that declares 100 bytes",
    "lz4",
    "lz4 with its size",
    "zstd",
    "zstd with its size",
    "zstd that declares 100 bytes",
    "zstd with a window of 128 MiB",
    "snappy-block",
    "snappy-block that declares 100 bytes",
    "snappy-block that declares 4 GiB",
    "snappy",
    "snappy in many blocks",
)

each = pytest.mark.parametrize("compression", BUILT_IN, ids=lambda one: one.name)


def zstd_stream(data: bytes, level: int = 3) -> bytes:
    """A frame without its content's size, as streaming writers make it."""
    packer = zstandard.ZstdCompressor(level=level).compressobj()
    return packer.compress(data) + packer.flush()


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


def xerial(*blocks: bytes) -> bytes:
    head = XERIAL_MAGIC + bytes((0, 0, 0, 1, 0, 0, 0, 1))
    return head + b"".join([len(block).to_bytes(4, "big") + block for block in blocks])


@each
@pytest.mark.parametrize("body", [b"", b"x", TEXT, bytes(MIB), random.Random(7).randbytes(100_000)])
def test_what_is_compressed_comes_out_again(compression: Compression, body: bytes) -> None:
    packed = compression.compress(body)
    assert packed.startswith(compression.magic)
    assert compression.decompress(packed, len(body)) == body
    assert registry().sniff(packed) is (compression if compression.magic else None)


@each
@pytest.mark.parametrize("size", [1, 2, 4096, 262_144, 1_000_000])
def test_the_limit_is_exact(compression: Compression, size: int) -> None:
    packed = compression.compress(bytes(size))
    assert len(compression.decompress(packed, size)) == size
    for limit in {size - 1, size // 2, 0}:
        with pytest.raises(BadCompression):
            compression.decompress(packed, limit)


@each
def test_nothing_cut_off_is_taken_for_a_whole(compression: Compression) -> None:
    packed = compression.compress(TEXT)
    for size in range(len(packed)):
        if compression.name == "snappy" and size == len(XERIAL_MAGIC) + 8:
            continue  # the head alone is a whole of no blocks
        with pytest.raises(BadCompression):
            compression.decompress(packed[:size], LIMIT)


@each
def test_nothing_may_follow_the_data(compression: Compression) -> None:
    packed = compression.compress(TEXT)
    for rest in (b"x", b"\0", packed):
        if compression.name == "snappy" and rest == packed:
            continue  # see test_a_second_head_is_a_block_that_is_cut_off
        with pytest.raises(BadCompression):
            compression.decompress(packed + rest, LIMIT)


@each
def test_mutations_are_opened_or_refused(compression: Compression) -> None:
    dice = random.Random(compression.name)
    packed = compression.compress(TEXT)
    for _ in range(2_000):
        data = bytearray(packed)
        for _ in range(dice.choice((1, 1, 2, 8))):
            data[dice.randrange(len(data))] = dice.choice(
                (0, 1, 127, 128, 255, dice.randrange(256))
            )
        limit = dice.choice((0, 1, len(TEXT) - 1, len(TEXT), LIMIT))
        try:
            assert len(compression.open(bytes(data), limit)) <= limit
        except BadCompression:
            continue


def _bombs() -> dict[str, bytes]:
    zeros = bytes(BOMB_BYTES)
    gzipped = gzip.compress(zeros, 6, mtime=0)
    sized = zstandard.ZstdCompressor().compress(zeros)
    block = bytes(cramjam.snappy.compress_raw(zeros))
    # The four bytes behind a sized frame's descriptor are its content's size.
    assert sized[4] >> 6 == 2
    return {
        "gzip": gzipped,
        "gzip that declares 100 bytes": gzipped[:-4] + (100).to_bytes(4, "little"),
        "lz4": lz4.frame.compress(zeros, store_size=False),
        "lz4 with its size": lz4.frame.compress(zeros, store_size=True),
        "zstd": zstd_stream(zeros),
        "zstd with its size": sized,
        "zstd that declares 100 bytes": sized[:5] + (100).to_bytes(4, "little") + sized[9:],
        "zstd with a window of 128 MiB": zstd_stream(zeros, 22),
        "snappy-block": block,
        "snappy-block that declares 100 bytes": varint(100) + block[4:],
        "snappy-block that declares 4 GiB": varint((1 << 32) - 1) + block[4:],
        "snappy": xerial(block),
        "snappy in many blocks": xerial(*[bytes(cramjam.snappy.compress_raw(bytes(MIB)))] * 64),
    }


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_costs_no_more_than_its_limit(name: str, bombs: dict[str, bytes]) -> None:
    bomb, compression = bombs[name], registry().named(name.split()[0])

    def explode() -> None:
        with pytest.raises(BadCompression):
            compression.decompress(bomb, LIMIT)

    assert _traced_peak(explode) < LIMIT + SLACK_BYTES
    assert _resident_peak(explode) < LIMIT + SLACK_BYTES


@pytest.fixture(scope="module")
def bombs() -> dict[str, bytes]:
    return _bombs()


def _traced_peak(action: Callable[[], None]) -> int:
    """The most that Python's allocators held meanwhile."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _resident_peak(action: Callable[[], None]) -> int:
    """How much the process grew meanwhile, whoever allocated; 0 where the system does not say."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
    except OSError:
        action()
        return 0
    action()
    return _status("VmHWM") - before


def _status(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if field in line)


# ---------------------------------------------------------------- gzip


def test_gzip_is_made_without_a_time() -> None:
    packed = registry().named("gzip").compress(TEXT)
    assert packed[4:8] == bytes(4)
    assert gzip.decompress(packed) == TEXT


@pytest.mark.parametrize("at", [-8, -4])
def test_a_gzip_member_whose_checksum_or_size_is_wrong_is_refused(at: int) -> None:
    data = bytearray(gzip.compress(TEXT))
    data[at] ^= 1
    with pytest.raises(BadCompression, match="the gzip data is damaged"):
        registry().named("gzip").decompress(bytes(data), LIMIT)


def test_a_zlib_stream_is_no_gzip() -> None:
    with pytest.raises(BadCompression):
        registry().named("gzip").decompress(zlib.compress(TEXT), LIMIT)


# ---------------------------------------------------------------- lz4


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("size", [False, True])
def test_every_kind_of_lz4_frame_is_opened(linked: bool, checksum: bool, size: bool) -> None:
    packed = lz4.frame.compress(
        TEXT * 100,
        block_linked=linked,
        content_checksum=checksum,
        block_checksum=checksum,
        store_size=size,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
    )
    assert registry().named("lz4").decompress(packed, LIMIT) == TEXT * 100


def test_an_lz4_frame_whose_checksum_is_wrong_is_refused() -> None:
    packed = bytearray(registry().named("lz4").compress(TEXT))
    packed[-1] ^= 1
    with pytest.raises(BadCompression, match="the lz4 data is damaged"):
        registry().named("lz4").decompress(bytes(packed), LIMIT)


# ---------------------------------------------------------------- snappy


def test_the_block_of_the_published_go_client_is_opened() -> None:
    golden = bytes.fromhex("171468656c6c6f20420600")
    block = registry().named("snappy-block")
    assert block.decompress(golden, 23) == b"hello hello hello hello"
    assert block.compress(b"hello hello hello hello") == golden


def test_xerial_blocks_of_any_size_and_version_are_opened() -> None:
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in (b"", b"a", TEXT)]
    data = XERIAL_MAGIC + b"\xff" * 8 + xerial(*blocks)[16:]
    assert registry().named("snappy").decompress(data, LIMIT) == b"a" + TEXT


def test_a_second_head_is_a_block_that_is_cut_off() -> None:
    packed = registry().named("snappy").compress(TEXT)
    with pytest.raises(BadCompression, match="cut off inside a block"):
        registry().named("snappy").decompress(packed + packed, LIMIT)


def test_xerial_blocks_are_counted() -> None:
    empty = bytes(cramjam.snappy.compress_raw(b""))
    snappy = registry().named("snappy")
    for limit, blocks in BLOCKS:
        assert snappy.decompress(xerial(*[empty] * blocks), limit) == b""
        with pytest.raises(BadCompression, match=f"more than {blocks} blocks"):
            snappy.decompress(xerial(*[empty] * (blocks + 1)), limit)


def test_xerial_blocks_share_one_limit() -> None:
    block = bytes(cramjam.snappy.compress_raw(bytes(1000)))
    snappy = registry().named("snappy")
    assert len(snappy.decompress(xerial(block, block), 2000)) == 2000
    with pytest.raises(BadCompression, match="more than 1999 bytes come out of the snappy data"):
        snappy.decompress(xerial(block, block), 1999)


# ---------------------------------------------------------------- zstd


def test_a_zstd_frame_without_its_size_is_opened() -> None:
    zstd = registry().named("zstd")
    assert zstd.decompress(zstd_stream(TEXT), len(TEXT)) == TEXT
    assert zstd.decompress(zstd_stream(b""), 0) == b""


def test_a_zstd_frame_that_declares_more_than_it_holds_is_refused() -> None:
    packed = bytearray(zstandard.ZstdCompressor().compress(TEXT))
    assert packed[4] >> 6 == 1, "two bytes of size, which count from 256"
    packed[5:7] = (len(TEXT) - 256 + 1).to_bytes(2, "little")
    with pytest.raises(BadCompression, match="the zstd data is damaged"):
        registry().named("zstd").decompress(bytes(packed), LIMIT)


def test_a_zstd_frame_whose_checksum_is_wrong_is_refused() -> None:
    packed = bytearray(registry().named("zstd").compress(TEXT))
    packed[-1] ^= 1
    with pytest.raises(BadCompression):
        registry().named("zstd").decompress(bytes(packed), LIMIT)


def test_a_zstd_frame_with_too_large_a_window_is_refused() -> None:
    with pytest.raises(BadCompression, match="a window of more than 8388608 bytes"):
        registry().named("zstd").decompress(zstd_stream(TEXT, 22), LIMIT)


@pytest.mark.parametrize("text", [b"", TEXT])
@pytest.mark.parametrize("sized", [False, True])
def test_nothing_may_follow_a_zstd_frame_whether_it_says_its_size_or_not(
    text: bytes, sized: bool
) -> None:
    frame = zstandard.ZstdCompressor().compress(text) if sized else zstd_stream(text)
    for rest in (frame, b"x", bytes(10)):
        with pytest.raises(BadCompression, match="not one whole frame"):
            registry().named("zstd").decompress(frame + rest, LIMIT)


def test_zstd_blocks_are_counted() -> None:
    head = bytes.fromhex("28b52ffd0058")
    zstd = registry().named("zstd")
    for limit, blocks in BLOCKS:
        assert zstd.decompress(head + bytes(3) * (blocks - 1) + b"\1\0\0", limit) == b""
        with pytest.raises(BadCompression, match=f"more than {blocks} blocks"):
            zstd.decompress(head + bytes(3) * blocks + b"\1\0\0", limit)
