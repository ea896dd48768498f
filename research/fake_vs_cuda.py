"""The fake backend against this machine's GPU: same operators, same counts, how near the memory.

    python -m research.fake_vs_cuda [--save FOLDER] [NAME ...]

Needs a CUDA device. ``--save`` keeps the measured traces, small enough to become fixtures.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Trace
from advisor.formats.trace_files import write_trace
from advisor.profile import pretend, profile

EXAMPLES = Path(__file__).parents[1] / "examples"
# Name: script and its arguments; the batches fit into 40 GB.
JOBS = {
    "resnet50": ("train_resnet50.py", []),
    "resnet50-amp": ("train_resnet50.py", ["--amp"]),
    "gpt2-small-bf16": ("train_gpt.py", []),
    "bert-large": ("train_bert.py", []),
    "bert-large-amp": ("train_bert.py", ["--amp"]),
    "lstm": ("train_lstm.py", []),
    "lstm-amp": ("train_lstm.py", ["--amp"]),
    "dcgan": ("train_dcgan.py", []),
}
# The allocator's peak holds cuDNN's workspaces and rounds large blocks up.
MEMORY_TOLERANCE = 0.08


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One script by both backends."""

    name: str
    missing: Counter[str]
    """Operator and phase -> calls that only the GPU saw."""
    surplus: Counter[str]
    """Those that only the fake backend saw."""
    memory_ratio: float
    """Fake / measured peak bytes."""
    measured: Trace

    @property
    def agrees(self) -> bool:
        """Whether operators and counts are equal and memory is within the tolerance."""
        same = not self.missing and not self.surplus
        return same and abs(self.memory_ratio - 1) <= MEMORY_TOLERANCE


def compare(name: str) -> Comparison:
    """Profile one job by both backends, the fake one pretending to be this very GPU."""
    file, arguments = JOBS[name]
    measured = profile(EXAMPLES / file, arguments, backend="cuda")
    assert measured.origin_gpu is not None
    gpu = pretend(resolve_gpu(measured.origin_gpu).name)
    fake = profile(EXAMPLES / file, arguments, backend="fake", gpu=gpu)
    real_calls, fake_calls = _calls(measured), _calls(fake)
    assert measured.memory.peak_bytes is not None
    assert fake.memory.peak_bytes is not None
    return Comparison(
        name=name,
        missing=real_calls - fake_calls,
        surplus=fake_calls - real_calls,
        memory_ratio=fake.memory.peak_bytes / measured.memory.peak_bytes,
        measured=measured,
    )


def _calls(trace: Trace) -> Counter[str]:
    calls: Counter[str] = Counter()
    for op in trace.ops:
        calls[f"{op.name} ({op.phase})"] += op.count
    return calls


def main() -> None:
    """Print a line per job, and what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(JOBS))
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    for name in options.names or JOBS:
        comparison = compare(name)
        verdict = "agrees" if comparison.agrees else "DIFFERS"
        seconds = comparison.measured.iteration_s or 0.0
        figures = f"memory x{comparison.memory_ratio:.3f}  {seconds * 1e3:8.2f} ms an iteration"
        print(f"{name:<18}{verdict:<9}{figures}")
        differences = {"only on the GPU": comparison.missing, "only in the fake": comparison.surplus}
        for title, calls in differences.items():
            if calls:
                print(f"    {title}: " + ", ".join(f"{n} x {op}" for op, n in calls.most_common()))
        if options.save:
            write_trace(comparison.measured, options.save / f"{name}.trace.json.gz")


if __name__ == "__main__":
    main()
