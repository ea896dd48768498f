"""Tables of an evaluation in Markdown; per-row figures are errors, never the measured times."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.accuracy.fitted_tables import fitted_tables
from benchmarks.accuracy.kernels import ALL, GROUPS, KernelErrors
from benchmarks.accuracy.results import Results
from benchmarks.accuracy.scaling import Scaled, errors_by_weight
from benchmarks.accuracy.summary import OURS, cell, error_of, markdown, predictors, summarise, table
from research.published import mean_error
from research.published import table as throughput_table
from research.speedups import SpeedUp

_ROW_KEY = ("gpu", "model", "mode", "seq_len", "batch_size")

_SHIPPED = (
    "Trained on the training split of all these GPUs. No iteration was trained on; what was chosen by them is"
    " told in [how accuracy is measured](../methods/accuracy.md)."
)
_UNSEEN_DIMS = (
    "15 % of the shapes of the training split, chosen by a hash and the same on every GPU, were held out of a"
    " training on its others, which were measured in the same state of the boards."
)


def all_tables(results: Results) -> Iterator[tuple[str, str]]:
    """Title and Markdown of every part that was run."""
    evaluation = results.end_to_end
    legend = "Absolute error in per cent: mean / median / p90 / largest."
    yield "Iterations", f"{legend}\n\n{table(evaluation['summary'])}"
    if len(evaluation["by_knowledge"]) > 1:
        yield "Iterations by seed", seed_table(evaluation["by_knowledge"])
    if results.shipped:
        yield "Iterations with what ships", f"{_SHIPPED}\n\n{table(results.shipped['summary'])}"
    yield "Rows", row_table(evaluation["rows"])
    if results.kernels:
        for split in dict.fromkeys(errors.split for errors in results.kernels):
            of_split = [errors for errors in results.kernels if errors.split == split]
            yield f"Operators, {split} split", kernel_table(of_split)
    if results.unseen_dims:
        text = kernel_table(results.unseen_dims)
        yield "Operators of unseen dimensions", f"{_UNSEEN_DIMS}\n\n{text}"
    if results.left_out:
        yield "A GPU left out of training", left_out_table(results.left_out)
    yield from fitted_tables(results.fitted)
    if results.scaled:
        yield "Scaled from another GPU", scaling_table(results.scaled, results.scaled_clean)
    if results.throughput:
        scored = sum(not score.case.fitted for score in results.throughput)
        mean = f"Mean absolute error of the {scored} rows that fitted nothing: "
        text = throughput_table(results.throughput)
        yield "Published throughput", f"{text}\n\n{mean}{mean_error(results.throughput):.1%}."
    if results.speed_ups:
        yield "Published speed-ups, V100 to A100", speed_up_table(results.speed_ups)


def seed_table(by_knowledge: Mapping[str, Any]) -> str:
    """All rows, by knowledge."""
    rows = [
        [name, cell(summary["all"]["advisor"]), f"{summary['all']['advisor']['coverage']:.0%}"]
        for name, summary in by_knowledge.items()
    ]
    return markdown(["knowledge", "mean / median / p90 / largest, %", "within p10..p90"], rows)


def row_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Every row: noise of its label, then signed errors; ours is the mean over seeds."""
    others = predictors(rows)
    header = ["GPU", "model", "mode", "length", "batch", "label", "noise", "advisor", *others]
    grouped: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(tuple(row[name] for name in _ROW_KEY), []).append(row)
    lines = []
    for key, seeds in grouped.items():
        ours = statistics.fmean(error_of(row, OURS) or 0.0 for row in seeds)
        theirs = [_signed(error_of(seeds[0], f"{name}_ms")) for name in others]
        lines.append([*key, seeds[0]["label"], _noise(seeds[0]["label_noise"]), _signed(ours), *theirs])
    legend = (
        "Errors in per cent, positive where a prediction is too slow. Noise: sum of operators measured"
        " alone against the measured iteration; of training, forward and backward in brackets. A label is"
        " clean within 6 %."
    )
    return f"{legend}\n\n{markdown(header, lines)}"


def _noise(noise: Mapping[str, float | None] | None) -> str:
    if noise is None:
        return "-"
    if noise["backward"] is None:
        return _signed(noise["iteration"])
    return f"{_signed(noise['iteration'])} ({_signed(noise['forward'])}, {_signed(noise['backward'])})"


def _signed(value: float | None) -> str:
    # Nothing has no sign: -0.0 + 0.0 is 0.0.
    return "-" if value is None else f"{round(100 * value, 1) + 0.0:+.1f}"


def kernel_table(errors: Sequence[KernelErrors]) -> str:
    """Kinds by GPU, then what joins several."""
    gpus = sorted({one.gpu for one in errors}, key=lambda gpu: (gpu == ALL, gpu))
    by_key = {(one.kind, one.gpu): one for one in errors}
    kinds = sorted({one.kind for one in errors}, key=lambda kind: (kind == ALL, kind in GROUPS, kind))
    rows = [[kind, *(_kernel_cell(by_key.get((kind, gpu))) for gpu in gpus)] for kind in kinds]
    counts = [str(by_key[ALL, gpu].rows) for gpu in gpus]
    legend = (
        "Absolute error in per cent: median / mean / p90; then the median signed error, and how many"
        " measurements lie within p10..p90. The cost of launching and timing a call is fitted on the training"
        " split and added."
    )
    return f"{legend}\n\n{markdown(['kind', *gpus], [*rows, ['calls', *counts]])}"


def _kernel_cell(one: KernelErrors | None) -> str:
    if one is None:
        return "-"
    errors = f"{100 * one.median:.1f} / {100 * one.mean:.0f} / {100 * one.p90:.0f}"
    return f"{errors}; {100 * one.bias:+.0f}; {one.coverage:.0%}"


def left_out_table(left_out: Mapping[str, Any]) -> str:
    """By GPU: iterations, operators of the test split and convolutions, unseen and calibrated."""
    header = [
        "GPU", "state", "rows", "iterations", "within p10..p90", "operators, test split", "convolutions"
    ]  # fmt: skip
    rows = []
    for gpu, states in left_out.items():
        for state, result in states.items():
            ours = result["summary"]["all"]["advisor"] if result["summary"] else None
            rows.append(
                [
                    gpu,
                    state,
                    "-" if ours is None else str(ours["rows"]),
                    "-" if ours is None else cell(ours),
                    "-" if ours is None else f"{ours['coverage']:.0%}",
                    _operators(result["kernels"], ALL, "test"),
                    _operators(result["kernels"], "conv", "train"),
                ]
            )
    rows += [
        _pooled(left_out, state) for state in dict.fromkeys(s for result in left_out.values() for s in result)
    ]
    legend = (
        "Absolute error in per cent, mean / median / p90 / largest of iterations, median / mean / p90 of"
        " operators; of all GPUs' convolutions the mean of the medians. Calibrated: with 20 kernels measured"
        " on the GPU."
    )
    return f"{legend}\n\n{markdown(header, rows)}"


def _pooled(left_out: Mapping[str, Any], state: str) -> list[str]:
    """The rows of all left-out GPUs together, and the mean over GPUs of what convolutions are off."""
    of_state = [states[state] for states in left_out.values() if state in states]
    rows = [row for states in of_state for row in states["rows"]]
    if not rows:
        return ["all", state, "0", "-", "-", "-", "-"]
    ours = summarise(rows)["all"]["advisor"]
    medians = [
        errors["median"] for states in of_state for errors in states["kernels"] if errors["kind"] == "conv"
    ]
    convolutions = f"{100 * statistics.fmean(medians):.1f}" if medians else "-"
    return ["all", state, str(ours["rows"]), cell(ours), f"{ours['coverage']:.0%}", "-", convolutions]


def _operators(kernels: Sequence[Mapping[str, Any]], kind: str, split: str) -> str:
    for one in kernels:
        if (one["kind"], one["split"]) == (kind, split):
            return " / ".join(f"{100 * one[name]:.1f}" for name in ("median", "mean", "p90"))
    return "-"


def scaling_table(pairs: Sequence[Scaled], clean: Sequence[Scaled]) -> str:
    """By weight of what was scaled: all pairs, and those whose two labels are clean."""
    of_all, of_clean = errors_by_weight(pairs), errors_by_weight(clean)
    header = ["weight", f"all {len(pairs)} pairs", f"{len(clean)} pairs with clean labels"]
    rows = [[f"{weight:g}", cell(of_all[weight]), cell(of_clean[weight])] for weight in of_all]
    legend = (
        "Absolute error in per cent, mean / median / p90 / largest. Weight 1: operators measured on one GPU"
        " times the predicted ratio to the other. Weight 0: predicted without a measurement."
    )
    return f"{legend}\n\n{markdown(header, rows)}"


def speed_up_table(pairs: Sequence[SpeedUp]) -> str:
    """A row a pair; those with a fitted row are marked."""
    header = ["model", "precision", "from", "to", "published", "predicted", "error", ""]
    rows = [
        [
            pair.name,
            pair.precision,
            pair.origin,
            pair.destination,
            f"{pair.published:.2f}",
            f"{pair.predicted:.2f}",
            f"{pair.error:+.0%}",
            "fitted" if pair.fitted else "",
        ]
        for pair in pairs
    ]
    return markdown(header, rows)
