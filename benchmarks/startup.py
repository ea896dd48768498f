"""How long a person waits: the help page, and the answers for a saved trace."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from advisor.formats.trace_files import write_trace
from benchmarks.timing import report

ADVISOR = [sys.executable, "-m", "advisor"]


def main() -> None:
    """Print ratios to a bare interpreter."""
    from tests.builders import make_op, make_trace

    ops = tuple(make_op(f"aten::op{i}", flops=10**9 + i, count=3) for i in range(400))
    report("advisor --help", [*ADVISOR, "--help"], limit=0.2)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json.gz"
        write_trace(make_trace(ops=ops), trace)
        report("advisor predict TRACE", [*ADVISOR, "predict", str(trace)], limit=1.0)
        report("advisor recommend TRACE", [*ADVISOR, "recommend", str(trace), "--epochs", "1"], limit=1.5)
    report("advisor prices", [*ADVISOR, "prices"], limit=0.5)


if __name__ == "__main__":
    main()
