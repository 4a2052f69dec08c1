"""Keywords and arguments."""

from __future__ import annotations

from time import process_time

import pytest

from dragoman.codecs.cursus.command import (
    ARGUMENTS,
    COMMAND_BYTES_MAX,
    POSITIONS,
    Command,
    find_keyword,
    is_named,
    parse,
)


def command(text: bytes) -> Command:
    found = find_keyword(text)
    assert found is not None
    cut = parse(found[0], text[found[1] :])
    assert cut is not None
    return cut


@pytest.mark.parametrize("text", [b"LIST", b"list", b" \0\r\nLIST\0\0", b"LIST x", b"List\t"])
def test_a_keyword_is_found_in_any_case_and_between_blanks(text: bytes) -> None:
    found = find_keyword(text)
    assert found is not None
    assert found[0] == "LIST"


@pytest.mark.parametrize(
    "text", [b"", b"LISTING", b"CREATED order 7", b"x LIST", b"\xffLIST", b"1"]
)
def test_other_text_has_no_keyword(text: bytes) -> None:
    assert find_keyword(text) is None


def test_a_long_run_of_letters_is_no_keyword() -> None:
    assert find_keyword(b"A" * 1_000_000) is None


def test_named_arguments_come_in_any_order_and_the_last_wins() -> None:
    cut = command(b"CREATE partitions=4  topic=a topic=b=c odd ")
    assert not cut.positional
    assert cut.values == {"partitions": b"4", "topic": b"b=c"}
    assert cut.rest == [b"odd"]


def test_positional_arguments_have_the_documents_order() -> None:
    cut = command(b"HEARTBEAT t g c m 3\0")
    assert cut.positional
    assert cut.values == {
        "topic": b"t",
        "group": b"g",
        "consumer": b"c",
        "member": b"m",
        "generation": b"3",
    }


def test_what_follows_the_last_position_is_kept() -> None:
    assert command(b"BATCH_COMMIT t g m 1 0:1 1:2").rest == [b"0:1", b"1:2"]


def test_the_message_of_a_publish_is_the_rest_byte_for_byte() -> None:
    cut = command(b"PUBLISH topic=t message= a\0 message=b \xff\r\n")
    assert cut.values == {"topic": b"t", "message": b" a\0 message=b \xff\r\n"}


def test_the_message_of_the_documents_publish_begins_after_one_blank() -> None:
    assert command(b"PUBLISH t  k=v \n").values == {"topic": b"t", "message": b" k=v \n"}


def test_the_documents_publish_without_a_message_has_none() -> None:
    assert command(b"PUBLISH t").values == {"topic": b"t"}


def test_a_long_message_is_no_long_command() -> None:
    payload = b"x" * (COMMAND_BYTES_MAX * 2)
    assert command(b"PUBLISH topic=t message=" + payload).values["message"] == payload
    assert command(b"PUBLISH t " + payload).values["message"] == payload


@pytest.mark.parametrize("keyword", ["LIST", "PUBLISH"])
def test_a_long_command_is_not_cut(keyword: str) -> None:
    assert parse(keyword, b" topic=" + b"x" * COMMAND_BYTES_MAX) is None


@pytest.mark.parametrize("filler", [b" ", b"\0", b"\0 "])
def test_white_space_is_not_tried_at_every_byte_for_a_name(filler: bytes) -> None:
    text = filler * (16 * 1024 * 1024)
    began = process_time()
    assert not is_named(text + b"topic=t")
    assert parse("CREATE", text) is None
    assert process_time() - began < 1


@pytest.mark.parametrize(
    ("text", "positional"),
    [
        (b"CREATE topic=t 4", False),
        (b"CREATE\t\0partitions=4 topic=t", False),
        (b"CREATE t partitions=4", True),
        (b"CREATE a=b topic=t", True),
        (b"CREATE Topic=t", True),
        (b"CREATE topic =t", True),
        (b"PUBLISH topics=t hello", True),
        (b"PUBLISH key=k topic=t message=m", False),
        (b"HEARTBEAT of the city", True),
        (b"LIST", False),
    ],
)
def test_the_first_argument_alone_tells_the_form(text: bytes, *, positional: bool) -> None:
    assert command(text).positional is positional


def test_every_name_of_the_documents_form_is_one_of_the_clients() -> None:
    assert {name for names in POSITIONS.values() for name in names} <= ARGUMENTS


def test_the_commands_of_replication_are_known_by_how_they_begin() -> None:
    assert find_keyword(b"REPLICATE_ANYTHING x=1") == ("REPLICATE_ANYTHING", 18)
