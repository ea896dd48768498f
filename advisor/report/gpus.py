"""GPUs of the catalog as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from advisor.core.units import GB, format_bytes
from advisor.core.values import GpuSpec
from advisor.report.plain import print_text
from advisor.report.rows import Format, print_rows, to_json

COLUMNS = (
    "GPU",
    "Architecture",
    "SMs",
    "Memory",
    "GB/s",
    "FP32",
    "TF32",
    "FP16",
    "BF16",
    "NVLink GB/s",
)
RIGHT = frozenset(COLUMNS[2:])
TFLOPS = 1e12


def print_gpus(specs: Sequence[GpuSpec], output: Format, base: GpuSpec | None = None) -> None:
    """Specs to stdout, in the given order.

    FLOP rates are dense TFLOP/s, with tensor cores where there are; with ``base`` every figure is a
    multiple of that GPU's. JSON always carries the facts themselves.
    """
    if output is Format.JSON:
        print_text(to_json({"gpus": [_json(spec) for spec in specs]}))
        return
    rows = [_row(spec) if base is None else _multiples(spec, base) for spec in specs]
    print_rows(COLUMNS, rows, output, right=RIGHT)


def _json(spec: GpuSpec) -> Mapping[str, Any]:
    # Not asdict: it copies, and the catalog's tables are read-only views.
    plain = {item.name: getattr(spec, item.name) for item in fields(spec)}
    return plain | {
        "occupancy": asdict(spec.occupancy) if spec.occupancy else None,
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


def _multiples(spec: GpuSpec, base: GpuSpec) -> list[str]:
    pairs = zip(_figures(spec), _figures(base), strict=True)
    cells = ["-" if not value or not unit else f"{value / unit:.2f} x" for value, unit in pairs]
    return [spec.name, f"{spec.architecture} {spec.compute_capability}".strip(), *cells]


def _row(spec: GpuSpec) -> list[str]:
    tensor = spec.tensor_flops_per_s
    rates = [
        spec.vector_flops_per_s.get("fp32"),
        *(tensor.get(r) for r in ("tf32", "fp16", "bf16")),
    ]
    return [
        spec.name,
        f"{spec.architecture} {spec.compute_capability}".strip(),
        str(spec.num_sms),
        format_bytes(spec.memory_bytes),
        f"{spec.memory_bytes_per_s / GB:,.0f}",
        *("-" if rate is None else f"{rate / TFLOPS:.4g}" for rate in rates),
        f"{spec.nvlink_bytes_per_s / GB:,.0f}" if spec.nvlink_bytes_per_s else "-",
    ]
