"""The quick reader of JSON requests against a slow and strict one."""

from __future__ import annotations

import json
import random
from typing import Any

import orjson
import pytest

from dragoman.codecs.base import Asked, Refused
from dragoman.codecs.rustlog.document import ARRAYS_MAX, read_fields, read_request
from dragoman.codecs.rustlog.parse import Malformed
from dragoman.codecs.rustlog.wire import FRAME_BYTES_MAX, Kind
from dragoman.core.calls import CommitOffset, CreateTopic, DescribeTopic, Fetch, Produce, Whence
from dragoman.core.error import ErrorCode

EXPECTED: dict[str, list[tuple[str, str]]] = {
    "Produce": [("topic", "text"), ("partition", "u32"), ("records", "bytes")],
    "Fetch": [
        ("topic", "text"),
        ("partition", "u32"),
        ("offset", "u64"),
        ("max_bytes", "u64"),
        ("group_id", "maybe"),
    ],
    "OffsetCommit": [
        ("topic", "text"),
        ("partition", "u32"),
        ("group_id", "text"),
        ("offset", "u64"),
    ],
    "OffsetFetch": [("topic", "text"), ("partition", "u32"), ("group_id", "text")],
    "CreateTopic": [("topic", "text"), ("partition_count", "u32")],
    "ListTopics": [],
    "Ping": [],
}


class Pairs(list[tuple[str, Any]]):
    """An object's pairs, so that duplicates are seen."""


class Refuse(Exception):
    pass


def reference(payload: bytes) -> tuple[str, list[Any]] | None:
    """A request read slowly, checking everything; None where it is refused."""
    try:
        text = payload.decode()
        whole = json.loads(
            text,
            object_pairs_hook=Pairs,
            parse_constant=lambda _: (_ for _ in ()).throw(Refuse()),
            parse_int=lambda digits: 0.5 if digits == "-0" else int(digits),
        )
        text.encode()
        json.dumps(whole, ensure_ascii=False).encode()
        return interpret(whole)
    except (ValueError, Refuse, RecursionError):
        return None


def interpret(whole: object) -> tuple[str, list[Any]]:
    if type(whole) is str:
        if EXPECTED.get(whole) != []:
            raise Refuse
        return whole, []
    if type(whole) is not Pairs or len(whole) != 1:
        raise Refuse
    name, body = whole[0]
    if name not in EXPECTED:
        raise Refuse
    if not EXPECTED[name]:
        if body is not None:
            raise Refuse
        return name, []
    if type(body) is not Pairs:
        raise Refuse
    known = [key for key, _ in body if key in dict(EXPECTED[name])]
    if len(known) != len(set(known)):
        raise Refuse
    given = dict(body)
    return name, [value_of(given, key, kind) for key, kind in EXPECTED[name]]


def value_of(given: dict[str, Any], key: str, kind: str) -> Any:
    if key not in given:
        if kind == "maybe":
            return ""
        raise Refuse
    value = given[key]
    match kind:
        case "text" | "maybe":
            if kind == "maybe" and value is None:
                return ""
            if type(value) is not str:
                raise Refuse
            return value
        case "u32" | "u64":
            top = 1 << (32 if kind == "u32" else 64)
            if type(value) is not int or not 0 <= value < top:
                raise Refuse
            return value
        case _:
            if type(value) is not list:
                raise Refuse
            for record in value:
                if type(record) is not list:
                    raise Refuse
                for byte in record:
                    if type(byte) is not int or not 0 <= byte <= 255:
                        raise Refuse
            return [bytes(record) for record in value]


def quick(payload: bytes) -> tuple[str, list[Any]] | None:
    try:
        shape, fields = read_fields(payload)
    except Malformed:
        return None
    name = next(name for name, other in NAMES.items() if other == shape.command)
    values = []
    for kind, value in zip(shape.fields.values(), fields, strict=True):
        if kind is Kind.BYTE_LISTS:
            values.append([] if value is None else list(value))
        else:
            values.append(value)
    return name, values


NAMES = {
    "Produce": 1,
    "Fetch": 2,
    "OffsetCommit": 3,
    "OffsetFetch": 4,
    "CreateTopic": 5,
    "ListTopics": 6,
    "Ping": 255,
}

TOKENS = [
    b"true",
    b"false",
    b"null",
    b"-0",
    b"-1",
    b"0",
    b"255",
    b"256",
    b"4294967295",
    b"4294967296",
    b"18446744073709551615",
    b"18446744073709551616",
    b"1" + b"0" * 30,
    b"1.0",
    b"1e2",
    b"0.5",
    b"NaN",
    b"Infinity",
    b"[]",
    b"[1]",
    b"[[1,true]]",
    b"[[-0]]",
    b"[[1.0]]",
    b"[3]",
    b"{}",
    b'"x"',
    b'"a:b,c-d true"',
    b'"\\u003a"',
    b'"\\"topic\\":"',
    b'"\xff"',
    b'"\\ud800"',
]
BODIES = [
    {"Produce": {"topic": "t", "partition": 0, "records": [[1, 2], [], [255]]}},
    {"Produce": {"topic": "true-0:x", "partition": 3, "records": []}},
    {"Produce": {"partition": 1, "records": [[0]], "topic": "größe", "extra": {"a": [1]}}},
    {"Fetch": {"topic": "t", "partition": 0, "offset": 5, "max_bytes": 9, "group_id": None}},
    {"Fetch": {"topic": "t", "partition": 0, "offset": 5, "max_bytes": 9, "group_id": "g"}},
    {"Fetch": {"topic": "t", "partition": 0, "offset": 5, "max_bytes": 9}},
    {"OffsetCommit": {"topic": "t", "partition": 0, "group_id": "g", "offset": 7}},
    {"OffsetFetch": {"topic": "t", "partition": 0, "group_id": "g"}},
    {"CreateTopic": {"topic": "t", "partition_count": 2}},
    {"Ping": None},
    "Ping",
    "ListTopics",
]


def mutated(dice: random.Random) -> bytes:
    body = dice.choice(BODIES)
    text = json.dumps(body, ensure_ascii=dice.random() < 0.5)
    if dice.random() < 0.4:
        text = json.dumps(body, indent=dice.randrange(3))
    data = bytearray(text.encode())
    for _ in range(dice.randrange(4)):
        if not data:
            break
        at = dice.randrange(len(data))
        match dice.randrange(7):
            case 0:
                data[at] = dice.randrange(256)
            case 1:
                del data[at]
            case 2:
                data[at:at] = dice.choice([b",", b":", b'"', b"[", b"]", b"{", b"}", b"\\", b"-"])
            case 3 | 4:
                colons = [i for i, byte in enumerate(data) if byte == 0x3A]
                if colons:
                    start = dice.choice(colons) + 1
                    end = min(
                        (e for e in (data.find(b",", start), data.find(b"}", start)) if e > 0),
                        default=len(data),
                    )
                    data[start:end] = dice.choice(TOKENS)
            case 5:
                brace = data.rfind(b"{")
                if brace >= 0:
                    name = dice.choice([b"topic", b"partition", b"offset", b"group_id", b"zz"])
                    data[brace + 1 : brace + 1] = b'"%b":%b,' % (name, dice.choice(TOKENS))
            case _:
                data[at:at] = dice.choice(TOKENS)
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_quick_and_slow_reader_agree_on_accept_reject_and_value(seed: int) -> None:
    dice = random.Random(seed)
    accepted = 0
    for _ in range(6_000):
        payload = mutated(dice)
        expected = reference(payload)
        assert quick(payload) == expected, payload
        accepted += expected is not None
    assert 500 < accepted < 5_000


def detail(payload: bytes) -> str:
    with pytest.raises(Malformed) as caught:
        read_fields(payload)
    return caught.value.detail


FETCH = '{"Fetch":{"topic":"t","partition":%s,"offset":%s,"max_bytes":%s}}'


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ("{}", "expected an object with one key, found 0"),
        ('{"Ping":null,"ListTopics":null}', "expected an object with one key, found 2"),
        ("[]", "expected an object with one key, the name of the request"),
        ("5", "expected an object with one key, the name of the request"),
        ('{"Ping":5}', "`Ping` has no fields"),
        ('{"Fetch":null}', "expected an object with the fields of the request"),
        ('{"Fetch":["t",0,0,1,null]}', "expected an object with the fields of the request"),
        ('{"Fetch":{"partition":0,"offset":0,"max_bytes":1}}', "missing field `topic`"),
        (FETCH % ("-1", 0, 1), "invalid value for `partition`: expected an integer from 0 to"),
        (FETCH % ("true", 0, 1), "invalid value for `partition`"),
        (FETCH % ("1.0", 0, 1), "invalid value for `partition`"),
        (FETCH % ("4294967296", 0, 1), "invalid value for `partition`"),
        (FETCH % (0, "18446744073709551616", 1), "invalid value for `offset`"),
        (FETCH % (0, "-0", 1), "invalid value for `offset`"),
        (
            '{"OffsetFetch":{"topic":"t","topic":"t","partition":0,"group_id":"g"}}',
            "duplicate field `topic`",
        ),
        (
            '{"CreateTopic":{"topic":"t","partition_count":1},'
            '"CreateTopic":{"topic":"u","partition_count":1}}',
            "expected an object with one key, found 2",
        ),
        (
            '{"OffsetFetch":{"topic":"t","partition":0,"group_id":null}}',
            "invalid value for `group_id`: expected a string",
        ),
        (
            '{"Produce":{"topic":"t","partition":0,"records":[[256]]}}',
            "invalid value for `records`: expected an array of arrays of integers from 0 to 255",
        ),
        ('{"Produce":{"topic":"t","partition":0,"records":[5]}}', "invalid value for `records`"),
        (
            '{"Produce":{"topic":"t","partition":0,"records":[[true]]}}',
            "invalid value for `records`",
        ),
        ('{"Produce":{"topic":"t","partition":0,"records":["a"]}}', "invalid value for `records`"),
    ],
)
def test_each_fault_is_named(payload: str, told: str) -> None:
    assert detail(payload.encode()).startswith(told)


def test_invalid_json_is_told_with_its_place() -> None:
    assert "line 1 column" in detail(b'{"Ping"')


def test_an_unknown_request_is_named_up_to_64_characters() -> None:
    with pytest.raises(Malformed) as caught:
        read_fields(b'{"%b":1}' % (b"x" * 1000))
    assert caught.value.code is ErrorCode.UNKNOWN_COMMAND
    assert caught.value.detail.startswith(f"unknown variant `{'x' * 64}`, expected one of")


def test_the_form_with_a_type_key_is_named_unsupported() -> None:
    with pytest.raises(Malformed) as caught:
        read_fields(b'{"type":"Produce","topic":"t","partition":0,"records":[]}')
    assert caught.value.code is ErrorCode.UNSUPPORTED


def test_unknown_fields_are_ignored_down_to_64_levels() -> None:
    def payload(depth: int) -> bytes:
        deep = b'{"a":' * depth + b"1" + b"}" * depth
        return b'{"OffsetFetch":{"topic":"t","partition":0,"group_id":"g","more":%b}}' % deep

    assert read_fields(payload(63))[1] == ["t", 0, "g"]
    assert detail(payload(65)) == "nested deeper than 64 levels"


def test_a_million_brackets_are_refused_before_they_are_parsed() -> None:
    opening = b'{"Produce":{"topic":"t","partition":0,"records":['
    payload = opening + b",".join([b"[]"] * ARRAYS_MAX) + b"]}}"
    assert detail(payload) == "too many arrays"
    assert detail(b"[" * 5_000_000) == "too many arrays"
    assert detail(b'{"a":' * 5_000_000) == "too many objects"
    assert detail(b'["a",' + b'"a",' * 1_000_000) == "too many strings"


def asked(text: str) -> Any:
    heard = read_request(text.encode(), FRAME_BYTES_MAX)
    assert isinstance(heard, Asked)
    return heard.request


def test_a_produce_becomes_a_batch_without_keys() -> None:
    request = asked('{"Produce":{"topic":"ns/t","partition":3,"records":[[98],[],[0,255]]}}')
    assert isinstance(request, Produce)
    assert (request.namespace, request.topic, request.route) == ("ns", "t", 3)
    assert list(request.batch.values) == [b"b", b"", b"\x00\xff"]
    assert request.batch.keys is None


def test_a_produce_without_records_only_asks_for_the_place() -> None:
    request = asked('{"Produce":{"topic":"t","partition":3,"records":[]}}')
    assert request == DescribeTopic("t")


def test_a_group_reads_from_the_larger_of_two_offsets_and_strictly() -> None:
    request = asked(
        '{"Fetch":{"topic":"t","partition":0,"offset":4,"max_bytes":10,"group_id":"g"}}'
    )
    assert isinstance(request, Fetch)
    assert (request.whence, request.offset, request.group) == (Whence.MAX_COMMITTED, 4, "g")
    assert request.strict
    assert (request.bytes_max, request.record_overhead) == (10, 0)


def test_an_empty_group_is_no_group() -> None:
    request = asked('{"Fetch":{"topic":"t","partition":0,"offset":4,"max_bytes":1,"group_id":""}}')
    assert request.whence is Whence.OFFSET


def test_commit_and_create_carry_their_fields() -> None:
    request = asked(
        '{"OffsetCommit":{"offset":9,"group_id":"g","topic":"t","partition":1,"note":"x"}}'
    )
    assert request == CommitOffset("t", "g", ((1, 9),))
    assert asked('{"CreateTopic":{"topic":"t","partition_count":4}}') == CreateTopic("t", 4)


def test_an_offset_that_core_cannot_hold_is_refused_as_a_commit() -> None:
    heard = read_request(
        orjson.dumps(
            {"OffsetCommit": {"topic": "t", "partition": 0, "group_id": "g", "offset": 1 << 63}}
        ),
        FRAME_BYTES_MAX,
    )
    assert isinstance(heard, Refused)
    assert heard.failure.code is ErrorCode.INVALID_OFFSET
    assert not heard.fatal
