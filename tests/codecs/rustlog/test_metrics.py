"""Statistics as Prometheus text."""

from __future__ import annotations

from dragoman.codecs.rustlog.metrics import exposition


def test_figures_are_gauges_sorted_by_name() -> None:
    assert exposition({"b": 2, "a": 1.5}) == (
        "# TYPE dragoman_a gauge\ndragoman_a 1.5\n# TYPE dragoman_b gauge\ndragoman_b 2\n"
    )


def test_names_are_made_legal() -> None:
    assert "dragoman_journal_bytes 3\n" in exposition({"journal.bytes": 3})


def test_a_text_is_an_escaped_label() -> None:
    assert exposition({"failure": 'a "b"\n\\'}).endswith(
        'dragoman_failure_info{value="a \\"b\\"\\n\\\\"} 1\n'
    )
