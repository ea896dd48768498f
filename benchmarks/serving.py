"""``advisor serve`` under load: ``python -m benchmarks.serving --rate 200 --seconds 60``.

Requests begin when they are due, whatever became of earlier ones, and are timed from then: a server that
stops for a second makes 200 of them late, not one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

PATHS = (
    "/jobs", "/jobs/two", "/api/jobs", "/api/jobs/one", "/runs", "/api/runs", "/report", "/api/report",
    "/schedules", "/healthz",
)  # fmt: skip
NUM_CONNECTIONS = 32
NUM_JOBS = 500


@contextmanager
def serving() -> Iterator[int]:
    """The port of a service over a made-up store of hundreds of jobs and runs."""
    from advisor.store.database import open_store
    from advisor.store.ledger import record_recommendation, record_run
    from tests.serving import OPTIONS, fill
    from tests.team import make_entry, make_run

    now = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/s.db"
        fill(url, at=now - timedelta(days=1))
        with open_store(url) as store:
            for i in range(NUM_JOBS):
                at = now - timedelta(hours=i + 3)
                entry = make_entry(f"job{i}", at=at, plan_id="aws/p2", options=OPTIONS)
                record_recommendation(store, entry)
                record_run(store, make_run(id=f"run{i}", recommendation_id=entry.id, started_at=at))
        command = [sys.executable, "-m", "advisor", "serve", "--port", "0"]
        environment = os.environ | {"ADVISOR_STORE__URL": url}
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment
        ) as server:
            try:
                assert server.stderr is not None
                line = next(line for line in server.stderr if "serves" in line)
                yield int(re.findall(r":(\d+)/", line)[0])
            finally:
                server.terminate()


async def load(port: int, rate: float, seconds: float) -> tuple[list[float], Counter[int]]:
    """Latencies in seconds, and how often each status came."""
    due: asyncio.Queue[tuple[str, float] | None] = asyncio.Queue()
    took_s: list[float] = []
    statuses: Counter[int] = Counter()

    async def ask() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
        while (wanted := await due.get()) is not None:
            path, at = wanted
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(re.findall(rb"content-length: (\d+)", head)[0]))
            took_s.append(time.perf_counter() - at)
            statuses[int(head[9:12])] += 1
        writer.close()

    workers = [asyncio.create_task(ask()) for _ in range(NUM_CONNECTIONS)]
    begin = time.perf_counter()
    for i in range(int(rate * seconds)):
        at = begin + i / rate
        await asyncio.sleep(max(0.0, at - time.perf_counter()))
        due.put_nowait((PATHS[i % len(PATHS)], at))
    for _ in workers:
        due.put_nowait(None)
    await asyncio.gather(*workers)
    return took_s, statuses


def main() -> None:
    """One line: requests, statuses, and quantiles of the latency."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with serving() as port:
        asyncio.run(load(port, 10, 2))  # every page once
        took_s, statuses = asyncio.run(load(port, options.rate, options.seconds))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    p50, p99 = (statistics.quantiles(took_s, n=100)[place] * 1e3 for place in (49, 98))
    print(
        f"{len(took_s):,} requests at {options.rate:g}/s: {dict(statuses)}, p50 {p50:.0f} ms,"
        f" p99 {p99:.0f} ms, longest {max(took_s) * 1e3:.0f} ms  (aim: p99 under 150 ms); the server took"
        f" {used.ru_utime + used.ru_stime:.1f} s of CPU"
    )


if __name__ == "__main__":
    main()
