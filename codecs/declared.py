"""Generates the fast codecs of declared frame bodies: `python -m dragoman.codecs.declared`
(with names of kernels, only those).

It walks a construct declaration and writes one module a body into `codecs/kernels/`: straight-line
code over `struct.Struct`s merged from runs of fixed fields, and slices for fields with a length
prefix. The declaration stays the specification: the generated code accepts, refuses and means the
same, which tests hold it to. What is generated for which body says `codecs.kernel_list`.

A body is a `Struct` whose last member is a list of records: `PrefixedArray(count, Record)`,
`Array(this.count, Record)` with the count in an earlier member, or a `ToEnd(Record)`. Members
before it form the head and may be nested Structs (`topic.kind` becomes `topic_kind`). Understood:
integers, `Flag`, `Bytes(n)`, `BytesInteger(n)`, `Const`, `Prefixed(n, GreedyBytes)` and
`PascalString` (UTF-8); anything else is `Undeclarable`.

A generated module has::

    Head, Columns                       dataclasses: the head's members; a column a record member
    decode(data, at, end)               -> (Head, Columns): a whole body, which ends at `end`
    decode_head(data, at, end)          -> (Head, at): at = where the records begin
    decode_records(data, at, end[, count])  -> Columns: count only for counted bodies
    encode_head(...)                    -> bytes; every member of the head, and the record count
    encode_records(count, *, ...)       -> Rendering: `count` records from columns
    encode_one(*, ...)                  -> bytes: one record from plain values

`data` is `bytes`, of which `data[at:end]` is the body: nothing is copied but the values. Whatever
is wrong raises `codecs.malformed.Malformed(path, at)`, nothing else; counts and lengths are
unsigned and checked against the remaining bytes before anything loops or is allocated. Encoders
raise `struct.error` where a value does not fit its field: the caller checks what its wire can say.

Columns of `Columns`, and what `encode_records` takes for them:

* integer: an `int` (all records the same), a `range` (only members declared to count), or an array;
* length-prefixed: `bytes` (all records the same; b"" is the usual case) or a `VarColumn`; the
  members listed in `Kernel.columns` always come as a `VarColumn`. Absent entries of a `VarColumn`
  are written as empty;
* fixed bytes (and integers wider than 8 bytes, in wire order): the joined bytes of all records;
  written from one value for all, or the joined bytes;
* text: as bytes, proved to be UTF-8. In the head it is a `str`.

Three ways lead through the records, chosen for each batch: one record, read straight; records of
one size, proved and cut by strided slices (`codecs.columnar`); else a straight loop which, once two
records had the same lengths, reads on with structs merged across those lengths for as long as the
guess holds.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

from dragoman.codecs.declaration import Body, Undeclarable
from dragoman.codecs.emission_mixed import MixedEmission
from dragoman.codecs.kernel_list import KERNELS, Kernel

__all__ = ["Undeclarable", "generate", "main"]


def generate(kernel: Kernel, declaration: Any | None = None) -> str:
    """The text of a kernel's module; `declaration` where it is not the one that the kernel names.

    Raises:
        Undeclarable: It holds a construct that has no straight-line form.
    """
    if declaration is None:
        module, _, name = kernel.declaration.partition(":")
        declaration = getattr(import_module(module), name)
    emission = MixedEmission(kernel, Body(declaration))
    emission.types()
    emission.decode_head()
    emission.decode()
    emission.decode_records()
    emission.mixed()
    emission.encode_head()
    emission.encode_one()
    emission.encode_records()
    return emission.text()


def main() -> None:
    """Writes the modules of the kernels named on the command line, or of all; ruff formats them."""
    folder = __file__.rpartition("/")[0] + "/kernels"
    written = []
    for kernel in KERNELS:
        if len(sys.argv) > 1 and kernel.module not in sys.argv:
            continue
        path = f"{folder}/{kernel.module}.py"
        with open(path, "w") as file:
            file.write(generate(kernel))
        written.append(path)
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", *written], check=True)
    print("\n".join(written))


if __name__ == "__main__":
    main()
