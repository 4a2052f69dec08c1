"""`dragoman produce`: write records over any dialect, from arguments or from stdin."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dragoman.cli.asking import HERE, UNSAYABLE, At, complain, show, talk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman.clients.sync import SyncClient

CHUNK_BYTES = 1 << 16
"""What is read from stdin at once: its whole lines are one request."""


def produce(
    topic: str,
    /,
    *values: Annotated[str, Parameter(allow_leading_hyphen=True)],
    key: str | None = None,
    partition: int | None = None,
    compression: str | None = None,
    at: At = HERE,
) -> int:
    """Write records; prints one line of JSON a request, with where they went.

    Parameters
    ----------
    topic
        The topic, as `topic` or `namespace/topic`.
    values
        One record each; `-` stands for every line of stdin.
    key
        The key of every record.
    partition
        Where to write; the server chooses where it is missing.
    compression
        How batches are compressed, in Cursus: gzip, lz4, snappy, snappy-block or zstd.
    """

    if unknown := next((value for value in values if value.startswith("--")), None):
        return complain(f"{unknown} is no option; as a record it comes by stdin (-)", UNSAYABLE)
    if not values:
        return complain("nothing to write: give values, or - for the lines of stdin", UNSAYABLE)

    def action(client: SyncClient) -> None:
        for batch in _batches(values):
            keys = None if key is None else [os.fsencode(key)] * len(batch)
            for produced in client.produce(topic, batch, keys, partition):
                known = produced.base_offset >= 0
                show(
                    {
                        "partition": produced.partition if produced.partition >= 0 else None,
                        "base_offset": produced.base_offset if known else None,
                        "count": produced.count,
                    }
                )
            sys.stdout.flush()

    options = {} if compression is None else {"compression": compression}
    return talk(at, action, **options)


def _batches(values: tuple[str, ...]) -> Iterator[list[bytes]]:
    """The records of the arguments: neighbours together, stdin as it arrives."""
    batch: list[bytes] = []
    for value in values:
        if value == "-":
            if batch:
                yield batch
            batch = []
            yield from lines_of(sys.stdin.fileno())
        else:
            batch.append(os.fsencode(value))
    if batch:
        yield batch


def lines_of(descriptor: int) -> Iterator[list[bytes]]:
    """The whole lines that each read brings, so that a slow writer's lines are not held back."""
    rest = b""
    while data := os.read(descriptor, CHUNK_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]
