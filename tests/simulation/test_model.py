"""What the model holds against a log: each rule, by the smallest story that breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import BatchSlice
from dragoman.core.column import VarColumn
from dragoman.simulation.clock import SimClock
from dragoman.simulation.model import Model, Stream, Topic, records_of
from dragoman.simulation.rule import Broken, Rule


def world(*values: bytes) -> tuple[Model, Topic]:
    """A topic of two partitions, to whose first these values were sent on one connection."""
    model = Model(SimClock())
    topic = model.topic("t")
    topic.made(2)
    stream = Stream("one")
    for value in values:
        model.sends(value, topic, 0, stream)
    return model, topic


def read(model: Model, topic: Topic, offset: int, *records: tuple[int, bytes]) -> None:
    following = records[-1][0] + 1 if records else offset
    model.read_records(model.moment(topic, 0), offset, records, following)


def breaks(rule: Rule) -> Any:
    return pytest.raises(Broken, match=f"^{rule.name}: ")


def test_what_was_sent_may_be_read_in_its_order() -> None:
    model, topic = world(b"a", b"b")
    read(model, topic, 0, (0, b"a"), (1, b"b"))
    read(model, topic, 1, (1, b"b"))
    read(model, topic, 2)
    assert model.read == 3


def test_a_value_that_nobody_sent_is_a_phantom() -> None:
    model, topic = world(b"a")
    with breaks(Rule.PHANTOM):
        read(model, topic, 0, (0, b"z"))


def test_a_value_in_a_partition_where_nobody_sent_it_is_a_phantom() -> None:
    model, topic = world(b"a")
    with breaks(Rule.PHANTOM):
        model.read_records(model.moment(topic, 1), 0, [(0, b"a")], 1)


def test_an_offset_that_was_read_keeps_its_value() -> None:
    model, topic = world(b"a", b"b")
    read(model, topic, 0, (0, b"a"))
    with breaks(Rule.CHANGED):
        read(model, topic, 0, (0, b"b"))


def test_a_record_has_one_place() -> None:
    model, topic = world(b"a")
    read(model, topic, 0, (0, b"a"))
    with breaks(Rule.DUPLICATE):
        read(model, topic, 1, (1, b"a"))


def test_records_of_one_connection_keep_their_order() -> None:
    model, topic = world(b"a", b"b")
    with breaks(Rule.ORDER):
        read(model, topic, 0, (0, b"b"), (1, b"a"))


def test_a_record_between_two_that_are_known_keeps_the_order_too() -> None:
    stream = Stream("one")
    place = ("t", 0, 0)
    stream.placed(place, 1, 10)
    stream.placed(place, 3, 12)
    stream.placed(place, 2, 11)
    with breaks(Rule.ORDER):
        stream.placed(place, 4, 9)


def test_offsets_have_no_holes() -> None:
    model, topic = world(b"a", b"b")
    with breaks(Rule.DENSE):
        read(model, topic, 0, (0, b"a"), (2, b"b"))


def test_reading_begins_where_it_was_asked_to() -> None:
    model, topic = world(b"a", b"b")
    with breaks(Rule.DENSE):
        read(model, topic, 0, (1, b"b"))


def test_what_was_read_is_visible_to_whoever_asks_afterwards() -> None:
    model, topic = world(b"a")
    read(model, topic, 0, (0, b"a"))
    with pytest.raises(Broken):
        read(model, topic, 0)


def test_who_asked_before_may_see_less() -> None:
    model, topic = world(b"a")
    before = model.moment(topic, 0)
    read(model, topic, 0, (0, b"a"))
    model.read_records(before, 0, [], 0)


def test_a_high_watermark_never_falls_below_what_was_seen() -> None:
    model, topic = world(b"a")
    model.acknowledged(model.moment(topic, 0), 0, 0, [b"a"])
    with breaks(Rule.WATERMARK):
        model.watermark(model.moment(topic, 0), 0)


def test_what_was_acknowledged_without_a_place_has_to_be_somewhere() -> None:
    model, topic = world(b"a", b"b")
    model.acknowledged(model.moment(topic, 0), -1, -1, [b"a"])
    with breaks(Rule.LOST):
        model.check_kept(topic)
    read(model, topic, 0, (0, b"a"))
    model.check_kept(topic)


def test_nothing_is_held_against_a_topic_that_is_being_deleted() -> None:
    model, topic = world(b"a")
    moment = model.moment(topic, 0)
    model.acknowledged(moment, 0, 0, [b"a"])
    topic.going()
    assert not moment.holds
    model.read_records(moment, 0, [(0, b"z")], 1)
    topic.made(1)
    assert not moment.holds
    read(model, topic, 0)


def test_a_topic_that_is_made_again_has_nothing_of_what_was_acknowledged_before() -> None:
    model, topic = world(b"a")
    model.acknowledged(model.moment(topic, 0), 0, 0, [b"a"])
    topic.going()
    topic.made(1)
    with breaks(Rule.PHANTOM):
        read(model, topic, 0, (0, b"a"))


def test_a_topic_may_have_grown_by_all_that_was_asked_for() -> None:
    _, topic = world()
    topic.added += 1
    topic.grown_to = 4
    assert (topic.partitions, topic.partitions_max) == (2, 5)


def test_below_an_offset_that_somebody_deletes_nothing_is_demanded() -> None:
    model, topic = world(b"a", b"b")
    before = model.moment(topic, 0)
    read(model, topic, 0, (0, b"a"), (1, b"b"))
    model.deletes(topic, 0, 1)
    assert model.may_be_gone(before, 0)
    read(model, topic, 0, (1, b"b"))
    with breaks(Rule.DELETED):
        read(model, topic, 0, (0, b"a"))


def test_records_expire_once_they_are_old_and_no_sooner() -> None:
    clock = SimClock()
    model = Model(clock)
    topic = model.topic("t")
    topic.made(1)
    for value in (b"a", b"b"):
        model.sends(value, topic, 0, Stream("one"))
    read(model, topic, 0, (0, b"a"), (1, b"b"))
    topic.keeps_for(1_000)
    with breaks(Rule.DENSE):
        read(model, topic, 0, (1, b"b"))
    clock.advance(1_001)
    read(model, topic, 0, (1, b"b"))


def compacted() -> tuple[Model, Topic]:
    """A compacted partition with two records of one key and one without."""
    model, topic = world()
    topic.is_compacted = True
    stream = Stream("one")
    for value, key in ((b"a", b"k"), (b"b", None), (b"c", b"k")):
        model.sends(value, topic, 0, stream, key)
    read(model, topic, 0, (0, b"a"), (1, b"b"), (2, b"c"))
    return model, topic


def test_compaction_may_take_what_a_later_record_took_the_place_of() -> None:
    model, topic = compacted()
    read(model, topic, 0, (1, b"b"), (2, b"c"))
    model.check_newest(topic, 0, {1, 2})


@pytest.mark.parametrize("shown", [[(0, b"a"), (2, b"c")], [(0, b"a"), (1, b"b")]])
def test_compaction_takes_neither_the_newest_of_a_key_nor_what_has_none(
    shown: list[tuple[int, bytes]],
) -> None:
    model, topic = compacted()
    with breaks(Rule.LOST):
        model.check_newest(topic, 0, {at for at, _ in shown})


def test_records_of_a_reply_have_their_offsets() -> None:
    batch = RecordBatch(3, VarColumn.of([b"a", b"b", b"c"]), origin=Origin.NONE)
    batch.place(base_offset=7, timestamp_us=1, log_epoch=0)
    assert records_of([BatchSlice(batch, 1, 3)]) == [(8, b"b"), (9, b"c")]
