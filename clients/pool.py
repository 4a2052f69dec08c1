"""What drives plans: connections by address, made when they are first needed.

A connection that broke, or on which an answer is overdue, is thrown away with whatever may still
come on it, so that no late answer is ever taken for that of the next request.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

import trio

from dragoman.clients.connection import open_client
from dragoman.clients.error import ClientError, PartlySent
from dragoman.clients.plan import Pause
from dragoman.clients.sync import connect
from dragoman.codecs.base import Unsayable

if TYPE_CHECKING:
    from dragoman.clients.connection import Client
    from dragoman.clients.plan import Address, Answer, Ask, Plan, Result
    from dragoman.clients.sync import SyncClient


class Pool:
    """The Trio face. One task at a time runs a plan on it.

    Args:
        dialect: That of all its connections.
        options: Of `open_client`: timeouts, and the dialect's own.
    """

    def __init__(self, dialect: str, **options: Any) -> None:
        self._dialect = dialect
        self._options = options
        self._clients: dict[Address, tuple[Client, AsyncExitStack]] = {}

    async def run(self, plan: Plan[Result]) -> Result:
        """Drives a plan to its end."""
        argument: Any = None
        try:
            while True:
                try:
                    step = plan.send(argument)
                except StopIteration as done:
                    result: Result = done.value
                    return result
                if isinstance(step, Pause):
                    await trio.sleep(step.seconds)
                    argument = None
                else:
                    argument = await self._ask_all(step)
        finally:
            plan.close()

    async def _ask_all(self, asks: tuple[Ask, ...]) -> list[Answer]:
        if len(asks) == 1:
            return [await self._ask(asks[0])]
        answers: dict[int, Answer] = {}

        async def ask(number: int, one: Ask) -> None:
            answers[number] = await self._ask(one)

        async with trio.open_nursery() as nursery:
            for number, one in enumerate(asks):
                nursery.start_soon(ask, number, one)
        return [answers[number] for number in range(len(asks))]

    async def _ask(self, ask: Ask) -> Answer:
        try:
            if ask.address not in self._clients:
                stack = AsyncExitStack()
                opening = open_client(self._dialect, *ask.address, **self._options)
                client = await stack.enter_async_context(opening)
                self._clients[ask.address] = client, stack
            client, _ = self._clients[ask.address]
            return await client.ask_many(ask.requests)
        except (PartlySent, Unsayable) as error:
            return error
        except ClientError as error:
            await self._drop(ask.address)
            return error
        except BaseException:
            await self._drop(ask.address)  # who is cancelled leaves answers owed
            raise

    async def _drop(self, address: Address) -> None:
        _, stack = self._clients.pop(address, (None, None))
        if stack is not None:
            await stack.aclose()

    async def aclose(self) -> None:
        """Closes all connections."""
        for address in [*self._clients]:
            await self._drop(address)


class SyncPool:
    """The synchronous face, for one thread.

    Args:
        dialect, options: As for `Pool`, with `connect`.
    """

    def __init__(self, dialect: str, **options: Any) -> None:
        self._dialect = dialect
        self._options = options
        self._clients: dict[Address, tuple[SyncClient, ExitStack]] = {}

    def run(self, plan: Plan[Result]) -> Result:
        """Drives a plan to its end."""
        argument: Any = None
        try:
            while True:
                try:
                    step = plan.send(argument)
                except StopIteration as done:
                    result: Result = done.value
                    return result
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                    argument = None
                else:
                    argument = [self._ask(ask) for ask in step]
        finally:
            plan.close()

    def _ask(self, ask: Ask) -> Answer:
        try:
            if ask.address not in self._clients:
                stack = ExitStack()
                connecting = connect(self._dialect, *ask.address, **self._options)
                client = stack.enter_context(connecting)
                self._clients[ask.address] = client, stack
            client, _ = self._clients[ask.address]
            return client.ask_many(ask.requests)
        except (PartlySent, Unsayable) as error:
            return error
        except ClientError as error:
            self._drop(ask.address)
            return error
        except BaseException:
            self._drop(ask.address)  # an interrupt leaves answers owed
            raise

    def _drop(self, address: Address) -> None:
        _, stack = self._clients.pop(address, (None, None))
        if stack is not None:
            stack.close()

    def close(self) -> None:
        """Closes all connections."""
        for address in [*self._clients]:
            self._drop(address)
