"""A disk that fails: syncs, writes and all else, at every call site, and in recoveries.

`CRASH_SYNC_FAILURES` is how far the failing sync goes, `CRASH_RECOVERIES` how many wrecks are
recovered with a failure at each call.
"""

from __future__ import annotations

import pytest

from support.effort import effort
from support.failing import FAILURES, Site, failed_sync, failing_recovery, one_failure, sites
from support.spread import spread
from support.verdict import rule

SYNCS = effort("CRASH_SYNC_FAILURES", 30)
SITE_CALLS = effort("CRASH_SITE_CALLS", 2)
RECOVERIES = effort("CRASH_RECOVERIES", 12)
SYNCED = [
    Site("sync", "journal"),
    Site("sync", "topics.log"),
    Site("sync", "catalog.tmp"),
    Site("sync directory", "catalog"),
    Site("sync directory", "topics"),
]


@pytest.mark.slow
@pytest.mark.timeout(120 + 4 * SYNCS)
@pytest.mark.parametrize("site", SYNCED, ids=lambda site: f"{site.operation}-{site.kind}")
def test_a_failed_sync_is_the_end_of_all_promises(site: Site) -> None:
    with rule("D7", f"EIO at the k-th {site.operation} of {site.kind}") as row:
        row.cases = sum(spread(failed_sync, [(site, k, k) for k in range(1, SYNCS + 1)]))
        assert row.cases == SYNCS


@pytest.mark.slow
@pytest.mark.timeout(300 + 60 * SITE_CALLS)
def test_a_failed_call_is_a_clean_error_and_a_full_disk_heals() -> None:
    seed = 3
    tasks = [
        (site, number, failure, seed)
        for site in sites(seed)
        for failure in FAILURES
        for number in range(1, SITE_CALLS + 1)
    ]
    with rule("D8", f"{len(FAILURES)} failures at {len(sites(seed))} call sites") as row:
        row.cases = sum(spread(one_failure, tasks))
        assert row.cases > len(FAILURES) * len(sites(seed))


@pytest.mark.slow
@pytest.mark.timeout(120 + 10 * RECOVERIES)
def test_a_recovery_may_fail_anywhere_twice_in_a_row() -> None:
    with rule("D10", "each call of a recovery fails, twice in a row, and power cuts") as row:
        row.cases = sum(spread(failing_recovery, [(seed,) for seed in range(RECOVERIES)]))
