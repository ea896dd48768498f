"""Traces of the published rows of `research/published.py`, recorded, since profiling all takes two minutes.

Predictions are made anew from them at each run of the tests. ``python -m tests.published`` profiles all
again, and has to whenever a model or an example changes: `index.json` holds the digests of their sources.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from advisor.core.values import Trace
from advisor.formats.trace_files import read_trace, write_trace
from research import llama_steps
from research.published import CASES, Case
from research.scaling.lambda_networks import NETWORKS
from research.speedups import Network

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("published_traces")
INDEX = FOLDER / "index.json"
SOURCES = (
    "research/bert.py", "research/bert_adam.py", "research/gnmt.py", "research/lambda_networks.py",
    "research/run_scripts/mpt_script.py",
    "research/llama_steps.py", "research/published.py", "research/scaling/lambda_networks.py",
    "research/transformer_xl.py", "research/translation.py", "examples/train_resnet50.py",
)  # fmt: skip


def recorded_cases() -> tuple[Case, ...]:
    """The published rows, each with its recorded trace."""
    return tuple(replace(case, build=partial(recorded_trace, case)) for case in CASES)


def recorded_network(network: Network) -> Network:
    """A network of the published speed-ups, with the recorded traces of its rows."""
    cases = [case for case in CASES if case.name.startswith(network.name.replace(",", ""))]

    def build(amp: bool, batch_size: int) -> Trace:
        def suits(case: Case) -> bool:
            where = dict(case.where)
            batch = where.get("batch_per_gpu") or network.batch_sizes.get(
                "AMP" if amp else "TF32", batch_size
            )
            return where["precision"].startswith("AMP") == amp and int(batch) == batch_size

        return recorded_trace(next(filter(suits, cases)))

    return replace(network, build=build)


def recorded_trace(case: Case) -> Trace:
    """The trace of a row."""
    return _read(index()["traces"][_name(case)])


def recorded_llama(sequences: int, length: int) -> Trace:
    """The step of a Llama on so many sequences."""
    return _read(index()["traces"][_llama(sequences, length)])


def recorded_lambda() -> dict[str, Callable[[bool], Trace]]:
    """The networks that Lambda ran on several boards."""
    return {name: partial(_recorded_lambda, name) for name in NETWORKS}


def _recorded_lambda(name: str, half: bool) -> Trace:
    return _read(index()["traces"][_lambda(name, half)])


def index() -> Any:
    """Each row's file, and the digests of what the traces were made of."""
    return json.loads(INDEX.read_text())


def digests() -> dict[str, str]:
    """Of the sources as they are now."""
    return {source: hashlib.sha256((ROOT / source).read_bytes()).hexdigest() for source in SOURCES}


def same_work(trace: Trace) -> Trace:
    """The trace without what each run measures anew or names after its place; its loading is not judged."""
    return replace(
        trace,
        script="",
        data_loading_s=0.0,
        loader_cpu_s_per_sample=None,
        # 0 where a run measures how long the script itself takes to make its samples.
        num_workers=trace.num_workers or None,
        # What a script's text says of checkpoints is no work.
        checkpoints=None,
    )


@cache
def _read(file: str) -> Trace:
    return read_trace(FOLDER / file)


def _name(case: Case) -> str:
    return f"{case.name} on {case.gpu}"


def _llama(sequences: int, length: int) -> str:
    return f"Llama-3.2-1B {sequences} x {length}"


def _lambda(name: str, half: bool) -> str:
    return f"{name} of Lambda, {'fp16' if half else 'fp32'}"


def _write(recorded: Trace) -> str:
    """The file of a row's trace; rows with the same work share one."""
    temporary = FOLDER / "new.json.gz"
    trace = same_work(recorded)
    write_trace(trace, temporary)
    digest = hashlib.sha256(repr(trace).encode()).hexdigest()[:12]
    return temporary.rename(FOLDER / f"{digest}.json.gz").name


def main() -> None:
    """Profile all rows."""
    for old in FOLDER.glob("*.json.gz"):
        old.unlink()
    traces = {_name(case): _write(case.build()) for case in CASES}
    traces |= {_llama(*batch): _write(llama_steps.trace_of(*batch)) for batch in llama_steps.BATCHES}
    traces |= {
        _lambda(name, half): _write(build(half)) for name, build in NETWORKS.items() for half in (True, False)
    }
    INDEX.write_text(json.dumps({"sources": digests(), "traces": traces}, indent=1) + "\n")


if __name__ == "__main__":
    main()
