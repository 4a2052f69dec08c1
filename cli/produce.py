"""`dragoman produce`: write records over any dialect, from arguments or from stdin."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from dragoman.cli.asking import HERE, UNSAYABLE, At, complain, guarded, reach, show
from dragoman.clients.producer import connect_producer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman.core.calls import Produced

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
    """Write records; prints one line of JSON for what is acknowledged together, with where it went.

    What is not acknowledged is sent again, in Cursus until it is there once, whatever breaks
    meanwhile.

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
        How batches are compressed, in Cursus: gzip, lz4, snappy or zstd; snappy-block where the
        server is set to it.
    """

    if unknown := next((value for value in values if value.startswith("--")), None):
        return complain(f"{unknown} is no option; as a record it comes by stdin (-)", UNSAYABLE)
    if not values:
        return complain("nothing to write: give values, or - for the lines of stdin", UNSAYABLE)

    options: dict[str, Any] = {} if compression is None else {"compression": compression}

    def action() -> None:
        reach(at)
        opening = connect_producer(at.dialect, at.host, at.port, **at.secured, **options)
        with opening as producer:
            for batch in _batches(values):
                keys = None if key is None else [os.fsencode(key)] * len(batch)
                for produced in producer.produce(topic, batch, keys, partition):
                    show(_row(produced))
                sys.stdout.flush()

    return guarded(at, action)


def _row(produced: Produced) -> dict[str, int | None]:
    """Where records went, as far as the dialect tells."""
    return {
        "partition": produced.partition if produced.partition >= 0 else None,
        "base_offset": produced.base_offset if produced.base_offset >= 0 else None,
        "count": produced.count,
    }


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
