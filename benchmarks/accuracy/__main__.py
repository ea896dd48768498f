"""Measured iterations beside predicted ones, and beside what others published for the same rows.

    python -m benchmarks.accuracy --end-to-end ../shared/measurements/end_to_end.csv --json out.json

The file has the columns of NeuSight's tables: ``gpu, model, mode, seq_len, batch_size, measured_ms`` and any
number of other predictors as ``NAME_ms``. Configurations of the models lie beside it in ``model_configs`` (or
``--configs DIR``). Needs torch and transformers: ``pip install 'gpu-advisor[frameworks]'``.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

from advisor.gpus import resolve_gpu
from advisor.predict import predict
from benchmarks.accuracy.models import Workload, trace_of
from benchmarks.accuracy.summary import summarise, table

_WORKLOAD = ("model", "mode", "seq_len", "batch_size")


def predicted(row: dict[str, str], configs: Path) -> dict[str, Any]:
    """The row with our median, p10 and p90 in milliseconds and the seconds by method."""
    model, mode, seq_len, batch_size = (row[name] for name in _WORKLOAD)
    workload = Workload(model=model, mode=mode, seq_len=int(seq_len), batch_size=int(batch_size))
    estimate = predict(trace_of(workload, configs), resolve_gpu(row["gpu"]))
    interval = estimate.iteration_s
    return {
        **row,
        "predicted_ms": 1e3 * interval.p50,
        "p10_ms": 1e3 * interval.p10,
        "p90_ms": 1e3 * interval.p90,
        "by_method": {str(method): seconds for method, seconds in estimate.by_method.items()},
    }


def main() -> None:
    """Read, predict, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--end-to-end", type=Path, required=True, metavar="FILE.csv")
    parser.add_argument("--configs", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="OUT")
    options = parser.parse_args()
    configs = options.configs or options.end_to_end.parent / "model_configs"
    rows = []
    with options.end_to_end.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=1):
            print(f"\r{number}: {row['model']} on {row['gpu']}      ", end="", file=sys.stderr)
            rows.append(predicted(row, configs))
    print(file=sys.stderr)
    summary = summarise(rows)
    print(table(summary))
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "summary": summary}, indent=1))


if __name__ == "__main__":
    main()
