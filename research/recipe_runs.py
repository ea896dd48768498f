"""Recipes beside published fine-tuning runs: memory, what fits, and time, with calculators on the same rows.

    python -m research.recipe_runs --published DIR --traces tests/recipe_run_traces --out PAGE.md

Each run is the recipe of its method with the run's model, batch and length, profiled once (some ten
seconds of a core each) and kept in the folder of traces. The runs are of litgpt, which recomputes
nothing, writes its norms out in float32 and adapts queries and values alone: the script says the same.
What the table leaves open is assumed, and named on the page.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from advisor.core.files import write_atomically
from advisor.core.gpus import load_gpus
from advisor.core.values import GpuSpec, IterationEstimate, Trace
from advisor.formats.trace_files import read_trace, write_trace
from advisor.predict.iteration import predict
from advisor.profile import profile
from advisor.recipes.models import find_model, known_models
from advisor.recipes.recipes import Order, script_of
from research.training.published_rows import published_rows

FILE = "finetuning.csv"
GB = 1e9
_NAMES = {
    "llama 2 7b": "llama-2-7b", "llama 2 13b": "llama-2-13b",
    "llama-3-8b": "llama-3.1-8b", "tiny-llama": "tinyllama-1.1b",
}  # fmt: skip
# Longest sample of Alpaca, by the table itself.
_LONGEST = {"llama-2-7b": 1304, "llama-2-13b": 1304}
_CUT = 512
# The table does not say which layers were adapted.
_QUERIES_AND_VALUES = ("q_proj", "v_proj")
_ALL_ADAPTED = ("tinyllama-1.1b",)
# Not in the table, and a guess: tokens of the longest sample of a batch, to which all are padded.
_MEAN_LENGTH = {1: 128, 2: 160, 4: 208}
_NORM = """

class WrittenOutNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.empty(width)), eps

    def reset_parameters(self):
        nn.init.ones_(self.weight)

    def forward(self, x):
        wide = x.float()
        normed = wide * torch.rsqrt((wide * wide).mean(dim=-1, keepdim=True) + self.eps)
        return normed.to(x.dtype) * self.weight


class Attention("""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRun:
    """A row of the table that a recipe covers."""

    model: str
    method: str
    gpu: str
    num_gpus: int
    batch: int
    memory_gb: float | None
    iteration_s: float | None
    is_out_of_memory: bool

    @property
    def spec(self) -> GpuSpec:
        """The GPU of the catalog."""
        return load_gpus()[self.gpu]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A run, and what is predicted for it; memory in GB, of weights with gradients and moments."""

    run: PublishedRun
    memory_gb: float
    fits: bool
    step: IterationEstimate | None
    weights_gb: float
    thumb_gb: float
    formula_gb: float
    formula_s: float


def published_runs(folder: Path) -> Iterator[PublishedRun]:
    """Rows of one GPU whose batch and length are stated, of methods that a recipe is."""
    for row in published_rows(folder / FILE):
        model = _NAMES.get(row["model"], row["model"])
        is_covered = row["source"].startswith("Lightning-AI") and model in known_models()
        if not is_covered or row["method"] == "adapter":
            continue
        is_repeated = row["num_gpus"] != "1" and "config_hub" in row["source"]
        if row["num_gpus"] != "1" and not is_repeated:
            continue
        if is_repeated and not row["oom"] and row["method"] != "full":
            continue  # the note of the table: they seem to have run on one GPU, whose row is there
        seconds = row["seconds"] if row["per"].startswith("1,000 iterations") else ""
        yield PublishedRun(
            model=model,
            method="qlora" if row["quantization"] else row["method"],
            gpu=row["gpu"],
            num_gpus=1,
            batch=int(row["micro_batch"]),
            memory_gb=float(row["peak_memory_gb"]) if row["peak_memory_gb"] else None,
            iteration_s=float(seconds) / 1000 if seconds else None,
            is_out_of_memory=row["oom"] == "yes",
        )


def trace_of(run: PublishedRun, length: int, folder: Path) -> Trace:
    """The recipe's trace, as litgpt would have it.

    Raises:
        ProfileError: it cannot be profiled here.
    """
    constants: dict[str, object] = {"CHECKPOINTING": False, "ACCUMULATION": 1, "SHARD": False}
    if run.method != "full":
        targets = () if run.model in _ALL_ADAPTED else _QUERIES_AND_VALUES
        constants |= {"ADAPTER_RANK": 8, "DROPOUT": 0.05, "TARGETS": targets}
    folder.mkdir(parents=True, exist_ok=True)
    order = Order(recipe=run.method, model=run.model, sequence=length, batch=run.batch, constants=constants)
    text = script_of(order)
    text = text.replace("nn.RMSNorm(", "WrittenOutNorm(").replace("\n\nclass Attention(", _NORM, 1)
    # bitsandbytes of 2023 keeps the input of each layer of four bits.
    text = text.replace("ctx.layer = layer", "ctx.layer, ctx.kept = layer, x")
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = folder / f"{run.method}-{run.model}-{run.batch}x{length}-{digest}.json.gz"
    if not path.exists():
        script = folder / "recipe.py"
        script.write_text(text, encoding="utf-8")
        write_trace(profile(script, (), backend="fake", timeout_s=600), path)
        print(path.name, flush=True)
    return read_trace(path)


def compared(run: PublishedRun, folder: Path) -> Compared:
    """The run beside what is predicted for it.

    Raises:
        ProfileError: it cannot be profiled here.
    """
    longest = _LONGEST.get(run.model, _CUT) if run.gpu.startswith("A100") else _CUT
    trace = trace_of(run, longest, folder)
    mean = _MEAN_LENGTH.get(run.batch, _CUT)
    step = None
    if run.iteration_s is not None:
        step = predict(trace_of(run, mean, folder), run.spec)
    model = find_model(run.model, offline=True)
    weights = model.num_params * {"lora": 2, "qlora": 0.5, "full": 8}[run.method]
    width = model.size("hidden_size")
    # Korthikanti et al. 2022, without the attention matrix, which FlashAttention does not keep.
    activations = 34 * run.batch * longest * width * model.size("num_hidden_layers")
    per_token = {"lora": 4, "qlora": 4, "full": 6}[run.method] * model.num_params
    peak = run.spec.tensor_flops_per_s["bf16"]
    return Compared(
        run=run,
        memory_gb=(trace.memory.peak_bytes or 0) / GB,
        fits=predict(trace, run.spec).fits_memory,
        step=step,
        weights_gb=weights / GB,
        thumb_gb=1.2 * weights / GB,
        formula_gb=(weights + activations) / GB,
        formula_s=per_token * run.batch * mean / (0.4 * peak),
    )


_HEAD = """# Recipes beside published fine-tuning runs

Written by `python -m research.recipe_runs`; the runs are of litgpt (`finetuning.csv`, one A100-SXM-40GB or
A10G). Each is a [recipe](../../../docs/recipes.md) with the run's model, batch and longest sample, with
litgpt's own choices written in: no recomputation, norms written out in float32, dropout of 5 % before
adapters, and inputs kept by layers of four bits, as bitsandbytes of 2023 did. How long weights of four bits
take to become 16 was told by other runs, of an A10G ([streams](streams.md)).

Left out: adapters (no recipe), runs on several GPUs, models that the plain decoder does not have (phi-1.5,
phi-2, Falcon, Phi-3), and tables that state neither batch nor length, or an optimizer of their own (PEFT,
torchtune).

Assumed, because the table does not say: which layers were adapted (queries and values; all of TinyLlama's),
and the mean length of Alpaca's samples, by which the **times** below stand or fall: 128 tokens, 160 as the
longest of two, 208 of four.

"""


def page(results: Iterable[Compared]) -> str:
    """Tables and figures as Markdown."""
    rows = list(results)
    return _HEAD + "\n\n".join((*_memory(rows), *_fits(rows), *_times(rows))) + "\n"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _memory(rows: list[Compared]) -> Iterator[str]:
    stated = [(row, row.run.memory_gb) for row in rows if row.run.memory_gb is not None]
    known = [(row, gb) for row, gb in stated if gb > row.weights_gb]
    yield f"## Peak memory\n\n{len(known)} runs; GB as `torch.cuda.max_memory_allocated` counts them."
    yield _table(
        ("run", "published", "recipe", "error", "weights x 1.2", "weights and Korthikanti's activations"),
        (
            (
                _name(row.run),
                f"{gb:.1f}",
                *(f"{row.memory_gb:.1f}", _error(row.memory_gb / gb - 1)),
                *(_error(row.thumb_gb / gb - 1), _error(row.formula_gb / gb - 1)),
            )
            for row, gb in known
        ),
    )
    means = (
        ("the recipe", [row.memory_gb / gb - 1 for row, gb in known]),
        ("weights x 1.2", [row.thumb_gb / gb - 1 for row, gb in known]),
        ("weights and Korthikanti's activations", [row.formula_gb / gb - 1 for row, gb in known]),
    )
    yield "Mean absolute error: " + ", ".join(f"{name} {_mean(errors)}" for name, errors in means) + "."
    others = [f"{_name(row.run)} ({gb:.1f} GB)" for row, gb in stated if gb <= row.weights_gb]
    if others:
        yield (
            "Left out, because weights, gradients and AdamW's moments alone are more than was published, so"
            f" that another optimizer must have run: {', '.join(others)}."
        )


def _fits(rows: list[Compared]) -> Iterator[str]:
    right = sum(row.fits is not row.run.is_out_of_memory for row in rows)
    wrong = [_name(row.run) for row in rows if row.fits is row.run.is_out_of_memory]
    yield f"## Fits or not\n\nRight for {right} of {len(rows)} runs."
    if wrong:
        yield f"Wrong: {', '.join(wrong)}."


def _times(rows: list[Compared]) -> Iterator[str]:
    timed = [
        (row, row.step.iteration_s, row.run.iteration_s) for row in rows if row.step and row.run.iteration_s
    ]
    yield f"## Time of a pass\n\n{len(timed)} runs of 1,000 passes; ms."
    yield _table(
        ("run", "published", "recipe", "p10 to p90", "error", "2 or 3 x 2 N D at 40 % of the peak"),
        (
            (
                _name(row.run), f"{s * 1e3:.0f}", f"{step.p50 * 1e3:.0f}",
                f"{step.p10 * 1e3:.0f} to {step.p90 * 1e3:.0f}", _error(step.p50 / s - 1),
                _error(row.formula_s / s - 1),
            )
            for row, step, s in timed
        ),
    )  # fmt: skip
    inside = sum(step.p10 <= s <= step.p90 for _, step, s in timed)
    recipe, formula = (
        [step.p50 / s - 1 for _, step, s in timed],
        [row.formula_s / s - 1 for row, _, s in timed],
    )
    yield (
        f"Mean absolute error: the recipe {_mean(recipe)}, the formula {_mean(formula)}."
        f" {inside} of {len(timed)} are within p10 to p90. Samples are short, so much of a pass is the CPU"
        " that launches kernels, which a formula of FLOPs does not see."
    )


def _name(run: PublishedRun) -> str:
    return f"{run.model} {run.method}, {run.gpu}, batch {run.batch}"


def _error(relative: float) -> str:
    return f"{relative:+.0%}".replace("%", " %")


def _mean(errors: list[float]) -> str:
    return f"{statistics.fmean(map(abs, errors)):.0%}".replace("%", " %") if errors else "unknown"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("published", "traces", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    given = parser.parse_args()
    runs = dict.fromkeys(published_runs(given.published))
    write_atomically(given.out, page(compared(run, given.traces) for run in runs).encode())


if __name__ == "__main__":
    main()
