"""Catalogs as tables: GPUs, what was measured on one of them, and recipes."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from advisor.core.findings import Finding
from advisor.core.iterables import grouped
from advisor.core.units import GB, GIB
from advisor.core.values import GpuSpec
from advisor.formats.recording_files import Recording
from advisor.operators.registry import family_of
from advisor.predict.calibrating import Calibration
from advisor.recipes.models import Model
from advisor.recipes.recipes import Recipe
from advisor.report import document as doc
from advisor.report.document import columns
from advisor.report.words import warnings_json

# CC is the compute capability.
COLUMNS = (
    doc.Column("GPU", wraps=False),
    *columns("Architecture", "CC", ("SMs", doc.ROUNDED), ("GiB", doc.ROUNDED), ("GB/s", doc.ROUNDED)),
    *columns("FP32", "TF32", "FP16", "BF16", ("NVLink GB/s", doc.ROUNDED), kind=doc.FOUR_DIGITS),
)
# Without the architecture and BF16 a terminal of 80 characters shows each GPU in one line.
_NARROW = [i for i, column in enumerate(COLUMNS) if column.name not in ("Architecture", "BF16")]
_MULTIPLES = (*COLUMNS[:3], *columns(*(column.name for column in COLUMNS[3:]), kind=doc.MULTIPLE))
TFLOPS = 1e12
# What one of a column is, in the units of a GpuSpec.
_UNITS = (1, GIB, GB, *[TFLOPS] * 4, GB)


def gpus_document(specs: Sequence[GpuSpec], base: GpuSpec | None = None) -> doc.Document:
    """Specs in the given order.

    FLOP rates are dense TFLOP/s, with tensor cores where there are; with ``base`` every figure is a
    multiple of that GPU's. The facts are always those of the GPU itself.
    """
    columns = COLUMNS if base is None else _MULTIPLES
    units = _UNITS if base is None else _figures(base)
    table = doc.Table(columns=columns, rows=tuple(doc.Row(_cells(spec, units)) for spec in specs))
    facts = {"gpus": [_json(spec) for spec in specs]}
    fitting = replace(table, narrow=(table.in_order(_NARROW),))
    return doc.Document(facts=facts, blocks=(fitting,), title="GPUs")


def _json(spec: GpuSpec) -> Mapping[str, object]:
    # Not asdict: it copies, and the catalog's tables are read-only views.
    plain = {item.name: getattr(spec, item.name) for item in fields(spec)}
    return plain | {
        "occupancy": asdict(spec.occupancy) if spec.occupancy else None,
        "released": spec.released.isoformat(),
        "source_date": spec.source_date.isoformat(),
    }


def _figures(spec: GpuSpec) -> list[float | None]:
    tensor = spec.tensor_flops_per_s
    return [
        spec.num_sms,
        spec.memory_bytes,
        spec.memory_bytes_per_s,
        spec.vector_flops_per_s.get("fp32"),
        *(tensor.get(rate) for rate in ("tf32", "fp16", "bf16")),
        spec.nvlink_bytes_per_s or None,
    ]


def _cells(spec: GpuSpec, units: Sequence[float | None]) -> tuple[doc.Cell, ...]:
    pairs = zip(_figures(spec), units, strict=True)
    figures = (None if value is None or not unit else value / unit for value, unit in pairs)
    return spec.name, spec.architecture, spec.compute_capability, *figures


_COLUMNS = (
    *columns("Constant", ("Before", doc.DECIMALS), ("After", doc.DECIMALS)),
    *columns(("Kernels", doc.PLAIN), ("Spread", doc.SHARE)),
)


def calibration_document(calibration: Calibration, path: Path) -> doc.Document:
    """Constants, and where they were written."""
    constants = list(map(asdict, calibration.constants))
    facts = {"gpu": calibration.gpu, "source": calibration.source, "constants": constants}
    rows = tuple(
        doc.Row((fit.name, fit.before, fit.after, fit.num_kernels, fit.spread))
        for fit in calibration.constants
    )
    return doc.Document(
        facts={"calibration": {"path": str(path), **facts}, **warnings_json(calibration.warnings)},
        blocks=(
            doc.Table(columns=_COLUMNS, rows=rows),
            doc.Lines((f"{calibration.gpu}: written to {path}",)),
        ),
    )


_RECORDING_COLUMNS = (
    *columns("Family", ("Kernels", doc.COUNT), ("Shortest", doc.MICROSECONDS)),
    *columns(("Longest", doc.MICROSECONDS), ("Median spread", doc.SHARE)),
)


def recording_document(recording: Recording, path: Path, warnings: Sequence[Finding]) -> doc.Document:
    """A summary by family."""
    families = by_family(recording)
    body = {"path": str(path), **asdict(recording.header), "drift": recording.drift}
    facts = {"recording": body, "families": families, "skipped": dict(reasons(recording))}
    rows = tuple(doc.Row((family, *figures.values())) for family, figures in families.items())
    return doc.Document(
        facts={**facts, **warnings_json(warnings)}, blocks=(doc.Table(columns=_RECORDING_COLUMNS, rows=rows),)
    )


def by_family(recording: Recording) -> Mapping[str, Mapping[str, float]]:
    """Number, extremes and median spread of the kernels of each family, the largest family first."""
    groups = grouped(recording.measurements, lambda kernel: family_of(kernel.op).word)
    return {
        family: {
            "kernels": len(kernels),
            "shortest_s": min(kernel.time_s for kernel in kernels),
            "longest_s": max(kernel.time_s for kernel in kernels),
            "median_spread": statistics.median(kernel.spread for kernel in kernels),
        }
        for family, kernels in sorted(groups.items(), key=lambda item: -len(item[1]))
    }


def reasons(recording: Recording) -> list[tuple[str, int]]:
    """Why cases were left out, the most frequent reason first."""
    return Counter(entry.reason for entry in recording.skipped).most_common()


def skipped_lines(recording: Recording) -> list[str]:
    """The same in words."""
    return [f"{count} left out: {reason}" for reason, count in reasons(recording)]


def recipes_document(recipes: Sequence[Recipe], models: Sequence[Model]) -> doc.Document:
    """Each recipe with what it does, and the names of models."""
    rows = tuple(doc.Row((recipe.name, recipe.summary, recipe.model, recipe.unit)) for recipe in recipes)
    names = ", ".join(model.name for model in models)
    known = doc.Section("Models", (f"{names}, any Hugging Face id, and the path of a config.json.",))
    facts = {
        "recipes": [asdict(recipe) for recipe in recipes],
        "models": [
            {"name": model.name, "source": model.source, "params": model.num_params, "config": model.config}
            for model in models
        ],
    }
    table = doc.Table(columns=columns("Recipe", "Trains", "Default model", "Amount in"), rows=rows)
    return doc.Document(facts=facts, blocks=(table, known), title="Recipes")
