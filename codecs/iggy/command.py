"""The command codes of the dialect, and which of them are served.

Codes of later generations (logins and tokens 31-44, purges, snapshots) are unknown here.
"""

from __future__ import annotations

from typing import Final

PING: Final = 1
GET_STATS: Final = 10
GET_ME: Final = 20
GET_CLIENT: Final = 21
GET_CLIENTS: Final = 22
POLL_MESSAGES: Final = 100
SEND_MESSAGES: Final = 101
GET_CONSUMER_OFFSET: Final = 120
STORE_CONSUMER_OFFSET: Final = 121
GET_STREAM: Final = 200
GET_STREAMS: Final = 201
CREATE_STREAM: Final = 202
DELETE_STREAM: Final = 203
UPDATE_STREAM: Final = 204
GET_TOPIC: Final = 300
GET_TOPICS: Final = 301
CREATE_TOPIC: Final = 302
DELETE_TOPIC: Final = 303
UPDATE_TOPIC: Final = 304
CREATE_PARTITIONS: Final = 402
DELETE_PARTITIONS: Final = 403
GET_GROUP: Final = 600
GET_GROUPS: Final = 601
CREATE_GROUP: Final = 602
DELETE_GROUP: Final = 603
JOIN_GROUP: Final = 604
LEAVE_GROUP: Final = 605

UNSERVED: Final = {
    GET_STATS: "GET_STATS",
    GET_ME: "GET_ME",
    GET_CLIENT: "GET_CLIENT",
    GET_CLIENTS: "GET_CLIENTS",
}
"""Commands of the generation that this server knows and answers with FeatureUnavailable."""

# Kinds of the shared encodings.
NUMERIC: Final = 1
NAMED: Final = 2
CONSUMER: Final = 1
GROUP: Final = 2
BALANCED: Final = 1
PARTITION_ID: Final = 2
MESSAGES_KEY: Final = 3
OFFSET: Final = 1
TIMESTAMP: Final = 2
FIRST: Final = 3
LAST: Final = 4
NEXT: Final = 5

STATE_AVAILABLE: Final = 1
"""The only message state that is ever sent."""

# Limits of the generation, with the error number of each beside it in `error`.
PAYLOAD_BYTES_MAX: Final = 10 * 1024 * 1024
"""Sum of the payload bytes of one SEND_MESSAGES."""
HEADER_BYTES_MAX: Final = 100 * 1024
"""Sum of the header value bytes of one SEND_MESSAGES; keys are not counted."""
PARTITIONS_MAX: Final = 100_000
"""Partitions of one topic, and of one CREATE_PARTITIONS or DELETE_PARTITIONS."""
FIELD_BYTES_MAX: Final = 255
"""Bytes of a header key, a header value, a name, a messages key."""
FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""Largest request frame; the generation itself knew none."""
