"""Namespaces: made, renamed, deleted and listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.core import calls
from dragoman.core.calls import (
    NamespaceCreated,
    NamespaceDeleted,
    NamespaceDescribed,
    NamespacesListed,
)
from dragoman.core.change import NamespaceDropped, NamespacePut
from dragoman.core.describe import revealed_by
from dragoman.core.error import EngineError, ErrorCode
from dragoman.core.name import DEFAULT_NAMESPACE_NUMBER, checked_name
from dragoman.core.number import NAMESPACE_NUMBER_MAX, next_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.calls import (
        CreateNamespace,
        DeleteNamespace,
        DescribeNamespace,
        ListNamespaces,
        RenameNamespace,
    )
    from dragoman.core.catalog import NamespaceState
    from dragoman.core.clock import Now
    from dragoman.core.describe import Describer
    from dragoman.core.directory import Directory
    from dragoman.core.options import EngineOptions
    from dragoman.core.outcome import Client, Outcome
    from dragoman.core.partition import Partition
    from dragoman.core.waiting import Waiting


class Namespaces:
    """Serves every request about namespaces."""

    def __init__(
        self,
        options: EngineOptions,
        directory: Directory,
        describer: Describer,
        waiting: Waiting,
        on_dropped: Callable[[list[Partition]], None],
    ) -> None:
        self._options = options
        self._directory = directory
        self._describer = describer
        self._waiting = waiting
        self._on_dropped = on_dropped

    @property
    def handlers(self) -> dict[type, Callable[[Any, Client, Now], Outcome]]:
        """What serves each of its requests."""
        return {
            calls.CreateNamespace: self.create,
            calls.RenameNamespace: self.rename,
            calls.DeleteNamespace: self.delete,
            calls.ListNamespaces: self.list_all,
            calls.DescribeNamespace: self.describe,
        }

    def create(self, request: CreateNamespace, client: Client, now: Now) -> Outcome:
        """Makes a namespace; its number is checked before its name."""
        directory = self._directory
        catalog = directory.catalog
        name = checked_name(request.name, "namespace")
        number = request.number
        if number:
            if not 0 < number <= DEFAULT_NAMESPACE_NUMBER:
                raise EngineError(
                    ErrorCode.INVALID_NUMBER, f"a namespace number is 1 to {NAMESPACE_NUMBER_MAX}"
                )
            if number in catalog.namespaces_by_number:
                raise EngineError(
                    ErrorCode.NAMESPACE_NUMBER_EXISTS, "a namespace has this number", number=number
                )
        if name in catalog.namespaces:
            raise EngineError(
                ErrorCode.NAMESPACE_EXISTS, "there is such a namespace", namespace=name
            )
        if len(catalog.namespaces) >= self._options.namespaces_max:
            raise EngineError(ErrorCode.LIMIT_REACHED, "there are too many namespaces")
        directory.check_writable()
        if not number:
            number = next_number(
                catalog.namespace_numbers_used, catalog.namespaces_by_number, NAMESPACE_NUMBER_MAX
            )
        directory.apply_admin(NamespacePut(number, name, now.wall_us))
        return self._created(catalog.namespaces[name], client)

    def rename(self, request: RenameNamespace, client: Client, now: Now) -> Outcome:
        """Gives a namespace another name."""
        directory = self._directory
        state = directory.namespace(request.namespace)
        _check_unprotected(state)
        name = checked_name(request.name, "namespace")
        if name != state.name:
            if name in directory.catalog.namespaces:
                raise EngineError(
                    ErrorCode.NAMESPACE_EXISTS, "there is such a namespace", namespace=name
                )
            directory.check_writable()
            directory.apply_admin(NamespacePut(state.number, name, state.created_us))
        return self._created(state, client)

    def delete(self, request: DeleteNamespace, client: Client, now: Now) -> Outcome:
        """Deletes a namespace and its topics; who waits there is told."""
        directory = self._directory
        state = directory.namespace(request.namespace)
        _check_unprotected(state)
        directory.check_writable()
        topics = self._describer.topics(state)
        sequence = directory.apply_admin(NamespaceDropped(state.number))
        self._on_dropped([gone for topic in topics for gone in directory.fit(topic.state.topic_id)])
        return self._waiting.answer(client, NamespaceDeleted(state.name), sequence)

    def list_all(self, request: ListNamespaces, client: Client, now: Now) -> Outcome:
        """All namespaces by number; the default one only once it holds a topic."""
        by_number = self._directory.catalog.namespaces_by_number
        states = [
            by_number[number]
            for number in sorted(by_number)
            if number != DEFAULT_NAMESPACE_NUMBER or by_number[number].topics
        ]
        reply = NamespacesListed([self._describer.namespace(state) for state in states])
        return self._waiting.answer(client, reply, self._revealed(states))

    def describe(self, request: DescribeNamespace, client: Client, now: Now) -> Outcome:
        """One namespace with its topics."""
        state = self._directory.namespace(request.namespace)
        reply = NamespaceDescribed(self._describer.namespace(state))
        return self._waiting.answer(client, reply, self._revealed([state]))

    def _created(self, state: NamespaceState, client: Client) -> Outcome:
        reply = NamespaceCreated(self._describer.namespace(state))
        return self._waiting.answer(client, reply, self._revealed([state]))

    def _revealed(self, states: list[NamespaceState]) -> int:
        topics = [topic for state in states for topic in self._describer.topics(state)]
        return max([self._directory.sequence, *[revealed_by(topic) for topic in topics]])


def _check_unprotected(state: NamespaceState) -> None:
    if state.number == DEFAULT_NAMESPACE_NUMBER:
        raise EngineError(
            ErrorCode.NAMESPACE_PROTECTED,
            "the default namespace stays as it is",
            namespace=state.name,
        )
