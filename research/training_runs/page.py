"""Published runs beside predictions, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from research.training_runs.judged import Judged, judged
from research.training_runs.recipes import recorded
from research.training_runs.runs import FLASH_2

_TITLE = """# Whole training runs

Written by
`python -m research.training_runs --measurements DIR --out research/docs/accuracy/training-runs.md`.

MPT-7B on 16 nodes of eight H100 trains 10,475 tokens a second and GPU (llm-foundry). Below is what is
predicted for such runs, from a trace of each that was recorded without a GPU. The rates are absolute: nothing
cancels, and nothing was fitted to them.

- **llm-foundry** (MosaicML, Apache-2.0): MPT in BF16, 125M to 7B parameters. All rows of 2,048 tokens, and a
  tenth of the traces of other lengths, drawn by a hash. Micro-batches, sharding and checkpointing are columns
  of the table; a network of 1,600 Gb/s a node is stated beside it.
- **torchtitan** and **torchao** (PyTorch, BSD-3-Clause): Llama 3 8B on 8 and 128 H100. torchtitan's are
  boards of their own, with HBM2e and 500 of 700 W; they are predicted as an H100 SXM, which is faster.
  Selective checkpointing is taken to be by operator, which is torchtitan's default.
- **InternEvo** (Shanghai AI Laboratory, Apache-2.0): InternLM-7B on 8 to 1,024 A100, four cards of 100 Gb/s a
  node, the optimizer's state divided among all GPUs or those of a node. Layers in two parts are supposed,
  with the state whole where a node divides it. Its worst rows are at 1,024 GPUs, of which no collective was
  measured.
- **VectorLM**: Llama 3 8B on 1 to 4 A100, all weights and LoRA. Blocks are taken to be checkpointed, since
  activations would not fit without, and adapters to be of rank 8 beside queries and values.

| what | rows |
|---|---|
| fitted | none |
| chose | llm-foundry's rows of 65,536 tokens: FlashAttention or FlashAttention 2 |
| only judged | all others |

llm-foundry does not name the version of its FlashAttention. Its rows of 65,536 tokens are almost nothing but
attention, so they tell: they chose the first for all of its rows. By its authors it takes twice as long as
FlashAttention 2 ("around 2x", 1.3 to 3.0 by shape: Dao, arXiv:2307.08691), and the intervals hold that doubt.

"""
_REMARKS = """An error above 0 is a rate that is predicted too fast. MPT's worst row, 1b on 32 A100, is
published as 22 % slower a GPU than the same on 64: something else than the model was slow there.

torchtitan's boards may draw 500 of an H100's 700 W. That is counted, by what epochs on other boards lost
([method](../methods/roofline.md#a-board-whose-power-is-limited)). Without it these rows were 17, 14, 16 and
12 % too fast. Their memory, HBM2e, is slower than that of the H100 they are predicted as: not counted."""
_HEAD = "| {} | rows | mean | median | worst | too fast by | inside p10..p90 |\n|---|--:|--:|--:|--:|--:|--:|"


def page(rows: Sequence[Judged]) -> str:
    """All of it."""
    parts = (chosen_by(rows), "## Errors", *summaries(rows), _REMARKS, "## Every run", each(rows))
    return _TITLE + "\n\n".join(parts) + "\n"


def chosen_by(rows: Sequence[Judged]) -> str:
    """The rows that chose a kernel of attention, with both."""
    lines = [
        f"| {row.run.name} | {row.run.layout.num_gpus} x {row.run.gpu.name} |"
        f" {judged(replace(row.run, attention=FLASH_2), recorded).error:+.0%} | {row.error:+.0%} |"
        for row in rows
        if row.run.chooses
    ]
    head = "| model | GPUs | by FlashAttention 2 | by FlashAttention |\n|---|---|--:|--:|"
    return "\n".join([head, *lines])


def summaries(rows: Sequence[Judged]) -> Iterator[str]:
    """Errors by source and nodes, by model, and by GPU; rows that chose something are in none."""
    judging = [row for row in rows if not row.run.chooses]
    for title, key in (("source", _source), ("model", _model), ("GPU", _gpu)):
        yield _table(title, judging, key)


def _table(title: str, rows: Sequence[Judged], key: Callable[[Judged], str]) -> str:
    names = dict.fromkeys(map(key, rows))
    lines = [_line(name, [row for row in rows if key(row) == name]) for name in names]
    return "\n".join([_HEAD.format(title), *lines, _line("all", rows)])


def _line(name: str, rows: Sequence[Judged]) -> str:
    errors = [abs(row.error) for row in rows]
    signed = statistics.median(row.error for row in rows)
    return (
        f"| {name} | {len(rows)} | {statistics.fmean(errors):.1%} | {statistics.median(errors):.1%} |"
        f" {max(errors):.0%} | {signed:+.0%} | {sum(row.is_inside for row in rows)} |"
    )


def _source(row: Judged) -> str:
    return f"{row.run.source}, {'one node' if row.run.layout.num_nodes == 1 else 'several nodes'}"


def _model(row: Judged) -> str:
    return row.run.name.partition(",")[0]


def _gpu(row: Judged) -> str:
    return row.run.gpu.name


def each(rows: Sequence[Judged]) -> str:
    """A line for each run."""
    lines = [
        "| source | model, batch x tokens | GPUs | passes | published | predicted (p10 .. p90) | error | |",
        "|---|---|---|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        run, rate = row.run, row.tokens_per_s
        note = "chose" if run.chooses else ("" if row.is_inside else "outside")
        lines.append(
            f"| {run.source} | {run.name} | {run.layout.num_gpus} x {run.gpu.name} | {run.passes} |"
            f" {run.tokens_per_s:,.0f} | {rate.p50:,.0f} ({rate.p10:,.0f} .. {rate.p90:,.0f}) |"
            f" {row.error:+.0%} | {note} |"
        )
    return "\n".join(lines)
