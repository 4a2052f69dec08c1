"""Core's refusals as this generation's error numbers, and back.

Numbers moved between generations, so this table belongs to one of them only. An error is answered
by its number and an empty body: a body would desynchronise every client of the generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dragoman.codecs.iggy import command
from dragoman.core.error import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

ERROR: Final = 1
INVALID_COMMAND: Final = 3
FEATURE_UNAVAILABLE: Final = 5
IO_ERROR: Final = 200
WRITE_ERROR: Final = 201
CANNOT_PARSE_SLICE: Final = 204
CANNOT_UPDATE_STREAM: Final = 1003
CANNOT_CREATE_STREAM: Final = 1006
CANNOT_DELETE_STREAM: Final = 1007
STREAM_ID_NOT_FOUND: Final = 1009
STREAM_NAME_NOT_FOUND: Final = 1010
STREAM_ID_EXISTS: Final = 1011
STREAM_NAME_EXISTS: Final = 1012
INVALID_STREAM_NAME: Final = 1013
INVALID_STREAM_ID: Final = 1014
CANNOT_CREATE_TOPIC: Final = 2006
TOPIC_ID_NOT_FOUND: Final = 2010
TOPIC_NAME_NOT_FOUND: Final = 2011
TOPIC_ID_EXISTS: Final = 2012
TOPIC_NAME_EXISTS: Final = 2013
INVALID_TOPIC_NAME: Final = 2014
TOO_MANY_PARTITIONS: Final = 2015
INVALID_TOPIC_ID: Final = 2016
CANNOT_CREATE_PARTITION: Final = 3000
PARTITION_NOT_FOUND: Final = 3007
NO_PARTITIONS: Final = 3008
INVALID_MESSAGES_COUNT: Final = 4009
CANNOT_APPEND_MESSAGE: Final = 4010
CANNOT_READ_MESSAGE: Final = 4011
TOO_BIG_HEADERS: Final = 4017
INVALID_HEADER_KEY: Final = 4018
INVALID_HEADER_VALUE: Final = 4019
TOO_BIG_PAYLOAD: Final = 4022
EMPTY_PAYLOAD: Final = 4024
INVALID_KEY_LENGTH: Final = 4028
INVALID_OFFSET: Final = 4100
GROUP_NOT_FOUND: Final = 5000
GROUP_EXISTS: Final = 5001
MEMBER_NOT_FOUND: Final = 5002
INVALID_GROUP_ID: Final = 5003
CANNOT_CREATE_GROUP: Final = 5006

ERRORS: Mapping[ErrorCode, int] = {
    ErrorCode.MALFORMED: INVALID_COMMAND,
    ErrorCode.FRAME_TOO_LARGE: INVALID_COMMAND,
    ErrorCode.UNKNOWN_COMMAND: INVALID_COMMAND,
    ErrorCode.UNSUPPORTED: FEATURE_UNAVAILABLE,
    ErrorCode.WRONG_PROTOCOL: INVALID_COMMAND,
    ErrorCode.INVALID_NAME: INVALID_TOPIC_NAME,
    ErrorCode.INVALID_NUMBER: INVALID_TOPIC_ID,
    ErrorCode.UNKNOWN_NAMESPACE: STREAM_ID_NOT_FOUND,
    ErrorCode.NAMESPACE_EXISTS: STREAM_NAME_EXISTS,
    ErrorCode.NAMESPACE_NUMBER_EXISTS: STREAM_ID_EXISTS,
    ErrorCode.NAMESPACE_PROTECTED: CANNOT_DELETE_STREAM,
    ErrorCode.UNKNOWN_TOPIC: TOPIC_ID_NOT_FOUND,
    ErrorCode.TOPIC_EXISTS: TOPIC_NAME_EXISTS,
    ErrorCode.TOPIC_NUMBER_EXISTS: TOPIC_ID_EXISTS,
    ErrorCode.INVALID_PARTITION_COUNT: TOO_MANY_PARTITIONS,
    ErrorCode.PARTITIONS_CANNOT_SHRINK: TOO_MANY_PARTITIONS,
    ErrorCode.UNKNOWN_PARTITION: PARTITION_NOT_FOUND,
    ErrorCode.NO_PARTITIONS: NO_PARTITIONS,
    ErrorCode.EMPTY_BATCH: INVALID_MESSAGES_COUNT,
    ErrorCode.RECORD_TOO_LARGE: TOO_BIG_PAYLOAD,
    ErrorCode.BATCH_TOO_LARGE: TOO_BIG_PAYLOAD,
    ErrorCode.OFFSET_OUT_OF_RANGE: INVALID_OFFSET,
    ErrorCode.INVALID_OFFSET: INVALID_OFFSET,
    ErrorCode.OFFSET_REGRESSION: INVALID_OFFSET,
    ErrorCode.OUT_OF_ORDER_SEQUENCE: CANNOT_APPEND_MESSAGE,
    ErrorCode.STALE_PRODUCER_EPOCH: CANNOT_APPEND_MESSAGE,
    ErrorCode.UNKNOWN_GROUP: GROUP_NOT_FOUND,
    ErrorCode.GROUP_EXISTS: GROUP_EXISTS,
    ErrorCode.GROUP_TOPIC_MISMATCH: GROUP_NOT_FOUND,
    ErrorCode.UNKNOWN_MEMBER: MEMBER_NOT_FOUND,
    ErrorCode.STALE_GENERATION: MEMBER_NOT_FOUND,
    ErrorCode.NOT_OWNER: MEMBER_NOT_FOUND,
    ErrorCode.NOT_LEADER: ERROR,
    ErrorCode.REPLICATION_TIMEOUT: CANNOT_APPEND_MESSAGE,
    ErrorCode.STORAGE_FULL: WRITE_ERROR,
    ErrorCode.STORAGE_FAILED: IO_ERROR,
    ErrorCode.DAMAGED: CANNOT_READ_MESSAGE,
    ErrorCode.OVERLOADED: ERROR,
    ErrorCode.LIMIT_REACHED: ERROR,
    ErrorCode.SHUTTING_DOWN: ERROR,
    ErrorCode.INTERNAL: ERROR,
}
"""The number of each refusal where the command does not make it more precise."""

_PRECISE: Mapping[tuple[ErrorCode, int], int] = {
    (ErrorCode.INVALID_NAME, command.CREATE_STREAM): INVALID_STREAM_NAME,
    (ErrorCode.INVALID_NAME, command.UPDATE_STREAM): INVALID_STREAM_NAME,
    (ErrorCode.INVALID_NUMBER, command.CREATE_STREAM): INVALID_STREAM_ID,
    (ErrorCode.NAMESPACE_PROTECTED, command.UPDATE_STREAM): CANNOT_UPDATE_STREAM,
    (ErrorCode.LIMIT_REACHED, command.CREATE_STREAM): CANNOT_CREATE_STREAM,
    (ErrorCode.LIMIT_REACHED, command.CREATE_TOPIC): CANNOT_CREATE_TOPIC,
    (ErrorCode.LIMIT_REACHED, command.CREATE_PARTITIONS): CANNOT_CREATE_PARTITION,
    (ErrorCode.INVALID_NUMBER, command.CREATE_GROUP): INVALID_GROUP_ID,
    (ErrorCode.LIMIT_REACHED, command.CREATE_GROUP): CANNOT_CREATE_GROUP,
}


class Tag(NamedTuple):
    """What an answer needs to know of its request.

    Attributes:
        command: Its code.
        stream_named, topic_named: It was named by text, not by number: the not-found errors differ.
        offset: What STORE_CONSUMER_OFFSET asked to store.
        number: The error number, where parsing already found it; 0 leaves it to `number_of`.
    """

    command: int
    stream_named: bool = False
    topic_named: bool = False
    offset: int = -1
    number: int = 0


def number_of(code: ErrorCode, tag: Tag) -> int:
    """The most precise number of this generation for a refusal of this request."""
    if tag.number:
        return tag.number
    if code is ErrorCode.UNKNOWN_NAMESPACE:
        return STREAM_NAME_NOT_FOUND if tag.stream_named else STREAM_ID_NOT_FOUND
    if code is ErrorCode.UNKNOWN_TOPIC:
        return TOPIC_NAME_NOT_FOUND if tag.topic_named else TOPIC_ID_NOT_FOUND
    return _PRECISE.get((code, tag.command)) or ERRORS[code]


REASONS: Mapping[int, ErrorCode] = {
    FEATURE_UNAVAILABLE: ErrorCode.UNSUPPORTED,
    INVALID_COMMAND: ErrorCode.MALFORMED,
    CANNOT_PARSE_SLICE: ErrorCode.MALFORMED,
    IO_ERROR: ErrorCode.STORAGE_FAILED,
    WRITE_ERROR: ErrorCode.STORAGE_FULL,
    CANNOT_UPDATE_STREAM: ErrorCode.NAMESPACE_PROTECTED,
    CANNOT_CREATE_STREAM: ErrorCode.LIMIT_REACHED,
    CANNOT_DELETE_STREAM: ErrorCode.NAMESPACE_PROTECTED,
    STREAM_ID_NOT_FOUND: ErrorCode.UNKNOWN_NAMESPACE,
    STREAM_NAME_NOT_FOUND: ErrorCode.UNKNOWN_NAMESPACE,
    STREAM_ID_EXISTS: ErrorCode.NAMESPACE_NUMBER_EXISTS,
    STREAM_NAME_EXISTS: ErrorCode.NAMESPACE_EXISTS,
    INVALID_STREAM_NAME: ErrorCode.INVALID_NAME,
    INVALID_STREAM_ID: ErrorCode.INVALID_NUMBER,
    CANNOT_CREATE_TOPIC: ErrorCode.LIMIT_REACHED,
    TOPIC_ID_NOT_FOUND: ErrorCode.UNKNOWN_TOPIC,
    TOPIC_NAME_NOT_FOUND: ErrorCode.UNKNOWN_TOPIC,
    TOPIC_ID_EXISTS: ErrorCode.TOPIC_NUMBER_EXISTS,
    TOPIC_NAME_EXISTS: ErrorCode.TOPIC_EXISTS,
    INVALID_TOPIC_NAME: ErrorCode.INVALID_NAME,
    TOO_MANY_PARTITIONS: ErrorCode.INVALID_PARTITION_COUNT,
    INVALID_TOPIC_ID: ErrorCode.INVALID_NUMBER,
    CANNOT_CREATE_PARTITION: ErrorCode.LIMIT_REACHED,
    PARTITION_NOT_FOUND: ErrorCode.UNKNOWN_PARTITION,
    NO_PARTITIONS: ErrorCode.NO_PARTITIONS,
    INVALID_MESSAGES_COUNT: ErrorCode.EMPTY_BATCH,
    CANNOT_APPEND_MESSAGE: ErrorCode.STORAGE_FAILED,
    CANNOT_READ_MESSAGE: ErrorCode.DAMAGED,
    TOO_BIG_HEADERS: ErrorCode.BATCH_TOO_LARGE,
    INVALID_HEADER_KEY: ErrorCode.MALFORMED,
    INVALID_HEADER_VALUE: ErrorCode.MALFORMED,
    TOO_BIG_PAYLOAD: ErrorCode.BATCH_TOO_LARGE,
    EMPTY_PAYLOAD: ErrorCode.MALFORMED,
    INVALID_KEY_LENGTH: ErrorCode.MALFORMED,
    INVALID_OFFSET: ErrorCode.INVALID_OFFSET,
    GROUP_NOT_FOUND: ErrorCode.UNKNOWN_GROUP,
    GROUP_EXISTS: ErrorCode.GROUP_EXISTS,
    MEMBER_NOT_FOUND: ErrorCode.UNKNOWN_MEMBER,
    INVALID_GROUP_ID: ErrorCode.INVALID_NUMBER,
    CANNOT_CREATE_GROUP: ErrorCode.LIMIT_REACHED,
}
"""What a client makes of a server's number; any other is INTERNAL."""
