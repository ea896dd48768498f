"""GPUs of the catalog as a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

from advisor.core.units import GB
from advisor.core.values import GpuSpec
from advisor.report.cells import BYTES, FOUR_DIGITS, MULTIPLE, ROUNDED, Cell
from advisor.report.document import Column, Document, Row, Table, columns

COLUMNS = (
    *columns("GPU", "Architecture"),
    Column("SMs", ROUNDED),
    Column("Memory", BYTES),
    Column("GB/s", ROUNDED),
    *columns("FP32", "TF32", "FP16", "BF16", kind=FOUR_DIGITS),
    Column("NVLink GB/s", ROUNDED),
)
_MULTIPLES = (*COLUMNS[:2], *columns(*(column.name for column in COLUMNS[2:]), kind=MULTIPLE))
TFLOPS = 1e12
# What one of a column is, in the units of a GpuSpec.
_UNITS = (1, 1, GB, *[TFLOPS] * 4, GB)


def gpus_document(specs: Sequence[GpuSpec], base: GpuSpec | None = None) -> Document:
    """Specs in the given order.

    FLOP rates are dense TFLOP/s, with tensor cores where there are; with ``base`` every figure is a
    multiple of that GPU's. The facts are always those of the GPU itself.
    """
    columns = COLUMNS if base is None else _MULTIPLES
    units = _UNITS if base is None else _figures(base)
    rows = tuple(Row((*_names(spec), *_in_units(spec, units))) for spec in specs)
    facts = {"gpus": [_json(spec) for spec in specs]}
    return Document(facts=facts, blocks=(Table(columns=columns, rows=rows),), title="GPUs")


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


def _names(spec: GpuSpec) -> tuple[str, str]:
    return spec.name, f"{spec.architecture} {spec.compute_capability}".strip()


def _in_units(spec: GpuSpec, units: Sequence[float | None]) -> list[Cell]:
    pairs = zip(_figures(spec), units, strict=True)
    return [None if value is None or not unit else value / unit for value, unit in pairs]
