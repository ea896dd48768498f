"""Speed of the main job: ``python -m benchmarks.recommend``.

``advisor recommend TRACE`` as a whole process: a trace of 2,000 operators and a snapshot of 3,000 machine
types, one offer each, so that none is the cheaper place of another; all GPUs of the catalog, 1 to 8 of them,
on demand and spot. Two of three are spot, which costs more to judge.
"""

from __future__ import annotations

import csv
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from advisor.core.gpus import load_gpus
from advisor.core.values import Market
from advisor.formats.trace_files import write_trace
from advisor.pricing.catalog.instance_types import INSTANCE_COLUMNS
from advisor.pricing.sources.snapshot import PRICE_COLUMNS
from benchmarks.prediction import operators
from benchmarks.timing import ratio

NUM_OFFERS, NUM_OPS = 3000, 2000
AIM_S, AIM_BYTES = 2.0, 600 * 10**6
RUNS = 5
DAY = "2026-11-01"


def main() -> None:
    """Print seconds, the ratio to a bare interpreter, and the peak of memory."""
    with tempfile.TemporaryDirectory() as name:
        command = prepared(Path(name))
        times, seconds = ratio(command, [sys.executable, "-c", "pass"], RUNS)
    peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(
        f"advisor recommend, {NUM_OPS:,} operators x {NUM_OFFERS:,} offers: {seconds:.2f} s (aim: under"
        f" {AIM_S:g} s on an idle core), {times:.1f} x a bare interpreter, {peak_bytes / 1e6:.0f} MB at most"
        f" (aim: under {AIM_BYTES / 1e6:.0f} MB)"
    )


def prepared(folder: Path) -> list[str]:
    """Writes trace, snapshot and settings into a folder; the command that ranks them there."""
    from tests.builders import make_trace

    write_trace(make_trace(ops=operators()[:NUM_OPS]), folder / "trace.json.gz")
    write_snapshot(folder / "snapshot")
    settings = f"prices: {{sources: [snapshot], options: {{snapshot: {{folder: {folder / 'snapshot'}}}}}}}\n"
    (folder / "advisor").mkdir()
    (folder / "advisor" / "config.yaml").write_text(settings)
    command = ["env", f"HOME={folder}", f"XDG_CONFIG_HOME={folder}", sys.executable, "-m", "advisor"]
    return [*command, "recommend", str(folder / "trace.json.gz"), "--epochs", "1", "--budget", "500"]


def write_snapshot(folder: Path, num_offers: int = NUM_OFFERS) -> None:
    """Price files in the form of the shipped ones, of machines made up from a fixed seed."""
    rows = list(_rows(num_offers))
    _write(folder / "instances.csv", INSTANCE_COLUMNS, [machine for machine, _ in rows])
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
