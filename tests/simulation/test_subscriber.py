"""Subscribers of a run: what they say, hear and do, and who listens to what they are sent."""

from __future__ import annotations

from dragoman.core.calls import Answered, JoinGroup
from dragoman.core.error import ErrorCode, Failure
from dragoman.simulation.audit import Auditor
from dragoman.simulation.run import Simulation
from dragoman.simulation.subscriber import Subscriber, SubscribeSpeaker
from dragoman.simulation.writer import Writer
from support.cursus import framed

OK = b"OK topic=t group=g subscribed=true"


def test_it_speaks_the_documents_form() -> None:
    said = SubscribeSpeaker().ask(JoinGroup("t", "g", "m", bound=True))
    assert b"".join(map(bytes, said)) == framed("SUBSCRIBE t g")


def test_an_answer_is_told_apart_from_what_is_pushed() -> None:
    speaker = SubscribeSpeaker()
    speaker.ask(JoinGroup("t", "g", "m", bound=True))
    data = framed("a") + framed("") + framed(OK) + framed(OK)
    heard = [told for at in range(len(data)) for told in speaker.receive(data[at : at + 1])]
    assert [(told.reply, told.push) for told in heard] == [
        (Answered(b"a"), True),
        (Answered(OK), False),
        (Answered(OK), True),
    ]


def test_a_refusal_is_an_answer_or_the_end_of_what_is_pushed() -> None:
    speaker = SubscribeSpeaker()
    speaker.ask(JoinGroup("t", "g", "m", bound=True))
    told = speaker.receive(framed("ERROR: topic_not_found topic=t") * 2)
    assert [one.push for one in told] == [False, True]
    assert all(
        isinstance(one.reply, Failure) and one.reply.code is ErrorCode.UNKNOWN_TOPIC for one in told
    )


def staged() -> tuple[Simulation, list[Subscriber]]:
    """A run with two subscribers who have heard that they are."""
    simulation = Simulation(1)
    simulation.server.start()
    Auditor(simulation).prepare()
    world = simulation.world
    pair = [Subscriber(f"s{number}", world, "s0", "g") for number in (1, 2)]
    simulation.actors = [*pair]
    for subscriber in pair:
        subscriber.act()
        subscriber.act()
        simulation.exchange()
    return simulation, pair


def write(simulation: Simulation) -> None:
    writer = Writer("w", simulation.world, "rustlog")
    simulation.actors = [*simulation.actors, writer]
    for _ in range(20):
        writer.act()
        simulation.exchange()
        simulation.server.tick(10_000)


def test_what_is_written_is_pushed() -> None:
    simulation, _ = staged()
    write(simulation)
    audience = simulation.world.audience("s0", "g")
    assert audience.count > 5
    assert len(audience.eras) == 1
    Auditor(simulation).conclude()


def test_what_was_on_its_way_to_who_hung_up_counts_as_pushed() -> None:
    simulation, pair = staged()
    write(simulation)
    audience = simulation.world.audience("s0", "g")
    before = audience.count
    pair[0].client.hang_up(reset=False)
    write(simulation)
    assert audience.count > before
    Auditor(simulation).conclude()


def test_after_the_last_one_another_time_begins() -> None:
    simulation, pair = staged()
    for subscriber in pair:
        subscriber.client.hang_up(reset=True)
    pair[0].act()
    pair[0].act()
    simulation.exchange()
    assert len(simulation.world.audience("s0", "g").eras) == 2


def test_it_goes_on_and_off_and_asks_again() -> None:
    simulation, pair = staged()
    for _ in range(300):
        for subscriber in pair:
            subscriber.act()
        simulation.exchange()
    assert pair[0].client.connections > 2
    write(simulation)
    Auditor(simulation).conclude()


def test_who_is_refused_hangs_up() -> None:
    simulation, pair = staged()
    simulation.server.life.is_impaired = True
    pair[0].pushed(Failure(ErrorCode.STORAGE_FAILED))
    assert pair[0].client.connection is None
