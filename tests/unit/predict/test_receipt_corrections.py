"""Corrections by receipts in figures, and drifts."""

import math

import pytest

from advisor.core.findings.about_estimates import CorrectedByReceipts
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Z90, Interval
from advisor.predict.interval import ComparedRun, Correction, corrections_of, drifts_of, uncorrected_p50_s
from advisor.predict.iteration import predict_counts
from advisor.report.words import text_of
from tests.builders import make_trace
from tests.unit.predict.footprint.scripts import MEMORY


def run(ratio: float, job: str = "a", gpu: str = "L4", told: float = 1.0) -> ComparedRun:
    predicted = Interval(p10=0.8 * told, p50=told, p90=1.25 * told)
    return ComparedRun(gpu=gpu, job=job, measured_s=ratio, predicted_s=predicted, uncorrected_p50_s=1.0)


def test_by_hand():
    """Three jobs of 1.1, 1.2 and 1.3 times the prediction: the median of their medians is 1.2."""
    runs = [*map(run, (1.1, 1.2, 1.0, 1.3, 1.6), "abccc"), run(9.0, "x", gpu="T4")]
    correction = corrections_of(runs)["L4"]
    assert (correction.num_jobs, correction.num_runs) == (3, 5)
    assert correction.shift == pytest.approx(math.log(1.2))
    assert correction.scatter == pytest.approx(1.4826 * math.log(1.3 / 1.2), rel=0.1)


def test_what_was_answered_after_a_correction_does_not_confirm_itself():
    """The answer was corrected to 1.2 and held; against what was predicted before it is still 1.2 off."""
    assert corrections_of([run(1.2, told=1.2)])["L4"].shift == pytest.approx(math.log(1.2))


def test_parts_are_corrected_as_the_whole_is():
    trace = make_trace(memory=MEMORY)
    correction = Correction(num_jobs=4, num_runs=9, shift=0.1, scatter=0.0)
    (plain,) = predict_counts(trace, resolve_gpu("L4"), [8])
    (moved,) = predict_counts(trace, resolve_gpu("L4"), [8], correction=correction)
    factor = moved.device_s.p50 / plain.device_s.p50
    assert factor > 1
    assert moved.communication_s == pytest.approx(factor * plain.communication_s)
    assert sum(moved.by_bound.values()) == pytest.approx(factor * sum(plain.by_bound.values()))


def test_a_prediction_with_receipts_says_so():
    trace, gpu = make_trace(), resolve_gpu("L4")
    correction = Correction(num_jobs=4, num_runs=9, shift=0.1, scatter=0.0)
    (plain,) = predict_counts(trace, gpu, [1])
    (moved,) = predict_counts(trace, gpu, [1], correction=correction)
    sigma = math.log(plain.device_s.p90 / plain.device_s.p50) / Z90
    weight = 1 / (1 + math.pi / 2 / 4)
    assert moved.device_s.p50 == pytest.approx(plain.device_s.p50 * math.exp(weight * 0.1))
    left = math.log(moved.device_s.p90 / moved.device_s.p50) / Z90
    assert left == pytest.approx(sigma * math.sqrt(0.5 + 0.5 * (1 - weight)))
    (note,) = [one for one in moved.assumptions if isinstance(one, CorrectedByReceipts)]
    assert text_of(note) == (
        "7% longer after 9 runs of 4 jobs of yours on this GPU, its band 80% as wide (predict.receipts)"
    )
    assert uncorrected_p50_s(moved) == pytest.approx(plain.iteration_s.p50)
    assert plain.correction == 1.0


@pytest.mark.parametrize(
    ("ratios", "is_drift"),
    [
        ([1.0] * 9 + [1.4] * 3, True),
        ([1.4] * 9 + [1.0] * 5, False),  # long ago
        ([1.4] * 2, False),  # too few to tell
        ([1.2] * 5, False),  # within the interval
        ([1.0, 1.0, 1.0, 1.4, 1.4], False),
        ([1.4, 1.4, 1.4, 0.5, 1.0], False),  # on both sides
        ([0.5] * 3, True),
    ],
)
def test_a_drift_is_when_most_of_the_last_runs_lie_on_one_side(ratios, is_drift):
    assert bool(drifts_of([run(ratio) for ratio in ratios])) is is_drift


def test_a_drift_in_words():
    (drift,) = drifts_of([run(0.9), *[run(1.4)] * 4, run(1.0, gpu="T4")])
    assert text_of(drift).startswith(
        "the last 5 runs on L4 took 40% longer than predicted (median), 4 of them outside their intervals"
    )
