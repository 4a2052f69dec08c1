"""Which server leads which partition, as far as servers told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.clients import task as tasks
from dragoman.clients.error import ConnectionLost, NoAnswer, Unreachable
from dragoman.clients.plan import Address, on

if TYPE_CHECKING:
    from dragoman.clients.plan import Plan

KNOWN_MAX = 64
"""So many addresses are kept; a server that names ever new ones is not believed for long."""


class Leaders:
    """A cache of leaders, which clears itself where a server says that it is wrong.

    Args:
        home: The server that is known from the beginning.
    """

    def __init__(self, home: Address) -> None:
        self._homes = [home]
        self._known = {home}
        self._unreachable: set[Address] = set()
        self._topics: dict[str, list[Address]] = {}

    @property
    def home(self) -> Address:
        """Where to ask what any server knows; another one once this does not answer."""
        return self._homes[0]

    def find(self, topic: str) -> Plan[list[Address]]:
        """The leader of each of the topic's partitions, asked for where it is not known.

        Raises:
            ClientError: No answer, or a refusal: there may be no such topic.
            Unsayable: The dialect does not describe topics.
        """
        if topic in self._topics:
            return self._topics[topic]
        home = self.home
        try:
            described = yield from on(home, tasks.describe_topic(topic))
        except (Unreachable, ConnectionLost, NoAnswer):
            self.pass_over(home)
            raise
        named = [Address.of(each.leader) if each.leader else home for each in described.partitions]
        leaders = [home if each in self._unreachable else each for each in named]
        self._meet(*leaders)
        self._topics[topic] = leaders
        return leaders

    def address(self, topic: str, partition: int) -> Address:
        """Where a partition is led, as far as is known."""
        leaders = self._topics.get(topic, ())
        return leaders[partition] if partition < len(leaders) else self.home

    def forget(self, topic: str) -> None:
        """The topic's leaders are asked for again before they are needed next."""
        self._topics.pop(topic, None)

    def refused(self, topic: str, partition: int, leader: object) -> None:
        """A server says that it does not lead this partition, and maybe who does."""
        leaders = self._topics.get(topic, [])
        if isinstance(leader, str) and leader and partition < len(leaders):
            address = leaders[partition] = Address.of(leader)
            self._unreachable.discard(address)
            self._meet(address)
        else:
            self.forget(topic)

    def acknowledged(self, topic: str, partition: int, leader: str) -> None:
        """An acknowledgement names a leader. Some brokers name there an address of their own that
        serves no clients, so that one which nobody named before is only a reason to ask."""
        leaders = self._topics.get(topic, [])
        if not leader or partition >= len(leaders):
            return
        address = Address.of(leader)
        if address == leaders[partition] or address in self._unreachable:
            return
        if address in self._known:
            leaders[partition] = address
        else:
            self._known.add(address)
            self.forget(topic)

    def pass_over(self, address: Address, *, unreachable: bool = False) -> None:
        """This server does not answer: another one is asked next, if any is known.

        Args:
            unreachable: Nothing listens there, at least not for us: servers behind a translation of
                addresses may name such leaders, and be those leaders themselves.
        """
        self._topics = {
            topic: leaders for topic, leaders in self._topics.items() if address not in leaders
        }
        if address == self.home:
            self._homes.append(self._homes.pop(0))
            self._unreachable.clear()
        elif unreachable:
            self._unreachable.add(address)

    def _meet(self, *addresses: Address) -> None:
        for address in addresses:
            self._known.add(address)
            if address not in self._homes and len(self._homes) < KNOWN_MAX:
                self._homes.append(address)
        if len(self._known) > 2 * KNOWN_MAX:
            self._known = set(self._homes)
            self._unreachable.clear()
