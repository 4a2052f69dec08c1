"""Writes the decoder of records of mixed sizes: a straight loop, and a guessing one inside it.

Two records whose repeated members (all but the `varying` ones) have the same lengths make it guess
that the next do too: structs are then merged across those members, and neighbours that are `steady`
are compared as one run of bytes with the record before. The first record that differs is read
straight again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.codecs.emission import plus
from dragoman.codecs.emission_records import RecordsEmission

if TYPE_CHECKING:
    from dragoman.codecs.declaration import Field


class MixedEmission(RecordsEmission):
    """Adds `_mixed` and `_shape`."""

    def mixed(self) -> None:
        """The loop over records of different sizes."""
        out = self.out
        kernel = self.kernel
        segments = self._segments()
        speculates = any(
            field.name in kernel.steady or (field.variable and field.name not in kernel.varying)
            for field in self.body.record
        )
        if speculates:
            self._shape(segments)
        out()
        out()
        extra = ", count: int" if self.counted else ""
        out.indent(f"def _mixed(data: bytes, at: int, end: int{extra}) -> Columns:")
        out("begin = at")
        for index, field in enumerate(self.body.record):
            if field.constant is None:
                kind = "bytes" if field.variable or field.is_raw else "int"
                out(f"l{index}: list[{kind}] = []")
                out(f"put{index} = l{index}.append")
        lead = next(i for i, f in enumerate(self.body.record) if self._collected(f))
        if speculates:
            out("guesses = 8")
            if self._guessed():
                out("lengths: tuple[int, ...] = ()")
        out.indent("try:")
        out.indent(f"while len(l{lead}) < count:" if self.counted else "while at < end:")
        self._straight_record()
        if speculates:
            self._speculate(segments, lead)
        else:
            out("at = stop")
        out.dedent(2)
        out.indent("except error:")
        out(self.fail("begin"))
        out.dedent()
        out.indent("if at != end:")
        out(self.fail("begin"))
        out.dedent()
        self._return_mixed(lead)
        out.dedent()

    def _return_mixed(self, lead: int) -> None:
        kernel = self.kernel
        checks = []
        given = [f"len(l{lead})"]
        for index, field in enumerate(self.body.record):
            if field.constant is not None:
                continue
            if field.variable:
                helper = self.use("column_of" if field.name in kernel.columns else "var_of")
                value = f"{helper}(l{index})"
            elif field.is_raw:
                value = f'b"".join(l{index})'
            else:
                counting = field.name in kernel.counting
                value = f'{self.use("ints_of")}("{field.code}", l{index}, {counting})'
            if field.text:
                self.out(f"c{index} = {value}")
                value = f"c{index}"
                checks.append(f"{self.use('is_text')}(c{index})")
            given.append(value)
        self._check_text(checks, "begin")
        self._return_columns(given)

    def _collected(self, field: Field) -> bool:
        """Whether the guessing loop appends this member's value for every record."""
        return field.constant is None and field.name not in self.kernel.steady

    def _straight_record(self) -> None:
        out = self.out
        base, off = "at", 0
        run: list[tuple[str, str]] = []
        run_at = (base, 0)
        constants = []
        for index, field in enumerate(self.body.record):
            if field.variable:
                self._unpack([*run, (field.code, f"n{index}")], run_at)
                run = []
                out(f"a{index} = {plus(base, off + field.size)}")
                out(f"e{index} = a{index} + n{index}")
                out(f"put{index}(data[a{index} : e{index}])")
                base, off = f"e{index}", 0
                run_at = (base, 0)
            else:
                run.append((field.code, f"v{index}"))
                off += field.size
                if field.constant is not None:
                    constants.append(f"v{index} != {field.constant!r}")
        self._unpack(run, run_at)
        out(f"stop = {plus(base, off)}")
        for index, field in enumerate(self.body.record):
            if not field.variable and field.constant is None:
                out(f"put{index}(v{index})")
        if constants:
            out.indent(f"if {' or '.join(constants)}:")
            out("raise error")
            out.dedent()

    def _segments(self) -> list[list[tuple[int, Field]]]:
        """The record, cut after each member whose size varies."""
        segments: list[list[tuple[int, Field]]] = [[]]
        for index, field in enumerate(self.body.record):
            segments[-1].append((index, field))
            if field.variable and field.name in self.kernel.varying:
                segments.append([])
        return [segment for segment in segments if segment]

    def _ends_open(self, segment: list[tuple[int, Field]]) -> bool:
        field = segment[-1][1]
        return field.variable and field.name in self.kernel.varying

    def _tokens(self, segment: list[tuple[int, Field]]) -> list[tuple[str, list[int]]]:
        """A segment as (kind, fields), "steady" neighbours together."""
        tokens: list[tuple[str, list[int]]] = []
        for index, field in segment:
            if field.name in self.kernel.steady or field.constant is not None:
                if tokens and tokens[-1][0] == "steady":
                    tokens[-1][1].append(index)
                else:
                    tokens.append(("steady", [index]))
            elif not field.variable:
                tokens.append(("fixed", [index]))
            elif field.name in self.kernel.varying:
                tokens.append(("open", [index]))
            else:
                tokens.append(("guessed", [index]))
        return tokens

    def _guessed(self) -> list[int]:
        return [
            index
            for index, field in enumerate(self.body.record)
            if field.variable and field.name not in self.kernel.varying
        ]

    def _is_compare(self, segment: list[tuple[int, Field]]) -> bool:
        return [kind for kind, _ in self._tokens(segment)] == ["steady"]

    def _token_size(self, fields: list[int]) -> str:
        record = self.body.record
        size = sum(record[index].size for index in fields)
        lengths = [f"n{index}" for index in fields if record[index].variable]
        return " + ".join([str(size), *lengths])

    def _shape(self, segments: list[list[tuple[int, Field]]]) -> None:
        """The function that merges structs across guessed lengths."""
        out = self.out
        record = self.body.record
        given = ", ".join(f"n{index}: int" for index in self._guessed())
        out()
        out()
        out("@lru_cache(256)")
        out.indent(f"def _shape({given}) -> tuple[Any, ...]:")
        out('"""Structs for records whose repeated members have these lengths, and their sizes."""')
        results = []
        for number, segment in enumerate(segments):
            if self._is_compare(segment):
                results.append(self._token_size([index for index, _ in segment]))
                continue
            form = self.body.order
            for kind, fields in self._tokens(segment):
                field = record[fields[0]]
                if kind == "steady":
                    size = self._token_size(fields)
                    form += f"{size}s" if size.isdigit() else f"{{{size}}}s"
                elif kind == "guessed":
                    form += f"{field.code}{{n{fields[0]}}}s"
                else:
                    form += field.code
            out(
                f's{number} = Struct(f"{form}")' if "{" in form else f's{number} = Struct("{form}")'
            )
            results += [f"s{number}.unpack_from", f"s{number}.size"]
        out(f"return {', '.join(results)}" + ("," if len(results) == 1 else ""))
        out.dedent()

    def _speculate(self, segments: list[list[tuple[int, Field]]], lead: int) -> None:
        """The guessing loop, entered after two records with the same lengths."""
        out = self.out
        guessed = self._guessed()
        lengths = ", ".join(f"n{index}" for index in guessed) + ("," if len(guessed) == 1 else "")
        if guessed:
            out(f"found = ({lengths})")
            out.indent(f"if not guesses or stop > end or (found != lengths and len(l{lead}) > 1):")
            out("lengths = found")
        else:
            out.indent("if not guesses or stop > end:")
        out("at = stop")
        out("continue")
        out.dedent()
        if guessed:
            out("lengths = found")
        out("guesses -= 1")
        places = self._positions()
        for segment in segments:
            for kind, fields in self._tokens(segment):
                if kind == "steady":
                    start, stop = places[fields[0]], self._end_of(fields[-1], places)
                    out(f"k{fields[0]} = data[{start} : {stop}]")
        names = []
        for number, segment in enumerate(segments):
            names += [f"z{number}"] if self._is_compare(segment) else [f"r{number}", f"z{number}"]
        target = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
        out(f"{target} = _shape({', '.join(f'n{index}' for index in guessed)})")
        out(f"known = len(l{lead})")
        out("at = stop")
        out.indent("try:")
        out.indent("for _ in repeat(None, count - known):" if self.counted else "while at < end:")
        self._guessed_record(segments)
        out.dedent(2)
        out.indent("except error:")
        out("guesses = 0  # near the end a guess may reach past it: read on straight")
        out.dedent()
        out(f"more = len(l{lead}) - known")
        for index, field in enumerate(self.body.record):
            if field.name in self.kernel.steady:
                out(f"l{index}.extend(repeat(l{index}[-1], more))")
        out.indent("if more > 8 and guesses:")
        out("guesses = 8")
        out.dedent()

    def _guessed_record(self, segments: list[list[tuple[int, Field]]]) -> None:
        """The inside of the guessing loop: one record, or a break."""
        out = self.out
        base = "at"
        puts: list[str] = []
        for number, segment in enumerate(segments):
            last = segment[-1][0]
            if self._is_compare(segment):
                out(f"e{last} = {base} + z{number}")
                out.indent(f"if data[{base} : e{last}] != k{segment[0][0]}:")
                out("break")
                out.dedent()
                base = f"e{last}"
                continue
            targets: list[str] = []
            compares: list[str] = []
            for kind, fields in self._tokens(segment):
                index = fields[0]
                if kind == "steady":
                    targets.append(f"q{index}")
                    compares.append(f"q{index} != k{index}")
                elif kind == "guessed":
                    targets += [f"m{index}", f"v{index}"]
                    compares.append(f"m{index} != n{index}")
                    puts.append(f"put{index}(v{index})")
                elif kind == "open":
                    targets.append(f"w{index}")
                else:
                    targets.append(f"v{index}")
                    puts.append(f"put{index}(v{index})")
            names = ", ".join(targets) if len(targets) > 1 else f"({targets[0]},)"
            out(f"{names} = r{number}(data, {base})")
            if compares:
                out.indent(f"if {' or '.join(compares)}:")
                out("break")
                out.dedent()
            if self._ends_open(segment):
                out(f"a{last} = {base} + z{number}")
                out(f"e{last} = a{last} + w{last}")
                puts.append(f"put{last}(data[a{last} : e{last}])")
            else:
                out(f"e{last} = {base} + z{number}")
            base = f"e{last}"
        for put in puts:
            out(put)
        out(f"at = {base}")

    def _end_of(self, index: int, places: list[str]) -> str:
        record = self.body.record
        if record[index].variable:
            return f"e{index}"
        return places[index + 1] if index + 1 < len(record) else "stop"
