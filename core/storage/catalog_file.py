"""The catalog at rest: the state at one journal sequence, as text that people can read.

::

    catalog/<sequence>.json := json "\\n" "crc32c:" 8 hex digits "\\n"
    json := {"format": 1, "sequence", "group", "incarnation", "clean",
             "state": core.catalog.Catalog.to_json(),
             "logs": [{"topic_id", "partition", "born",
                       "segments": [[base offset, bytes, next offset, newest timestamp], ...]}]}

A segment that a pass of compaction wrote has three more: its number, whether it is clean, and its
newest tombstone.

`sequence` is the newest one that it holds and `group` the journal group that ends with it. `clean`
is written by an orderly stop: nothing follows in the journal. The checksum is over the bytes before
it. The file before it, and the journal since that one, stay until the next has succeeded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from crc32c import crc32c

from dragoman.core.storage.disk import read_file, replace_file

if TYPE_CHECKING:
    from dragoman.core.storage.disk import Disk
    from dragoman.core.storage.layout import Layout

FORMAT = 1
_LINE_BYTES = len(b"crc32c:00000000\n")

_PLAIN_FIELDS = 4


class SegmentRow(NamedTuple):
    """One segment file; the fields are those of `segment.Segment`."""

    base: int
    size: int
    next_offset: int
    max_timestamp_us: int
    number: int = 0
    is_clean: bool = False
    tombstone_us: int = 0


class LogRow(NamedTuple):
    """One partition's files."""

    topic_id: int
    partition: int
    born: int
    segments: list[SegmentRow]


class CatalogImage(NamedTuple):
    """One catalog file's contents."""

    sequence: int
    group: int
    incarnation: int
    clean: bool
    state: dict[str, Any]
    logs: list[LogRow]


class CatalogError(ValueError):
    """A catalog file does not verify."""


def with_checksum(data: bytes) -> bytes:
    """The text with its checksum line."""
    data += b"\n"
    return data + b"crc32c:%08x\n" % crc32c(data)


def without_checksum(data: bytes) -> bytes:
    """The text without its checksum line.

    Raises:
        CatalogError: The line is missing or wrong.
    """
    text, line = data[:-_LINE_BYTES], data[-_LINE_BYTES:]
    if line != b"crc32c:%08x\n" % crc32c(text):
        raise CatalogError("the checksum does not match")
    return text


def write_catalog(disk: Disk, layout: Layout, image: CatalogImage) -> None:
    """Puts a catalog in its place, durably."""
    data = orjson.dumps(
        {
            "format": FORMAT,
            "sequence": image.sequence,
            "group": image.group,
            "incarnation": image.incarnation,
            "clean": image.clean,
            "state": image.state,
            "logs": [
                {
                    **row._asdict(),
                    "segments": [s[: None if s.number else _PLAIN_FIELDS] for s in row.segments],
                }
                for row in image.logs
            ],
        }
    )
    replace_file(disk, layout.catalog, f"{image.sequence}.json", with_checksum(data), durable=True)


def catalog_sequences(disk: Disk, layout: Layout) -> list[int]:
    """The sequences of the catalogs that are there, the newest first."""
    names = disk.list(layout.catalog)
    stems = [name.removesuffix(".json") for name in names if name.endswith(".json")]
    return sorted([int(stem) for stem in stems if stem.isdecimal()], reverse=True)


def read_catalog(disk: Disk, layout: Layout, sequence: int) -> CatalogImage:
    """Reads one catalog.

    Raises:
        CatalogError: It does not verify.
    """
    data = orjson.loads(without_checksum(read_file(disk, f"{layout.catalog}/{sequence}.json")))
    if data["format"] != FORMAT or data["sequence"] != sequence:
        raise CatalogError(f"format {data['format']}, sequence {data['sequence']}")
    return CatalogImage(
        sequence,
        data["group"],
        data["incarnation"],
        data["clean"],
        data["state"],
        [
            LogRow(
                row["topic_id"],
                row["partition"],
                row["born"],
                [SegmentRow(*segment) for segment in row["segments"]],
            )
            for row in data["logs"]
        ],
    )
