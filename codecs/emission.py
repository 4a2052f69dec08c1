"""Writes the types, the head and the encoders of a generated codec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.codecs.declaration import Undeclarable

if TYPE_CHECKING:
    from dragoman.codecs.declaration import Body, Field
    from dragoman.codecs.kernel_list import Kernel


class Source:
    """Lines of a module under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, line: str = "") -> None:
        self.lines.append("    " * self.depth + line if line else "")

    def indent(self, line: str) -> None:
        self(line)
        self.depth += 1

    def dedent(self, by: int = 1) -> None:
        self.depth -= by


def scalar_type(field: Field) -> str:
    if field.text:
        return "str"
    if field.variable or field.is_raw:
        return "bytes"
    return "bool" if field.code == "?" else "int"


def plus(base: str, offset: int) -> str:
    return f"{base} + {offset}" if offset else base


class Emission:
    """What the writers of all parts share: the lines so far, and what they import."""

    def __init__(self, kernel: Kernel, body: Body) -> None:
        self.kernel = kernel
        self.body = body
        self.out = Source()
        self.unpackers: dict[str, str] = {}
        self.packers: dict[str, str] = {}
        self.imports: set[str] = set()
        names = {field.name for field in body.record}
        for hint in (kernel.varying, kernel.steady, kernel.columns, kernel.counting):
            self._check_names(hint, names)
        self.columns = [field for field in body.record if field.constant is None]
        self.size_min = sum(field.size for field in body.record)
        if not self.size_min:
            raise Undeclarable("a record has at least one byte")

    def _check_names(self, hint: tuple[str, ...], names: set[str]) -> None:
        if unknown := set(hint) - names:
            raise Undeclarable(f"{self.kernel.module}: no record member {sorted(unknown)}")

    def use(self, name: str) -> str:
        """A helper of `codecs.columnar`, imported by the module."""
        self.imports.add(name)
        return name

    @property
    def counted(self) -> bool:
        return self.body.count_index is not None

    def unpacker(self, form: str) -> str:
        return self.unpackers.setdefault(form, f"_u{len(self.unpackers)}")

    def packer(self, form: str) -> str:
        return self.packers.setdefault(form, f"_p{len(self.packers)}")

    def text(self) -> str:
        """The module's text so far."""
        return "\n".join(self.preamble() + self.out.lines) + "\n"

    def preamble(self) -> list[str]:
        order = self.body.order
        lines = [
            f'"""The codec of `{self.kernel.declaration}`, generated from it; not to be edited.',
            "",
            "Written by `python -m dragoman.codecs.declared`, which documents every name here.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            "from dataclasses import dataclass",
            "from functools import lru_cache",
            "from itertools import repeat",
            "from struct import Struct, error",
            "from typing import TYPE_CHECKING, Any, NoReturn",
            "",
        ]
        if not self._mentions("lru_cache"):
            lines.remove("from functools import lru_cache")
        if not self._mentions("repeat("):
            lines.remove("from itertools import repeat")
        typed = [name for name in ("Any", "NoReturn") if self._mentions(name)]
        lines[lines.index("from typing import TYPE_CHECKING, Any, NoReturn")] = (
            f"from typing import {', '.join(['TYPE_CHECKING', *typed])}"
        )
        helpers = sorted(self.imports, key=lambda name: (name[0].islower(), name))
        lines.append(f"from dragoman.codecs.columnar import {', '.join(helpers)}")
        lines.append("from dragoman.codecs.malformed import Part, diagnose, walk")
        if self._mentions("VarColumn"):
            lines.append("from dragoman.core.column import VarColumn")
        lines += [
            "",
            "if TYPE_CHECKING:",
            "    from dragoman.codecs.rendering import Rendering",
            "",
        ]
        for form, name in self.unpackers.items():
            lines.append(f'{name} = Struct("{order}{form}").unpack_from')
        for form, name in self.packers.items():
            lines.append(f'{name} = Struct("{order}{form}").pack')
        for name, fields in (("_HEAD", self.body.head), ("_RECORD", self.body.record)):
            lines.append(f"{name} = (")
            lines += [f"    {self._part(field)}," for field in fields]
            lines.append(")")
        return lines

    def _mentions(self, name: str) -> bool:
        return any(name in line for line in self.out.lines)

    def _part(self, field: Field) -> str:
        given = [repr(field.name)]
        if field.variable:
            given.append(f'prefix="{self.body.order}{field.code}"')
        else:
            given.append(f"size={field.size}")
        if field.constant is not None:
            given.append(f"constant={field.constant!r}")
        if field.text:
            given.append("text=True")
        return f"Part({', '.join(given)})"

    # ------------------------------------------------------------ types

    def types(self) -> None:
        out = self.out
        out()
        out()
        out("@dataclass(slots=True)")
        out.indent("class Head:")
        out('"""The members before the records."""')
        out()
        shown = [field for field in self.body.head if field.constant is None]
        for field in shown:
            out(f"{field.attribute}: {scalar_type(field)}")
        out.dedent()
        out()
        out()
        out("@dataclass(slots=True)")
        out.indent("class Columns:")
        out('"""The records by column."""')
        out()
        out("count: int")
        for field in self.columns:
            out(f"{field.attribute}: {self._column_type(field)}")
        out.dedent()
        out()

    def _column_type(self, field: Field) -> str:
        if field.variable:
            return "VarColumn" if field.name in self.kernel.columns else self.use("Vars")
        return "bytes" if field.is_raw else self.use("Ints")

    # ------------------------------------------------------------ decoding: the head

    def decode_head(self) -> None:
        out = self.out
        out()
        out.indent("def decode_head(data: bytes, at: int, end: int) -> tuple[Head, int]:")
        out('"""The head, and where the records begin."""')
        path = "_fail_head(data, at, end)"
        if not self.body.head:
            out("return Head(), at")
            out.dedent()
            return
        self.straight(self.body.head, path, slices=True)
        out.indent("if stop > end:")
        out(path)
        out.dedent()
        for index, field in enumerate(self.body.head):
            if field.text:
                out.indent("try:")
                out(f"t{index} = v{index}.decode()")
                out.dedent()
                out.indent("except UnicodeDecodeError:")
                out(path)
                out.dedent()
        values = [
            f"t{index}" if field.text else f"v{index}"
            for index, field in enumerate(self.body.head)
            if field.constant is None
        ]
        out(f"return Head({', '.join(values)}), stop")
        out.dedent()
        out()
        out()
        out.indent("def _fail_head(data: bytes, at: int, end: int) -> NoReturn:")
        out("walk(_HEAD, data, at, end)")
        out('raise AssertionError("the fields read one by one are sound")')
        out.dedent()

    def straight(self, fields: list[Field], fail: str, *, slices: bool) -> None:
        """Reads fields one after the other: v<i> values, n<i> lengths, a<i> starts, e<i> ends; the
        end in `stop`.

        Args:
            fields: All of a structure.
            fail: The statement for what is wrong.
            slices: Cut variable ones.
        """
        out = self.out
        out.indent("try:")
        base, off = "at", 0
        run: list[tuple[str, str]] = []
        run_at = (base, 0)
        tails: list[tuple[str, str]] = []
        for index, field in enumerate(fields):
            if field.variable:
                run.append((field.code, f"n{index}"))
                self._unpack(run, run_at)
                run = []
                out(f"a{index} = {plus(base, off + field.size)}")
                out(f"e{index} = a{index} + n{index}")
                if slices:
                    out(f"v{index} = data[a{index} : e{index}]")
                base, off = f"e{index}", 0
                run_at = (base, 0)
            else:
                run.append((field.code, f"v{index}"))
                off += field.size
                if field.constant is not None:
                    tails.append((f"v{index}", repr(field.constant)))
        self._unpack(run, run_at)
        out.dedent()
        out.indent("except error:")
        out(fail)
        out.dedent()
        out(f"stop = {plus(base, off)}")
        for name, constant in tails:
            out.indent(f"if {name} != {constant}:")
            out(fail)
            out.dedent()

    def _unpack(self, run: list[tuple[str, str]], at: tuple[str, int]) -> None:
        if not run:
            return
        form = "".join(code for code, _ in run)
        names = ", ".join(name for _, name in run) + ("," if len(run) == 1 else "")
        target = f"({names})" if len(run) == 1 else names
        self.out(f"{target} = {self.unpacker(form)}(data, {plus(*at)})")

    # ------------------------------------------------------------ encoding

    def encode_head(self) -> None:
        out = self.out
        out()
        out()
        shown = [field for field in self.body.head if field.constant is None]
        given = ", ".join(f"{field.attribute}: {scalar_type(field)}" for field in shown)
        out.indent(f"def encode_head({given}) -> bytes:")
        out('"""The members before the records."""')
        for field in shown:
            if field.text:
                out(f"{field.attribute}_bytes = {field.attribute}.encode()")
        out(f"return {self._packed(self.body.head)}")
        out.dedent()

    def encode_one(self) -> None:
        out = self.out
        out()
        out()
        given = ", ".join(
            f"{field.attribute}: {'bytes' if field.variable or field.is_raw else 'int'}"
            for field in self.columns
        )
        out.indent(f"def encode_one(*, {given}) -> bytes:")
        out('"""One record from plain values."""')
        out(f"return {self._packed(self.body.record, text=False)}")
        out.dedent()

    def _packed(self, fields: list[Field], *, text: bool = True) -> str:
        parts: list[str] = []
        form, arguments = "", []
        for field in fields:
            name = field.attribute + ("_bytes" if field.text and text else "")
            if field.variable:
                arguments.append(f"len({name})")
                parts.append(f"{self.packer(form + field.code)}({', '.join(arguments)})")
                parts.append(name)
                form, arguments = "", []
            else:
                form += field.code
                arguments.append(name if field.constant is None else repr(field.constant))
        if form:
            parts.append(f"{self.packer(form)}({', '.join(arguments)})")
        if not parts:
            return 'b""'
        return parts[0] if len(parts) == 1 else f'b"".join(({", ".join(parts)}))'

    def encode_records(self) -> None:
        out = self.out
        out()
        out()
        out.indent("def encode_records(")
        out("count: int,")
        out("*,")
        for field in self.columns:
            if field.variable:
                kind = self.use("Vars")
            else:
                kind = "bytes | memoryview" if field.is_raw else self.use("IntsIn")
            out(f"{field.attribute}: {kind},")
        out.dedent()
        out.indent(") -> Rendering:")
        out('"""`count` records from columns."""')
        out(f'writer = {self.use("Writer")}(count, "{self.body.order}")')
        for field in self.body.record:
            if field.constant is not None:
                out(f"writer.literal({field.constant!r})")
            elif field.variable:
                out(f'writer.var("{field.code}", {field.attribute})')
            elif field.is_raw:
                out(f"writer.raw({field.size}, {field.attribute})")
            else:
                out(f'writer.ints("{field.code}", {field.attribute})')
        out("return writer.done()")
        out.dedent()
