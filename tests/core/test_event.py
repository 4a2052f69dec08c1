from __future__ import annotations

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import BatchSlice
from dragoman.core.column import VarColumn
from dragoman.core.event import EventsRead


def test_the_count_of_a_reply_is_that_of_all_its_slices() -> None:
    batch = RecordBatch(3, VarColumn.of([b"a", b"b", b"c"]), origin=Origin.NONE)
    assert EventsRead(0, [BatchSlice(batch, 1, 3), BatchSlice(batch, 0, 1)]).count == 3
