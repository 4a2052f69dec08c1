"""Writes the decoders of the records: one record, and records of one size."""

from __future__ import annotations

from dragoman.codecs.emission import Emission, plus


class RecordsEmission(Emission):
    """Adds `decode` and `decode_records`."""

    def decode(self) -> None:
        out = self.out
        out()
        out()
        out.indent("def decode(data: bytes, at: int, end: int) -> tuple[Head, Columns]:")
        out('"""A whole body, which ends at `end`."""')
        out("head, at = decode_head(data, at, end)")
        index = self.body.count_index
        if index is None:
            out("return head, decode_records(data, at, end)")
        else:
            count = self.body.head[index].attribute
            out(f"return head, decode_records(data, at, end, head.{count})")
        out.dedent()

    def fail(self, at: str = "at") -> str:
        count = "count" if self.counted else "None"
        name, size_min = self.body.records_name, self.size_min
        return f'diagnose(_RECORD, data, {at}, end, "{name}", {count}, {size_min})'

    def decode_records(self) -> None:
        out = self.out
        out()
        out()
        extra = ", count: int" if self.counted else ""
        out.indent(f"def decode_records(data: bytes, at: int, end: int{extra}) -> Columns:")
        out('"""The records, which end at `end`."""')
        if self.counted:
            out.indent("if count <= 0:")
            out.indent("if count < 0 or at != end:")
            out(self.fail())
            out.dedent()
            out("return _EMPTY")
            out.dedent()
            out.indent(f"if count * {self.size_min} > end - at:")
            out(self.fail())
            out.dedent()
        else:
            out.indent("if at >= end:")
            out.indent("if at > end:")
            out(self.fail())
            out.dedent()
            out("return _EMPTY")
            out.dedent()
        self.straight(self.body.record, self.fail(), slices=False)
        out.indent("if stop == end:" if not self.counted else "if count == 1:")
        if self.counted:
            out.indent("if stop != end:")
            out(self.fail())
            out.dedent()
        self._return_one()
        out.dedent()
        out("stride = stop - at")
        if self.counted:
            conditions = ["stride * count == end - at"]
        else:
            out("count, rest = divmod(end - at, stride)")
            conditions = ["not rest"]
        for place, width in self._places_proved():
            conditions.append(f"{self.use('same')}(data, {place}, end, stride, {width}, count)")
        out.indent(f"if {' and '.join(conditions)}:")
        self._return_even()
        out.dedent()
        out(f"return _mixed(data, at, end{', count' if self.counted else ''})")
        out.dedent()
        self._empty()

    def _positions(self) -> list[str]:
        """Where each field stands in the record read last: for a variable one, its length."""
        base, off = "at", 0
        places = []
        for index, field in enumerate(self.body.record):
            places.append(plus(base, off))
            if field.variable:
                base, off = f"e{index}", 0
            else:
                off += field.size
        return places

    def _places_proved(self) -> list[tuple[str, int]]:
        return [
            (place, field.size)
            for place, field in zip(self._positions(), self.body.record, strict=True)
            if field.variable or field.constant is not None
        ]

    def _return_one(self) -> None:
        given = ["1"]
        checks = []
        for index, field in enumerate(self.body.record):
            if field.constant is not None:
                continue
            if not field.variable:
                given.append(f"v{index}")
            elif field.name in self.kernel.columns:
                given.append(f"VarColumn.single(data[a{index} : e{index}])")
            else:
                given.append(f"data[a{index} : e{index}]")
            if field.text:
                checks.append(f"{self.use('is_text')}(data[a{index} : e{index}])")
        self._check_text(checks)
        self.out(f"return Columns({', '.join(given)})")

    def _return_even(self) -> None:
        swap = self.body.order == ">"
        places = self._positions()
        given = ["count"]
        checks = []
        for index, field in enumerate(self.body.record):
            if field.constant is not None:
                continue
            if field.variable:
                cut = "column_at" if field.name in self.kernel.columns else "var_at"
                value = f"{self.use(cut)}(data, at, a{index}, end, stride, count, n{index})"
            elif field.is_raw:
                value = (
                    f"{self.use('raw_at')}(data, {places[index]}, end, stride, count, {field.size})"
                )
            else:
                counting = field.name in self.kernel.counting
                value = (
                    f"{self.use('ints_at')}(data, {places[index]}, end, stride, count, "
                    f'"{field.code}", v{index}, {swap}, {counting})'
                )
            if field.text:
                self.out(f"c{index} = {value}")
                value = f"c{index}"
                checks.append(f"{self.use('is_text')}(c{index})")
            given.append(value)
        self._check_text(checks)
        self._return_columns(given)

    def _return_columns(self, given: list[str]) -> None:
        self.out.indent("return Columns(")
        for value in given:
            self.out(value + ",")
        self.out.dedent()
        self.out(")")

    def _check_text(self, checks: list[str], at: str = "at") -> None:
        if checks:
            self.out.indent(f"if not ({' and '.join(checks)}):")
            self.out(self.fail(at))
            self.out.dedent()

    def _empty(self) -> None:
        given = ["0"]
        for field in self.columns:
            if field.name in self.kernel.columns:
                given.append(f'{self.use("even_column")}(b"", 0, 0)')
            else:
                given.append('b""' if field.variable or field.is_raw else "0")
        self.out()
        self.out()
        self.out(f"_EMPTY = Columns({', '.join(given)})")
