"""What listeners of an older generation do otherwise; their answers on the wire are vectors."""

from __future__ import annotations

from dragoman.codecs.cursus.legacy import WINDOW_MS, legacy_line, producer_digest
from dragoman.codecs.cursus.translate import Tag
from dragoman.core import calls
from dragoman.core.dedupe import digest_of
from support.asked import asked


def test_topics_of_another_namespace_are_listed_by_both_names() -> None:
    topics = [calls.TopicDescription("n", "b", 1, 0, calls.TopicConfig(), [])]
    assert legacy_line(Tag("LIST"), calls.TopicsListed(topics)) == "n/b"


def test_what_was_answered_as_today_is_left_to_others() -> None:
    assert legacy_line(Tag("HELP"), calls.Answered("OK")) is None


def test_a_producer_and_its_sequence_are_known_by_both() -> None:
    known = {producer_digest(b"p", 1), producer_digest(b"p", 2), producer_digest(b"q", 1)}
    assert len(known) == 3
    assert digest_of((1).to_bytes(8, "big") + b"p") not in known


def test_a_publish_with_a_sequence_is_looked_for_in_the_window() -> None:
    for tail, dedupe in (("seqNum=1 ", True), ("seqNum=0 ", False), ("", False)):
        text = f"PUBLISH topic=t producerId=p {tail}message=x"
        request = asked(text, legacy_replies=True).request
        assert isinstance(request, calls.Produce)
        assert request.dedupe is dedupe
        assert asked(text).request.dedupe is False  # type: ignore[union-attr]


def test_a_new_topic_has_a_window_unless_create_says_another() -> None:
    for tail, window_ms in (("", WINDOW_MS), (" dedupe=0", 0), (" dedupe=5s", 5000)):
        request = asked(f"CREATE topic=t{tail}", legacy_replies=True).request
        assert isinstance(request, calls.CreateTopic)
        assert request.config.dedupe_ms == window_ms
