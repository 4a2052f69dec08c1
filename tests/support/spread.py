"""The same function over many arguments, on all cores, in processes that start alike."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")


def spread(function: Callable[..., T], tasks: Iterable[tuple[Any, ...]]) -> Iterator[T]:
    """Yields the results in the order of the tasks; the first failure ends it.

    The function must be importable by name (from `support`, not from a test file). Hashes of bytes
    are the same in all workers, so that what they fingerprint may be compared.
    """
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = "0"
    try:
        with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
            futures = [pool.submit(function, *task) for task in tasks]
            try:
                for future in futures:
                    yield future.result()
            finally:
                pool.shutdown(cancel_futures=True)
    finally:
        if before is None:
            del os.environ["PYTHONHASHSEED"]
        else:
            os.environ["PYTHONHASHSEED"] = before
