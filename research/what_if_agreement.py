"""What-ifs against profiles of changed scripts: ``python -m research.what_if_agreement``.

Eight scripts are profiled as they are and with each change, on the pretended GPU. Then the change is made in
the trace of the script as it is. Both are predicted on three GPUs. Profiling all takes three minutes;
``--record`` keeps the traces that the tests read, ``--recorded`` reads them. ``--seen`` and ``--judges``
compare models of timm and transformers instead: those that the rules were mended on, and those that nobody
looked at before the rules were done. ``--by-shapes`` first takes out what tells where operands come from.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import advisor
from advisor.core.findings import Finding
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Trace
from advisor.formats.trace_files import read_trace, write_trace
from advisor.predict.iteration import predict
from advisor.predict.what_if.script_changes import CHANGES
from research.what_if_scripts import ROOT, SCRIPTS, WhatIfScript

FOLDER = ROOT / "tests" / "what_if_traces"
MODEL = Path(__file__).with_name("what_if_model.py")
# Looked at when memory under autocast was worked out anew, and when operands were followed.
SEEN = (
    ("gpt2", 4),
    ("t5", 4),
    ("bert", 4),
    ("convnext_tiny", 8),
    ("vit_small_patch16_224", 8),
    ("efficientnet_b0", 8),
    ("swin_tiny_patch4_window7_224", 8),
    ("opt", 4),
    ("electra", 4),
    ("distilbert", 4),
    ("densenet121", 8),
    ("mixer_s16_224", 8),
    ("regnety_008", 8),
    ("cait_xxs24_224", 8),
    ("albert", 4),
)
# Chosen before the rules met them.
JUDGES = (
    ("gpt_neox", 4),
    ("mistral", 4),
    ("deberta", 4),
    ("poolformer_s12", 8),
    ("resnest14d", 8),
    ("mobilevit_s", 8),
    ("xcit_nano_12_p16_224", 8),
)
JUDGED = ("batch", "bf16", "accumulate", "fused", "channels_last", "tf32")
GPUS = ("A100-SXM-80GB", "L4", "H100-SXM-80GB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One change of one script: the supposed over the real, less 1."""

    script: str
    change: str
    time_off: tuple[float, ...] = ()
    """By GPU, in the order they were asked for; empty where the change is refused."""
    memory_off: float = 0.0
    """Of the allocator's peak."""
    refused: Finding | None = None
    """The change makes no difference to the script."""

    @property
    def worst_time_off(self) -> float:
        """On any of the GPUs."""
        return max(map(abs, self.time_off), default=0.0)


def agreements(
    folder: Path = FOLDER, gpus: Sequence[str] = GPUS, *, by_shapes: bool = False
) -> Iterator[Agreement]:
    """Every change of every script, from traces that lie in a folder."""
    for script in SCRIPTS:
        base = _base(read_trace(_path(folder, script, None)), by_shapes=by_shapes)
        for change in script.changes:
            real = read_trace(_path(folder, script, change))
            yield _agreement(script.name, change, base, real, gpus)


def _agreement(script: str, change: str, base: Trace, real: Trace, gpus: Sequence[str]) -> Agreement:
    supposed = CHANGES[change](base)
    if isinstance(supposed, Finding):
        return Agreement(script=script, change=change, refused=supposed)
    trace, specs = supposed.trace, map(resolve_gpu, gpus)
    pairs = [(predict(trace, gpu).device_s.p50, predict(real, gpu).device_s.p50) for gpu in specs]
    return Agreement(
        script=script,
        change=change,
        time_off=tuple(mine / theirs - 1 for mine, theirs in pairs),
        memory_off=(trace.memory.peak_bytes or 0) / (real.memory.peak_bytes or 1) - 1,
    )


def _base(trace: Trace, *, by_shapes: bool) -> Trace:
    return replace(trace, ops=tuple(replace(op, flows=()) for op in trace.ops)) if by_shapes else trace


def judged(models: Sequence[tuple[str, int]], *, by_shapes: bool = False) -> Iterator[Agreement]:
    """The same of models, each with its batch."""
    for model, batch in models:
        base = _base(_profiled(MODEL, (model, str(batch), "none")), by_shapes=by_shapes)
        for change in JUDGED:
            real = _profiled(MODEL, (model, str(batch), change))
            yield _agreement(model, change, base, real, GPUS)


def record(folder: Path) -> None:
    """Profile every script as it is, and with each change written in."""
    with tempfile.TemporaryDirectory() as scripts:
        for script in SCRIPTS:
            for change in (None, *script.changes):
                path = Path(scripts) / f"{script.name}.py"
                path.write_text(script.text(change))
                trace = replace(_profiled(path, script.command_line(change)), script=script.path)
                write_trace(trace, _path(folder, script, change))


def _profiled(path: Path, arguments: Sequence[str]) -> Trace:
    settings = {"profile.backend": "fake", "profile.timeout": "5m"}
    trace = advisor.profile(path, arguments, settings=settings)
    # What each run measures anew; loading is not judged here.
    return replace(trace, data_loading_s=None, loader_cpu_s_per_sample=None)


def _path(folder: Path, script: WhatIfScript, change: str | None) -> Path:
    return folder / f"{script.name}-{change or 'base'}.json.gz"


def table(rows: list[Agreement]) -> Iterator[str]:
    """The rows as Markdown."""
    yield f"| script | change | {' | '.join(GPUS)} | memory |"
    yield "|---|---|" + "---:|" * (len(GPUS) + 1)
    for row in rows:
        offs = [f"{off:+.1%}" for off in (*row.time_off, row.memory_off)]
        cells = offs if row.refused is None else ["-"] * len(GPUS) + ["no difference"]
        yield f"| {row.script} | {row.change} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table, and the worst of each change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="keep the traces for the tests")
    parser.add_argument("--recorded", action="store_true", help="read the traces that the tests read")
    parser.add_argument("--seen", action="store_true", help="models that the rules were mended on")
    parser.add_argument("--judges", action="store_true", help="models that fitted nothing")
    parser.add_argument("--by-shapes", action="store_true", help="do not tell where operands come from")
    arguments = parser.parse_args()
    if arguments.seen or arguments.judges:
        models = SEEN if arguments.seen else JUDGES
        print_rows(list(judged(models, by_shapes=arguments.by_shapes)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = FOLDER if arguments.record or arguments.recorded else Path(temporary)
        if not arguments.recorded:
            folder.mkdir(exist_ok=True)
            record(folder)
        rows = list(agreements(folder, by_shapes=arguments.by_shapes))
    print_rows(rows)


def print_rows(rows: list[Agreement]) -> None:
    """The table, and the worst of each change."""
    print("\n".join(table(rows)))
    for change in dict.fromkeys(row.change for row in rows):
        own = [row for row in rows if row.change == change and row.refused is None]
        time_off = max(row.worst_time_off for row in own)
        memory_off = max(abs(row.memory_off) for row in own)
        print(f"{change}: {len(own)} scripts, time at most {time_off:.1%} off, memory {memory_off:.1%}")


if __name__ == "__main__":
    main()
