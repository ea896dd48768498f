"""Speed of the main job: ``python -m benchmarks.recommend``.

``advisor recommend TRACE`` as a whole process, four times:

- a trace of 2,000 operators and a snapshot of 3,000 machine types, one offer each, so that none is the
  cheaper place of another; all GPUs of the catalog, 1 to 8 of them, on demand and spot. Two of three are
  spot, which costs more to judge.
- the shipped prices in a database that holds 200,000 older ones.
- a trace of 100,000 operators of 400 shapes, and the shipped prices.
- 1,000 node types of one's own clusters beside the shipped prices: half in the user's file, half in the
  project's, since one holds no more.
"""

from __future__ import annotations

import csv
import json
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from advisor.core.gpus import load_gpus
from advisor.core.values import Market, Op
from advisor.formats.trace_files import write_trace
from advisor.pricing.instance_types import InstanceType, columns_of
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import PRICE_COLUMNS, SnapshotSource
from benchmarks.prediction import operators
from benchmarks.prices import NUM_POINTS, fill
from benchmarks.timing import processor_s, ratio

NUM_OFFERS, NUM_OPS = 3000, 2000
MANY_OPS, NUM_CLUSTERS = 100_000, 1000
AIM_BYTES = 600 * 10**6
RUNS = 5
DAY = "2026-11-01"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is large in it, and how long the answer may take."""

    name: str
    aim_s: float
    num_ops: int = NUM_OPS
    settings: Callable[[Path], object] = lambda _: {}
    """Makes them, and the files they name, in a folder."""


def main() -> None:
    """Print seconds, those of the processor, ratios to a bare interpreter, and the peak of memory."""
    for case in CASES:
        with tempfile.TemporaryDirectory() as name:
            command = prepared(Path(name), case)
            times, seconds = ratio(command, [sys.executable, "-c", "pass"], RUNS)
            busy_s = processor_s(command, RUNS)
        print(
            f"advisor recommend, {case.name}: {seconds:.2f} s (aim: under {case.aim_s:g} s on an idle core),"
            f" {busy_s:.2f} s of the processor, {times:.1f} x a bare interpreter"
        )
    peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"{peak_bytes / 1e6:.0f} MB at most (aim: under {AIM_BYTES / 1e6:.0f} MB)")


def prepared(folder: Path, case: Case) -> list[str]:
    """Writes trace, settings and their files into a folder; the command that ranks there."""
    from tests.builders import make_trace

    write_trace(make_trace(ops=_operators(case.num_ops)), folder / "trace.json.gz")
    (folder / "advisor").mkdir()
    # JSON is YAML, too.
    (folder / "advisor" / "config.yaml").write_text(json.dumps(case.settings(folder)))
    # Installed, advisor has its bytecode.
    command = [
        "env",
        "-C",
        str(folder),
        "-u",
        "PYTHONDONTWRITEBYTECODE",
        f"HOME={folder}",
        f"XDG_CONFIG_HOME={folder}",
    ]
    command += [sys.executable, "-m", "advisor", "recommend", str(folder / "trace.json.gz")]
    return [*command, "--epochs", "1", "--budget", "500"]


def _operators(num_ops: int) -> tuple[Op, ...]:
    ops = operators()
    return (ops * (num_ops // len(ops) + 1))[:num_ops]


def _many_offers(folder: Path) -> object:
    write_snapshot(folder / "snapshot")
    options = {"snapshot": {"folder": str(folder / "snapshot")}}
    return {"prices": {"sources": ["snapshot"], "options": options}}


def _many_prices(folder: Path) -> object:
    url = f"sqlite:///{folder / 'prices.db'}"
    fill(url, [offer for part in SnapshotSource().offers(OfferQuery()) for offer in part.offers])
    return {"store": {"url": url}}


def _many_clusters(folder: Path) -> object:
    names = [spec.name for spec in load_gpus().values() if spec.vendor.lower() == "nvidia"]
    clusters = [
        {"name": f"lab{i}", "gpu": names[i % len(names)], "num_gpus": 2 ** (i % 4), "usd_per_gpu_h": 1.0}
        for i in range(NUM_CLUSTERS)
    ]
    (folder / ".advisor.yaml").write_text(json.dumps({"clusters": clusters[::2]}))
    return {"clusters": clusters[1::2]}


CASES = (
    Case(name=f"{NUM_OPS:,} operators x {NUM_OFFERS:,} offers", aim_s=1.5, settings=_many_offers),
    Case(name=f"{NUM_POINTS:,} older prices", aim_s=2.0, settings=_many_prices),
    Case(name=f"{MANY_OPS:,} operators", aim_s=5.0, num_ops=MANY_OPS),
    Case(name=f"{NUM_CLUSTERS:,} clusters", aim_s=2.0, settings=_many_clusters),
)


def write_snapshot(folder: Path, num_offers: int = NUM_OFFERS) -> None:
    """Price files in the form of the shipped ones, of machines made up from a fixed seed."""
    rows = list(_rows(num_offers))
    _write(folder / "instances.csv", columns_of(InstanceType), [machine for machine, _ in rows])
    for provider in ("aws", "gcp"):
        own = [price for _, price in rows if price[0] == provider]
        _write(folder / "prices" / f"{provider}.csv", PRICE_COLUMNS, own)


def _rows(num_offers: int) -> Iterator[tuple[list[object], list[object]]]:
    draw = Random(0)  # noqa: S311 - prices, no secrets
    names = [spec.name for spec in load_gpus().values() if spec.vendor.lower() == "nvidia"]
    markets = (Market.ON_DEMAND, Market.SPOT, Market.SPOT)
    regions = ("us-east-1", "eu-west-1", "ap-southeast-1")
    for i in range(num_offers):
        provider, kind, count = ("aws", "gcp")[i % 2], f"m{i}.large", 2 ** (i // len(names) % 4)
        usd_per_h = f"{draw.uniform(2, 12) * count:.4f}"
        source = "made up"
        yield (
            [provider, kind, names[i % len(names)], count, 8 * count, 2**36, "16 GiB", "", 0, "x86_64", 60,
             "8 vCPU", source, DAY],
            [provider, kind, regions[i % 3], "", markets[i % 3].value, usd_per_h, DAY, source],
        )  # fmt: skip


def _write(path: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
