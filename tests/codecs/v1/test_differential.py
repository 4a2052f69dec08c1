"""The straight code of lines against a slow parser that walks the grammar of `wire.COMMANDS`.

Both get the same mutated lines; they must agree on accept, refusal text and every value. Then lines
are joined into chunks, where neighbouring PRODUCE lines become one request: taken apart again it
must be what the lines said one by one.
"""

from __future__ import annotations

from random import Random
from typing import Any

from dragoman.codecs.base import Asked, Facts, Offload, Refused
from dragoman.codecs.rendering import RenderingCache
from dragoman.codecs.v1.dialect import DIALECT
from dragoman.codecs.v1.routing import fnv1a_32
from dragoman.codecs.v1.wire import (
    COMMAND_REQUIRED,
    COMMANDS,
    CORRELATION_REQUIRED,
    EXPECTED_FORMAT,
    INTEGER_MAX,
    INTEGER_MIN,
    SPACES,
    UNSUPPORTED_COMMAND,
    UNSUPPORTED_VERSION,
    VERSION,
    Argument,
    Kind,
)
from dragoman.core.calls import (
    Acks,
    ByHash,
    CommitOffset,
    Fetch,
    FetchOffset,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    Produce,
    ProduceMany,
    ReportReplica,
    SetRole,
    SyncGroup,
)
from dragoman.core.name import flat_name

LINES = 24_000
CHUNKS = 1_500

SEEDS = [
    b"V1|1|PRODUCE|orders user1:created acks=1",
    b"V1|2|PRODUCE|orders user1:a|b acks=all",
    b"V1|3|PRODUCE|t k:v",
    b"V1|4|PRODUCE|t :",
    b'V1|5|PRODUCE|ns/t key:{"a":1} acks=0',
    b"V1|6|CONSUME|orders 2 0",
    b"V1|7|JOIN|g orders c1 assignor=range",
    b"V1|8|JOIN|g orders c1",
    b"V1|9|SYNC|g orders c1 2",
    b"V1|10|HEARTBEAT|g orders c1 -2",
    b"V1|11|LEAVE|g orders c1 +2",
    b"V1|12|COMMIT|g orders c1 3 2 2",
    b"V1|13|OFFSET|g orders 9223372036854775807",
    b"V1|14|REPLICA_FETCH|orders 2 1 1",
    b"V1|15|SET_PARTITION_ROLE|orders 2 follower",
    b"V1|99|PING|",
    "V1|é|produce|thème k:naïve Acks=All".encode(),
    b"V1|x|PRODUCE|t \xff\xfe:\xc3( acks=1",
    b"",
]
PIECES = [
    *[space.encode() for space in SPACES],
    *[bytes((byte,)) for byte in b"|:=+-0123456789aAvV\x00\x1c\x1f\x7f,/%"],
    b"\xc2",
    b"\xe2\x80",
    b"\xe3\x80\x80",
    b"\xff",
    b"\xed\xa0\x80",
    b"acks=",
    b" acks=all",
    b"assignor=range",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"0" * 30,
    b"1_0",
    "é".encode(),
    "ſ".encode(),
    "\ufeff".encode(),
]

Read = tuple[Any, ...]
"""("ok", command, correlation id, values) or ("error", the reply's line)."""


def codec() -> Any:
    options = DIALECT.options({})
    return DIALECT.codec(Facts(limits=DIALECT.limits, renderings=RenderingCache(), options=options))


# ---------------------------------------------------------------- the slow parser


def to_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def slow_trim(text: str) -> str:
    while text and text[0] in SPACES:
        text = text[1:]
    while text and text[-1] in SPACES:
        text = text[:-1]
    return text


def slow_split(text: str) -> list[str]:
    words: list[str] = []
    word = ""
    for character in text:
        if character not in SPACES:
            word += character
        elif word:
            words.append(word)
            word = ""
    return [*words, word] if word else words


def slow_integer(text: str) -> int | None:
    sign = -1 if text[:1] == "-" else 1
    digits = text[1:] if text[:1] in ("+", "-") and text else text
    if not digits:
        return None
    number = 0
    for character in digits:
        if character not in "0123456789":
            return None
        number = 10 * number + "0123456789".index(character)
    number *= sign
    return number if INTEGER_MIN <= number <= INTEGER_MAX else None


def ascii_upper(text: str) -> str:
    return "".join([c.upper() if "a" <= c <= "z" else c for c in text])


def ascii_lower(text: str) -> str:
    return "".join([c.lower() if "A" <= c <= "Z" else c for c in text])


def error(correlation: str, code: str, message: str) -> Read:
    return ("error", to_bytes(f"V1|{correlation}|ERR|{code}|{message}\n"))


def slow_value(argument: Argument, word: str) -> Any:
    """The value of a word, or None where it is not of its kind."""
    match argument.kind:
        case Kind.MESSAGE:
            return word if ":" in word else None
        case Kind.INTEGER | Kind.NATURAL:
            return slow_integer(word)
        case Kind.CHOICE:
            lowered = ascii_lower(word)
            return lowered if lowered in argument.choices else None
        case Kind.NAME:
            return word


def slow_read(line: bytes) -> Read:
    """What the line says, by the grammar."""
    parts = slow_trim(to_text(line)).split("|", 3)
    if len(parts) < 4:
        return error("0", "BAD_REQUEST", EXPECTED_FORMAT)
    version, correlation, name, rest = [slow_trim(part) for part in parts]
    if version != VERSION:
        return error("0", "BAD_REQUEST", UNSUPPORTED_VERSION)
    if not correlation:
        return error("0", "BAD_REQUEST", CORRELATION_REQUIRED)
    if not name:
        return error("0", "BAD_REQUEST", COMMAND_REQUIRED)
    command = COMMANDS.get(ascii_upper(name))
    if command is None:
        return error(correlation, "UNKNOWN_COMMAND", UNSUPPORTED_COMMAND)
    words = slow_split(rest)
    least, most = command.counts
    if not least <= len(words) <= most:
        return error(correlation, "BAD_REQUEST", command.usage)
    pairs = list(zip(command.arguments, words, strict=False))
    values = []
    for argument, word in pairs:
        value = slow_value(argument, word)
        if value is None:
            return error(correlation, "BAD_REQUEST", argument.wrong)
        values.append(value)
    for (argument, _), value in zip(pairs, values, strict=True):
        if argument.kind is Kind.NATURAL and value < 0:
            return error(correlation, "BAD_REQUEST", argument.negative or argument.wrong)
    for argument, word in pairs:
        if argument.kind is Kind.NAME and any("\udc80" <= c <= "\udcff" for c in word):
            return error(correlation, "BAD_REQUEST", argument.wrong)
    if command.name == "PRODUCE" and len(values) == 2:
        values.append("acks=1")
    return ("ok", command.name, to_bytes(correlation), tuple(values))


# ---------------------------------------------------------------- the straight code


def told(request: Any) -> list[tuple[str, Any]]:
    """The command and values that a request was made of; one a record for produces."""
    names = {Acks.NONE: "acks=0", Acks.LEADER: "acks=1", Acks.ALL: "acks=all"}
    match request:
        case Produce(batch=batch):
            assert batch.keys is not None
            rows = [(batch.keys[i] or b"", batch.values[i] or b"") for i in range(batch.count)]
            assert {ByHash(fnv1a_32(key)) for key, _ in rows} == {request.route}
        case ProduceMany():
            rows = list(zip(request.keys, request.values, strict=True))
            assert list(request.hashes) == [fnv1a_32(key) for key, _ in rows]
        case Fetch():
            return [("CONSUME", (name_of(request), request.partition, request.offset))]
        case JoinGroup(assignor=assignor):
            values = (request.group, name_of(request), request.member)
            option = () if assignor is None else (f"assignor={assignor.value}",)
            return [("JOIN", values + option)]
        case SyncGroup():
            return [("SYNC", member_of(request))]
        case Heartbeat():
            return [("HEARTBEAT", member_of(request))]
        case LeaveGroup():
            return [("LEAVE", member_of(request))]
        case CommitOffset():
            return [("COMMIT", member_of(request) + request.offsets[0])]
        case SetRole():
            values = (name_of(request), request.partition, request.role.value)
            return [("SET_PARTITION_ROLE", values)]
        case ReportReplica():
            numbers = (request.partition, request.replica, request.offset)
            return [("REPLICA_FETCH", (name_of(request), *numbers))]
        case FetchOffset():
            return [("OFFSET", (request.group, name_of(request), request.partition))]
        case _:
            raise AssertionError(request)
    topic, acks = name_of(request), names[request.acks]
    return [("PRODUCE", (topic, to_text(key + b":" + value), acks)) for key, value in rows]


def name_of(request: Any) -> str:
    return flat_name(request.namespace, request.topic)


def member_of(request: Any) -> tuple[Any, ...]:
    return (request.group, name_of(request), request.member, request.generation + 1)


def straight_read(data: bytes) -> list[Read]:
    """What the codec hears in a chunk of whole lines, a line each."""
    reads: list[Read] = []
    for item in codec().receive(data):
        while isinstance(item, Offload):
            (item,) = item.call()
        match item:
            case Refused(tag=(_, line)):
                reads.append(("error", line))
            case Asked(tag=(name, correlations), request=request):
                rows = told(request)
                if isinstance(correlations, bytes):
                    correlations = (correlations,)
                for correlation, (said, values) in zip(correlations, rows, strict=True):
                    assert said == name
                    reads.append(("ok", name, correlation, values))
            case _:
                raise AssertionError(item)
    return reads


def mutated(line: bytes, random: Random) -> bytes:
    for _ in range(random.choice((0, 1, 1, 2, 3, 6))):
        at = random.randint(0, len(line))
        match random.randrange(4):
            case 0:
                line = line[:at] + line[at + 1 :]
            case 1:
                line = line[:at] + random.choice(PIECES) + line[at + random.randint(0, 3) :]
            case 2:
                words = line.split(b" ")
                random.shuffle(words)
                line = b" ".join(words)
            case _:
                line = line[:at] + random.choice(PIECES) + line[at:]
    return line.replace(b"\n", b"")


def line_of(random: Random) -> bytes:
    return mutated(random.choice(SEEDS), random)


def is_line(line: bytes) -> bool:
    """Whether the line, first on a connection, is not taken for another protocol."""
    return line[:1] != b"\0" and line[2:4] != b"\0\0"


def test_straight_code_and_grammar_agree_on_mutated_lines() -> None:
    random = Random(20_260_101)
    accepted = 0
    for _ in range(LINES):
        line = line_of(random)
        if is_line(line):
            expected = slow_read(line)
            assert straight_read(line + b"\n") == [expected], line
            accepted += expected[0] == "ok"
    assert accepted > LINES // 5


def test_lines_say_in_a_chunk_what_they_say_alone() -> None:
    random = Random(7)
    for _ in range(CHUNKS):
        lines = []
        for _ in range(random.randint(2, 6)):
            lines += [line_of(random)] * random.choice((1, 1, 3))
        if is_line(lines[0]):
            expected = [slow_read(line) for line in lines]
            assert straight_read(b"".join([line + b"\n" for line in lines])) == expected, lines


def test_runs_of_plain_lines_become_few_requests() -> None:
    lines = [b"V1|%d|PRODUCE|t k%d:v acks=1\n" % (i, i % 7) for i in range(500)]
    heard = codec().receive(b"".join(lines))
    assert len(heard) == 1
    assert len(told(heard[0].request)) == 500
