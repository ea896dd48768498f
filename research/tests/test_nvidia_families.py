"""NVIDIA's other families: which rows judge, and how families count."""

from __future__ import annotations

import pytest

from advisor.core.values import Interval
from research.nvidia_families import FAMILIES, Judged, Row, mean_error, read_rows
from tests.shared import SHARED, needs_shared


def test_each_second_family_fits_and_nnunet_always_judges() -> None:
    names = [family.name for family in FAMILIES]
    assert names == sorted(names, key=lambda name: (name == "nnU-Net", name))
    assert [family.fits for family in FAMILIES] == [True, False, False, True, False, False]


@needs_shared
def test_a_row_is_a_step_of_its_batch_on_one_gpu() -> None:
    rows = {
        (row.network.name, row.gpu.name, row.precision, row.batch): row
        for row in read_rows(SHARED / "measurements" / "third_party")
    }
    assert rows["nnU-Net 3-D", "A100-SXM-80GB", "AMP-FP16", 2].step_s == pytest.approx(2 / 27.48)
    assert rows["SSD300", "V100-SXM-16GB", "FP32", 32].step_s == pytest.approx(32 / 107.22)
    assert rows["DLRM", "A100-SXM-80GB", "TF32", 64].step_s == pytest.approx(65536 / 2.88e6)
    # What NVIDIA's page contradicts itself on is left out.
    assert not any(key[0] == "EfficientNet-B4" and key[1] == "V100-SXM-32GB" for key in rows)


def test_families_count_alike_however_many_rows_they_have() -> None:
    def judged(at: int, predicted_s: float) -> Judged:
        family = FAMILIES[at]
        row = Row(family=family, network=family.networks[0], gpu=None, precision="", batch=1, step_s=1.0)  # type: ignore[arg-type]
        return Judged(row=row, predicted=Interval(p10=0.5, p50=predicted_s, p90=2.0))

    assert mean_error([judged(0, 1.1), judged(0, 0.7), judged(1, 1.6)]) == pytest.approx(0.4)
