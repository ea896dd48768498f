"""Kernels that others measured: the documented tables, and constants that were fitted to them."""

import tomllib
from pathlib import Path

import pytest

from tests.shared import SHARED, needs_shared

pytestmark = [pytest.mark.shared, needs_shared]
ROOT = Path(__file__).resolve().parents[2]
KERNELS = SHARED / "measurements" / "kernels"
METHODS = ROOT / "research" / "docs" / "methods"


@pytest.mark.parametrize("operators", [["softmax"], ["ln"]])
def test_the_documented_tables_of_wave_scaling(operators):
    from research.wave_accuracy import table

    assert table(KERNELS, operators) in (METHODS / "wave-scaling.md").read_text()


def test_the_shipped_constants_are_those_of_the_measurements():
    """Those that NeuSight's kernels tell; other data sets take minutes to read."""
    from research.training.constants import fit_constants
    from research.training.neusight import read_kernels

    shipped = tomllib.loads((ROOT / "catalogs" / "fitted.toml").read_text())["gpu"]
    for gpu, constants in fit_constants(read_kernels(KERNELS)).items():
        for name, value in constants.items():
            kind, _, rate = name.partition(".")
            own = shipped[gpu][kind]
            assert (own[rate] if rate else own) == pytest.approx(value, abs=5e-4), (gpu, name)


@pytest.mark.parametrize("operator", ["add", "relu", "gelu"])
def test_large_element_wise_kernels_on_measured_gpus(operator):
    """Median error of the roofline on calls of 64 MB or more: at most 15 % on every GPU."""
    from advisor.core.gpus import resolve_gpu
    from advisor.predict.constants import constants_for
    from research.wave_accuracy import OPERATORS, read_operator

    frame = read_operator(KERNELS, operator)
    frame["num_bytes"] = frame.B * frame.H * 4 * OPERATORS[operator][0]
    for gpu, rows in frame[frame.num_bytes >= 64e6].groupby("gpu"):
        spec = resolve_gpu(str(gpu))
        rate = constants_for(spec).fractions["streaming_fraction"] * spec.memory_bytes_per_s
        errors = (rows.num_bytes / rate / rows.time_s - 1).abs()
        assert errors.median() < 0.15, (gpu, errors.median())
