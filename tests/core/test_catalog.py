"""The catalog: the same changes in the same order give the same state, also read back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.core import change as ch
from dragoman.core.catalog import Catalog
from dragoman.core.change import decode_change, encode_change
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER


def topic_put(topic_id: int = 1, name: str = "t", partitions: int = 2) -> ch.TopicPut:
    times = list(range(partitions))
    return ch.TopicPut(topic_id, DEFAULT_NAMESPACE_NUMBER, topic_id, name, 9, times, {})


def with_topic() -> Catalog:
    catalog = Catalog()
    catalog.apply(topic_put())
    return catalog


def test_a_new_catalog_has_the_default_namespace() -> None:
    catalog = Catalog()
    assert list(catalog.namespaces) == ["default"]
    assert list(catalog.namespaces_by_number) == [DEFAULT_NAMESPACE_NUMBER]
    assert catalog.namespace_numbers_used == 0


def test_a_topic_is_found_by_id_name_and_number() -> None:
    catalog = with_topic()
    home = catalog.namespaces["default"]
    assert catalog.topics[1] is home.topics["t"] is home.by_number[1]
    assert (catalog.topic_ids_used, home.numbers_used) == (1, 1)


def test_a_renamed_topic_is_found_by_its_new_name_only() -> None:
    catalog = with_topic()
    catalog.apply(topic_put(name="new"))
    assert list(catalog.namespaces["default"].topics) == ["new"]


def test_partitions_grow_and_shrink_at_the_end() -> None:
    catalog = with_topic()
    catalog.appended(topic_id=1, partition=0, next_offset=5, timestamp_us=7)
    catalog.apply(ch.OffsetPut(1, "group", "g", 1, 3))
    catalog.apply(topic_put(partitions=1))
    catalog.apply(topic_put(partitions=3))
    assert [state.next_offset for state in catalog.topics[1].partitions] == [5, 0, 0]
    assert catalog.topics[1].offsets == {("group", "g"): {}}


def test_appending_never_moves_an_end_back() -> None:
    catalog = with_topic()
    catalog.appended(topic_id=1, partition=0, next_offset=5, timestamp_us=7)
    catalog.appended(topic_id=1, partition=0, next_offset=4, timestamp_us=6)
    state = catalog.topics[1].partitions[0]
    assert (state.next_offset, state.last_timestamp_us) == (5, 7)


def test_a_trim_moves_both_ends_forward_only() -> None:
    catalog = with_topic()
    catalog.apply(ch.Trimmed(1, 0, 5))
    catalog.apply(ch.Trimmed(1, 0, 3))
    state = catalog.topics[1].partitions[0]
    assert (state.log_start_offset, state.next_offset) == (5, 5)


def test_a_change_about_what_is_gone_does_nothing() -> None:
    catalog = with_topic()
    before = catalog.to_json()
    catalog.apply(ch.Trimmed(9, 0, 5))
    catalog.apply(ch.Trimmed(1, 9, 5))
    catalog.apply(ch.OffsetPut(9, "group", "g", 0, 1))
    catalog.appended(topic_id=9, partition=0, next_offset=1, timestamp_us=1)
    assert catalog.to_json() == before


def test_a_dropped_namespace_takes_its_topics_along() -> None:
    catalog = Catalog()
    catalog.apply(ch.NamespacePut(4, "n", 0))
    catalog.apply(ch.TopicPut(1, 4, 1, "t", 0, [0], {}))
    catalog.apply(ch.NamespacePut(4, "renamed", 0))
    assert list(catalog.namespaces) == ["default", "renamed"]
    catalog.apply(ch.NamespaceDropped(4))
    assert (catalog.topics, catalog.namespace_numbers_used) == ({}, 4)


def test_numbers_used_survive_what_used_them() -> None:
    catalog = with_topic()
    catalog.apply(ch.TopicDropped(1))
    again = Catalog.from_json(catalog.to_json())
    assert (again.topic_ids_used, again.namespaces["default"].numbers_used) == (1, 1)


def changes() -> st.SearchStrategy[list[ch.Change]]:
    """Runs of changes as an engine could make them: only what exists is renamed or dropped."""

    @st.composite
    def run(draw: st.DrawFn) -> list[ch.Change]:
        catalog = Catalog()
        made: list[ch.Change] = []
        for step in range(draw(st.integers(0, 25))):
            spaces = sorted(catalog.namespaces_by_number)
            topics = sorted(catalog.topics)
            options: list[ch.Change] = [
                ch.NamespacePut(step + 1, f"n{step}", step),
                ch.TopicPut(
                    catalog.topic_ids_used + 1,
                    draw(st.sampled_from(spaces)),
                    step + 1,
                    f"t{step}",
                    step,
                    [step] * draw(st.integers(0, 3)),
                    {"retention_ms": step},
                ),
                ch.EpochRaised(step),
            ]
            if len(spaces) > 1:
                options.append(ch.NamespaceDropped(spaces[0]))
            if topics:
                at = draw(st.sampled_from(topics))
                partition = draw(st.integers(0, 2))
                options += [
                    ch.TopicDropped(at),
                    ch.Trimmed(at, partition, step),
                    ch.OffsetPut(at, "group", f"g{step % 3}", partition, step),
                ]
            change = draw(st.sampled_from(options))
            catalog.apply(change)
            made.append(change)
        return made

    return run()


@settings(max_examples=100, deadline=None)
@given(changes())
def test_changes_read_back_give_the_same_catalog_and_so_does_its_json(
    run: list[ch.Change],
) -> None:
    live, replayed = Catalog(), Catalog()
    for change in run:
        live.apply(change)
        replayed.apply(decode_change(encode_change(change)))
    assert replayed.to_json() == live.to_json()
    assert Catalog.from_json(live.to_json()).to_json() == live.to_json()


def test_a_producer_that_writes_alone_has_one_range_however_long_it_writes() -> None:
    catalog = with_topic()
    for n in range(100):
        catalog.apply(ch.ProducerPut(1, 0, "p", 1, 2 * n, 2 * n + 1, 2 * n, n))
    producer = catalog.topics[1].partitions[0].producers["p"]
    assert producer.ranges == [(0, 199, 0)]
    assert producer.last_us == 99


def test_a_new_epoch_begins_a_producer_anew() -> None:
    catalog = with_topic()
    catalog.apply(ch.ProducerPut(1, 0, "p", 1, 0, 9, 0, 1))
    catalog.apply(ch.ProducerPut(1, 0, "p", 2, 5, 5, 10, 2))
    producer = catalog.topics[1].partitions[0].producers["p"]
    assert (producer.epoch, producer.ranges) == (2, [(5, 5, 10)])


def test_idle_producers_are_forgotten_by_their_last_append() -> None:
    catalog = with_topic()
    catalog.apply(ch.ProducerPut(1, 0, "old", 1, 0, 0, 0, 5))
    catalog.apply(ch.ProducerPut(1, 0, "new", 1, 0, 0, 1, 6))
    catalog.apply(ch.ProducersExpired(1, 0, 6))
    assert list(catalog.topics[1].partitions[0].producers) == ["new"]


def group_put(topic: str = "t", generation: int = 1) -> ch.GroupPut:
    return ch.GroupPut(DEFAULT_NAMESPACE_NUMBER, topic, "g", 1, generation, "range", 2, [])


def test_groups_follow_their_topic_and_go_with_it() -> None:
    catalog = with_topic()
    catalog.apply(group_put())
    catalog.apply(group_put(generation=2))
    catalog.apply(topic_put(name="renamed"))
    home = (DEFAULT_NAMESPACE_NUMBER, "renamed")
    assert catalog.groups == {home: {"g": catalog.groups[home]["g"]}}
    assert catalog.groups[home]["g"].generation == 2
    catalog.apply(ch.TopicDropped(1))
    assert catalog.groups == {}


def test_a_deleted_group_takes_its_committed_offsets_along() -> None:
    catalog = with_topic()
    catalog.apply(group_put())
    catalog.apply(ch.OffsetPut(1, "group", "g", 0, 5))
    catalog.apply(ch.GroupDropped(DEFAULT_NAMESPACE_NUMBER, "t", "g"))
    assert catalog.groups == {}
    assert catalog.topics[1].offsets == {}


def test_groups_roles_and_producers_are_read_back() -> None:
    catalog = with_topic()
    catalog.apply(group_put())
    catalog.apply(ch.RolePut(1, 1, True))
    catalog.apply(ch.ProducerPut(1, 0, "p", 1, 0, 9, 0, 1))
    again = Catalog.from_json(catalog.to_json())
    assert again.to_json() == catalog.to_json()
    assert again.topics[1].partitions[1].is_follower
    assert again.topics[1].partitions[0].producers["p"].ranges == [(0, 9, 0)]
