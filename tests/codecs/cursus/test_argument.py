"""Arguments that cannot be served are refused in words."""

from __future__ import annotations

import pytest

from support.asked import refused


@pytest.mark.parametrize(
    ("text", "wording"),
    [
        ("CONSUME topic=t partition=1_0 offset=0", "invalid_consume_syntax"),
        ("CONSUME topic=t partition=99999999999 offset=0", "invalid_consume_syntax"),
        ("CONSUME topic=t partition=0 offset=9223372036854775808", "invalid_offset"),
        ("CONSUME topic=t partition=0", "invalid_consume_syntax"),
        ("CONSUME topic=t partition=0 offset=0 batch=0", "invalid_batch"),
        ("CONSUME topic=t partition=0 offset=0 wait_ms=-1", "invalid_wait_ms"),
        ("STREAM topic=t partition=0 autoOffsetReset=x", "invalid_auto_offset_reset value=x"),
        ("PUBLISH topic=t producerId=p seqNum=-1 message=x", "invalid_seq_num"),
        ("PUBLISH topic=t producerId=p epoch=x message=x", "invalid_epoch"),
        ("PUBLISH topic=t producerId=p partition=x message=x", "invalid_partition"),
        (b"CREATE topic=\xff", 'invalid_name reason="a topic is UTF-8"'),
        (b"\0\1\xffmessage", 'invalid_name reason="a topic is UTF-8"'),
        ("CREATE topic=t idempotent=x", 'invalid_idempotent reason="must be true or false"'),
        ("HEARTBEAT topic=t group=g member=m generation=x", "invalid_generation"),
        ("FETCH_OFFSET topic=t group=g", "missing_partition command=FETCH_OFFSET"),
        ("FIND_COORDINATOR topic=1", "missing_group command=FIND_COORDINATOR"),
        ("FIND_COORDINATOR", "unknown_command command=FIND_COORDINATOR"),
        ("RAFT_APPLY x", "unsupported command=RAFT_APPLY"),
        ("LIST " + "x" * 300_000, "command_too_long limit=262144"),
    ],
)
def test_a_command_that_cannot_be_served_is_refused_in_words(
    text: str | bytes, wording: str
) -> None:
    assert refused(text) == wording
