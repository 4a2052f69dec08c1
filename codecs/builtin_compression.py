"""The compressions that every gateway opens: gzip, LZ4, two of Snappy, and Zstandard.

Each opens exactly one whole piece of data, and makes no more than it may: by a decompressor that
stops, or, where the format says first what comes out and the library believes it, by looking first.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import Final

import cramjam
import lz4.frame
import zstandard

from dragoman.codecs.compression import BadCompression, Compression, too_large

BLOCK_BYTES: Final = 256
"""So many bytes have to be allowed for every block of a xerial or zstd frame: the smallest blocks,
of which nothing comes out, cost a step of a loop for every three bytes."""
BLOCKS_MAX: Final = 16_384
"""Of one such frame, whatever is allowed: 64 MiB in blocks of 4 KiB."""

GZIP_LEVEL: Final = 6
ZSTD_LEVEL: Final = 3
ZSTD_WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024
"""What RFC 8878 asks every decoder to take; a larger window only as far as it may come out."""

_ZSTD_REPEATED: Final = 1
"""The type of a block that is one byte, repeated."""

XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
XERIAL_BLOCK_BYTES: Final = 32 * 1024
"""What the writers of this framing cut their data into."""
_XERIAL_HEAD: Final = XERIAL_MAGIC + Struct(">II").pack(1, 1)
_U32: Final = Struct(">I")
_VARINT_BYTES_MAX: Final = 5


# ---------------------------------------------------------------- gzip


def gzip_compress(data: bytes) -> bytes:
    """One member, without a time."""
    return zlib.compress(data, GZIP_LEVEL, wbits=31)


def gzip_decompress(data: bytes, limit: int) -> bytes:
    """One whole member, whose checksum and size zlib checks."""
    inflater = zlib.decompressobj(wbits=31)
    try:
        # One byte more than allowed lets the trailer be read, and tells what is too large.
        opened = inflater.decompress(data, limit + 1)
    except zlib.error:
        raise BadCompression("the gzip data is damaged") from None
    if len(opened) > limit:
        raise too_large("gzip", limit)
    if not inflater.eof or inflater.unused_data:
        raise BadCompression("the gzip data is not one whole member")
    return opened


# ---------------------------------------------------------------- lz4


def lz4_compress(data: bytes) -> bytes:
    """One frame, with its content's size and checksum."""
    packed: bytes = lz4.frame.compress(data, content_checksum=True)
    return packed


def lz4_decompress(data: bytes, limit: int) -> bytes:
    """One whole frame; what it says of its size is not believed."""
    opener = lz4.frame.LZ4FrameDecompressor()
    try:
        opened: bytes = opener.decompress(data, max_length=limit + 1)
    except RuntimeError:
        raise BadCompression("the lz4 data is damaged") from None
    if len(opened) > limit:
        raise too_large("lz4", limit)
    if not opener.eof or opener.unused_data:
        raise BadCompression("the lz4 data is not one whole frame")
    return opened


# ---------------------------------------------------------------- snappy


def snappy_block_compress(data: bytes) -> bytes:
    """One block without any framing."""
    return bytes(cramjam.snappy.compress_raw(data))


def snappy_block_decompress(data: bytes, limit: int) -> bytes:
    """One block, which begins with its size: the library allocates that, and makes no more."""
    if _declared(data) > limit:
        raise too_large("snappy", limit)
    try:
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError:
        raise BadCompression("the snappy data is damaged") from None


def _declared(block: bytes) -> int:
    """How much a block says comes out."""
    size = 0
    for index, byte in enumerate(block[:_VARINT_BYTES_MAX]):
        size |= (byte & 127) << 7 * index
        if byte < 128:
            return size
    raise BadCompression("the snappy data is damaged")


def snappy_compress(data: bytes) -> bytes:
    """Blocks in the framing of the Java library, which is written where snappy says how."""
    parts = [_XERIAL_HEAD]
    for at in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = snappy_block_compress(data[at : at + XERIAL_BLOCK_BYTES])
        parts += (_U32.pack(len(block)), block)
    return b"".join(parts)


def snappy_decompress(data: bytes, limit: int) -> bytes:
    """All blocks of one such framing, whatever its version words say."""
    at, size = len(_XERIAL_HEAD), len(data)
    if not data.startswith(XERIAL_MAGIC) or size < at:
        raise BadCompression("the snappy data has no whole head")
    parts: list[bytes] = []
    blocks_max = _blocks_max(limit)
    left = limit
    while at < size:
        begin = at + 4
        end = begin + _U32.unpack_from(data, at)[0] if begin <= size else size + 1
        if end > size:
            raise BadCompression("the snappy data is cut off inside a block")
        if len(parts) == blocks_max:
            raise BadCompression(f"the snappy data has more than {blocks_max} blocks")
        block = data[begin:end]
        if _declared(block) > left:
            raise too_large("snappy", limit)
        parts.append(snappy_block_decompress(block, left))
        left -= len(parts[-1])
        at = end
    return b"".join(parts)


# ---------------------------------------------------------------- zstd


def zstd_compress(data: bytes) -> bytes:
    """One frame, with its content's size and checksum."""
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True).compress(data)


def zstd_decompress(data: bytes, limit: int) -> bytes:
    """One whole frame. The library allocates the size that a frame declares, so it is read first;
    content beyond that size, or beyond the limit where there is none, is an error to it."""
    window = max(ZSTD_WINDOW_BYTES_MAX, limit)
    try:
        head = zstandard.get_frame_parameters(data)
        declared = head.content_size
        if declared != zstandard.CONTENTSIZE_UNKNOWN and declared > limit:
            raise too_large("zstd", limit)
        if head.window_size > window:
            raise BadCompression(f"the zstd data needs a window of more than {window} bytes")
        begin, tail = zstandard.frame_header_size(data), 4 if head.has_checksum else 0
        if _zstd_blocks_end(data, begin, _blocks_max(limit)) + tail != len(data):
            raise BadCompression("the zstd data is not one whole frame")
        # A limit of zero would mean to the library that there is none.
        opener = zstandard.ZstdDecompressor(max_window_size=window)
        opened = opener.decompress(data, max_output_size=max(limit, 1))
    except zstandard.ZstdError:
        raise BadCompression(
            f"the zstd data is damaged, or more than {limit} bytes come out of it"
        ) from None
    if len(opened) > limit:
        raise too_large("zstd", limit)
    return opened


def _zstd_blocks_end(data: bytes, at: int, blocks_max: int) -> int:
    """Where a frame's last block ends: the library overlooks what follows a frame without a size.

    Spec: RFC 8878 3.1.1.2.
    """
    for _ in range(blocks_max):
        head = int.from_bytes(data[at : at + 3], "little")
        at += 3 + (1 if head >> 1 & 3 == _ZSTD_REPEATED else head >> 3)
        if head & 1 or at >= len(data):
            return at
    raise BadCompression(f"the zstd data has more than {blocks_max} blocks")


def _blocks_max(limit: int) -> int:
    """How many blocks may make so many bytes."""
    return max(min(limit // BLOCK_BYTES, BLOCKS_MAX), 1)


BUILT_IN: Final = (
    Compression("gzip", b"\x1f\x8b", gzip_compress, gzip_decompress),
    Compression("lz4", b"\x04\x22\x4d\x18", lz4_compress, lz4_decompress),
    Compression("snappy", XERIAL_MAGIC, snappy_compress, snappy_decompress),
    Compression("snappy-block", b"", snappy_block_compress, snappy_block_decompress),
    Compression("zstd", b"\x28\xb5\x2f\xfd", zstd_compress, zstd_decompress),
)
"""In the order in which they are named to people."""
