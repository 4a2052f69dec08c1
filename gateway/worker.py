"""Threads that run what may block, one job at a time each, and say when it is done."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

Job = tuple[Any, "Callable[[], Any]"]
"""Whatever names the job to its owner, and the call that may block."""
Done = tuple[Any, Any, "Exception | None"]
"""The name of the job, what the call returned, and what it raised."""


class Workers:
    """Threads that share one queue; with one thread, jobs run in order.

    Args:
        name: Of the threads, for debuggers.
        count: How many threads; started with the first job.
        done: Where finished jobs are put, from the threads.
        signal: Called after each, from the threads.
    """

    def __init__(
        self, name: str, count: int, done: deque[Done], signal: Callable[[], None]
    ) -> None:
        self._name = name
        self._count = count
        self._done = done
        self._signal = signal
        self._inbox: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def hand(self, name: Any, call: Callable[[], Any]) -> None:
        """Queues a job."""
        if len(self._threads) < self._count:
            thread = Thread(target=self._run, name=f"dragoman-{self._name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._inbox.put((name, call))

    def close(self) -> None:
        """Ends the threads after the jobs that are queued, and waits for them."""
        for _ in self._threads:
            self._inbox.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _run(self) -> None:
        while (job := self._inbox.get()) is not None:
            name, call = job
            result: Any = None
            raised: Exception | None = None
            try:
                result = call()
            except Exception as error:
                raised = error
            self._done.append((name, result, raised))
            self._signal()
            del job, name, call, result, raised
