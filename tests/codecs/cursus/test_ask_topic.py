"""What commands about topics ask of core; their answers on the wire are vectors."""

from __future__ import annotations

from dragoman.core import calls
from support.asked import asked


def test_idempotent_is_kept_with_the_topic() -> None:
    request = asked("CREATE topic=t partitions=2 idempotent=TRUE").request
    assert isinstance(request, calls.CreateTopic)
    assert request.config.idempotent
    assert request.if_exists is calls.IfExists.GROW
