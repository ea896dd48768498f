"""Builds catalogs/loaders.toml: what a sample takes of a vCPU where nobody measured it.

``python research/build_loaders.py --shared ../shared``. Images come from published rates, tokens and plain
numbers from ``python -m research.loaders``. The same tables give the same bytes; the file is read back
before it replaces anything.

An image is decoded, then cropped and resized: ``(1 / lone rate + resize) / yield`` seconds of a vCPU. The
yield is what each of 8 workers on 16 vCPUs delivers of what a lone process does: hyperthreads share cores,
and batches cross between processes. Each CPU with each library is one value of the distribution.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import quantiles

from advisor.core.files import write_atomically
from advisor.predict.loading import ARRAY, IMAGE, LOADERS_FILE, TOKENS, read_loader_priors
from tools.price_catalog_rows import read_csv

# What torch scripts decode by.
LIBRARIES = ("pillow", "opencv", "torchvision")
MOST_WORKERS = 8
# The decoded images are ImageNet's validation set, 469 x 387 pixels on average; what trains is 224 x 224.
STORED_PIXELS, TRAINED_PIXELS = 469 * 387, 224 * 224
# The benchmark of Pillow resizes 2560 x 1600 pixels; of its machines only these have a CPU of today's clouds.
RESIZED_PIXELS = 2560 * 1600
RESIZING = ("Amazon EC2 c5.large instance", "Amazon EC2 m5a.large instance")
RESIZE = ("resample-4k-rgb", "pillow-7.0", "320x200 bil")
# Nanoseconds for a token or a number, by `python -m research.loaders`: p10, p50, p90 over sizes.
MEASURED_NS = {TOKENS: (2.2, 6.5, 26.0), ARRAY: (1.0, 5.0, 26.0)}
MEASURED_BY = "python -m research.loaders on two vCPUs of an AMD EPYC; nothing is tokenised or decoded"
IMAGES_BY = (
    "ternaus/imread_benchmark (JPEG decode rates alone and by 8 DataLoader workers on 16 vCPUs) and"
    " python-pillow/pillow-perf (resize)"
)
AS_OF = "2026-11-22"


def image_seconds(published: Path) -> Iterator[float]:
    """Seconds of a vCPU for one image of ImageNet, for each CPU, library and resizing machine."""
    rates = {
        (row["cpu"], row["library"], int(float(row["dataloader_workers"]))): float(row["images_per_s"])
        for row in read_csv(published / "imread_jpeg_decode_rates.csv")
        if row["benchmark"] == "torch_dataloader" and row["library"] in LIBRARIES
    }
    resizes_s = [
        float(row["time_ms_per_op_1_core"]) / 1000 * STORED_PIXELS / RESIZED_PIXELS
        for row in read_csv(published / "pillow_perf_cpu_image_ops.csv")
        if row["machine"] in RESIZING and (row["suite"], row["library"], row["operation"]) == RESIZE
    ]
    for (cpu, library, num_workers), lone in rates.items():
        if num_workers == 0:
            kept = rates[cpu, library, MOST_WORKERS] / (MOST_WORKERS * lone)
            yield from ((1 / lone + resize_s) / kept for resize_s in resizes_s)


def tables(published: Path) -> dict[str, tuple[Sequence[float], str]]:
    """By kind: nanoseconds of an element at p10, p50 and p90, and their source."""
    deciles = quantiles(image_seconds(published), n=10, method="inclusive")
    image = [seconds / TRAINED_PIXELS * 1e9 for seconds in (deciles[0], deciles[4], deciles[8])]
    return {IMAGE: (image, IMAGES_BY)} | {kind: (ns, MEASURED_BY) for kind, ns in MEASURED_NS.items()}


def text_of(figures: dict[str, tuple[Sequence[float], str]]) -> str:
    """The file."""
    lines = [
        "# Nanoseconds of a vCPU to load one element of a sample: a pixel, a token, a number.",
        "# Written by research/build_loaders.py, which says how.",
    ]
    for kind, (nanoseconds, source) in figures.items():
        lines += ["", f"[{kind}]"]
        lines += [
            f"{name}_ns = {ns:.4g}" for name, ns in zip(("p10", "p50", "p90"), nanoseconds, strict=True)
        ]
        lines += [f'source = "{source}"', f'as_of = "{AS_OF}"']
    return "\n".join(lines) + "\n"


def write(text: str, path: Path) -> None:
    """Reads the file back, then puts it in its place.

    Raises:
        CatalogError: quantiles are no times in order; nothing was replaced.
    """
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / path.name
        draft.write_text(text, encoding="utf-8")
        read_loader_priors(draft)
    write_atomically(path, text.encode())


def main() -> None:
    """Build the file from the tables in ``--shared``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True, help="folder of the reference data")
    shared = parser.parse_args().shared
    path = Path(__file__).resolve().parents[1] / "catalogs" / LOADERS_FILE
    write(text_of(tables(shared / "measurements" / "published")), path)


if __name__ == "__main__":
    main()
