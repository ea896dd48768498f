"""nnU-Net in three dimensions beside NVIDIA's table: nothing was fitted to it."""

from __future__ import annotations

import csv
import math
from itertools import product

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Z90, Interval
from advisor.operators.convolution import SIGMA_VOLUMES
from advisor.predict.interval import LEFT_IN_A_STEP
from advisor.predict.iteration import predict
from research import speedups
from research.nnunet import LOOP_S, nnunet
from research.published import as_in_containers
from tests.shared import SHARED, needs_shared

pytestmark = pytest.mark.torch
BATCH = 2
GPUS = {"A100 SXM4 80GB": "A100-SXM-80GB", "V100 SXM2/3 32GB": "V100-SXM-32GB"}
PRECISIONS = {
    ("A100", True): "AMP-FP16",
    ("A100", False): "TF32",
    ("V100", True): "AMP-FP16",
    ("V100", False): "FP32",
}


def measured() -> dict[tuple[str, str], float]:
    with (SHARED / "measurements" / "third_party" / speedups.FILE).open(newline="") as file:
        return {
            (row["gpu"], row["precision"]): BATCH / float(row["throughput"])
            for row in csv.DictReader(file)
            if (row["model"], row["variant"], row["n_gpus"], row["batch_per_gpu"])
            == ("Segmentation/nnUNet", "3", "1", str(BATCH))
        }


def off(predicted: Interval, seconds: float) -> float:
    return math.log((predicted.p50 + LOOP_S) / seconds)


@needs_shared
def test_volumes_are_a_seventh_off_and_their_width_says_so() -> None:
    seconds, errors = measured(), {}
    for (published, name), amp in product(GPUS.items(), (True, False)):
        precision = PRECISIONS[published[:4], amp]
        trace = as_in_containers(nnunet(3, amp, BATCH))
        predicted = predict(trace, resolve_gpu(name)).iteration_s
        errors[published, precision] = off(predicted, seconds[published, precision])
    assert sum(abs(math.expm1(error)) for error in errors.values()) / len(errors) < 0.16
    assert 0.2 < max(map(abs, errors.values())) < Z90 * LEFT_IN_A_STEP * SIGMA_VOLUMES
