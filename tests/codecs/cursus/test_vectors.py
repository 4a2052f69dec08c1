"""Every vector and scenario of specs/cursus, played three ways; and each clause is shown by one."""

from __future__ import annotations

import json
import re

import pytest

from support.vectors import SPECS, WAYS, Vector, load_vectors, play

VECTORS = load_vectors("cursus")
CLAUSES = re.findall(r"\*\*(CUR-[A-Z]\d+)\*\*", (SPECS / "cursus/protocol.md").read_text())
TESTS = SPECS.parent / "tests"

BEYOND_BYTES = {
    "CUR-F8": (
        "gateway/test_lane.py::test_an_idle_connection_is_closed_and_a_waiting_one_is_not",
        "gateway/test_lane.py::test_a_follower_is_never_idle_and_is_kept_alive",
        "gateway/test_listener.py::test_at_the_limit_accepting_pauses_and_goes_on_when_one_leaves",
    ),
    "CUR-F9": (
        "gateway/test_tls.py::test_versions_from_1_2_on_are_served",
        "gateway/test_tls.py::test_a_slow_handshake_is_closed",
        "gateway/test_tls.py::test_a_client_without_a_certificate_is_refused_where_one_is_asked_for",
        "gateway/test_tls.py::test_a_reload_shows_new_clients_the_new_chain_and_keeps_the_old_ones",
    ),
    "CUR-V9": (
        "core/events/test_load.py::test_requests_on_a_partition_wait_for_one_reading_and_go_on_in_order",
        "core/events/test_load.py::test_damaged_records_are_told_and_not_read_again_for_each_request",
        "core/events/test_load.py::test_a_partition_whose_index_is_too_large_serves_no_events",
    ),
    "CUR-E4": ("test_cursus_protocol.py::test_the_table_of_refusals_has_every_code",),
    "CUR-D1": ("gateway/test_profile.py::test_the_cursus_documents_figures_are_what_counts",),
    "CUR-D2": (
        "core/storage/test_due_sync.py::test_a_window_ends_by_its_records_or_by_its_time",
        "gateway/test_server.py::test_what_was_asked_before_the_stop_is_durable_after_it",
    ),
    "CUR-D7": (
        "gateway/test_metrics.py::test_accepted_records_are_counted_under_both_names",
        "gateway/test_metrics.py::test_publishes_are_timed_into_buckets_that_add_up",
    ),
    "CUR-D8": (
        "gateway/test_health.py::test_a_server_that_serves_is_there_and_all_checks_hold",
        "gateway/test_health.py::test_before_the_start_no_listener_is_active",
        "gateway/test_health.py::test_a_server_that_drains_is_not_there",
    ),
    "CUR-L4": ("interop/test_cursus_e2e.py::test_all_seventeen_tests_of_the_december_broker_pass",),
    "CUR-K1": (
        "clients/test_producer.py::test_a_refusal_that_names_the_leader_is_followed_there",
        "clients/test_producer.py::test_without_a_name_the_leaders_are_asked_for_again",
        "clients/test_consumer.py::test_the_group_is_asked_where_its_coordinator_is",
    ),
    "CUR-K2": (
        "clients/test_consumer.py::test_told_that_the_group_moved_on_it_stops_and_joins_again",
        "clients/test_consumer.py::test_a_forgotten_member_joins_under_its_first_name",
        "clients/test_consumer.py::test_a_partition_that_was_never_given_up_is_read_on_where_it_stood",
    ),
    "CUR-K3": (
        "clients/test_producer.py::test_only_the_tail_of_a_partly_stored_batch_is_sent_again",
        "codecs/cursus/test_acknowledged.py::"
        "test_a_part_of_records_without_sequences_is_nothing_to_build_on",
    ),
    "CUR-K4": (
        "clients/test_producer.py::test_an_acknowledgement_of_other_messages_ends_the_connection",
        "clients/test_producer.py::test_acknowledgements_that_tell_little_count",
        "clients/test_producer.py::test_a_late_acknowledgement_is_not_taken_for_that_of_the_next_batch",
    ),
    "CUR-K5": (
        "clients/test_producer.py::test_a_hard_refusal_is_raised_and_not_tried_again",
        "clients/test_producer.py::test_attempts_are_bounded",
        "clients/test_plan.py::test_pauses_double_up_to_the_longest",
    ),
    "CUR-K6": (
        "clients/test_consumer.py::test_older_brokers_offsets_are_understood",
        "codecs/cursus/test_speaker.py::test_the_published_brokers_answers_are_understood_too",
    ),
    "CUR-K7": (
        "codecs/cursus/test_hear_group.py::test_a_status_is_heard",
        "codecs/cursus/test_hear_group.py::test_lists_that_go_writes_as_null_are_empty",
        "codecs/cursus/test_rfc3339.py::test_times_of_all_zones_are_read",
        "codecs/cursus/test_hear_group.py::test_our_server_and_our_client_agree",
    ),
}
"""The clauses that no vector can show, by the tests that do: what takes sockets, threads, a disk, a
program of somebody else, or is about our client."""


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_a_vector_is_answered_as_written(vector: Vector, how: str) -> None:
    play(vector, how)


def test_every_vector_names_a_clause_that_is_there() -> None:
    assert {vector.clause for vector in VECTORS} <= set(CLAUSES)


def test_every_clause_is_shown_by_a_vector_or_by_a_test() -> None:
    shown = {vector.clause for vector in VECTORS}
    assert [clause for clause in CLAUSES if clause not in shown | set(BEYOND_BYTES)] == []
    assert shown.isdisjoint(BEYOND_BYTES)
    assert set(BEYOND_BYTES) <= set(CLAUSES)


@pytest.mark.parametrize("clause", BEYOND_BYTES)
def test_the_tests_that_show_a_clause_are_there(clause: str) -> None:
    for name in BEYOND_BYTES[clause]:
        path, _, function = name.partition("::")
        assert re.search(rf"^(async )?def {function}\(", (TESTS / path).read_text(), re.M), name


@pytest.mark.parametrize("folder", ["vectors", "scenarios"])
def test_what_takes_several_connections_or_time_is_a_scenario(folder: str) -> None:
    for path in (SPECS / "cursus" / folder).glob("*.json"):
        for entry in json.loads(path.read_text())["vectors"]:
            keys = {key for step in entry["steps"] for key in step}
            beyond_one = not keys.isdisjoint({"on", "dialect", "advance"})
            assert beyond_one is (folder == "scenarios"), f"{path.name}: {entry['id']}"
