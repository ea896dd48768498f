"""What waiting for data adds to an iteration, in hand arithmetic, and what is said about it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from advisor.core.findings import Code
from advisor.core.gpus import resolve_gpu
from advisor.core.values import IterationEstimate, Method, Trace
from advisor.predict.interval import SIGMA_LOADING, Z90
from advisor.predict.iteration import predict
from advisor.predict.loading import (
    SHORTEST_S,
    WAITING,
    cpu_note,
    input_note,
    loading_s,
    waiting_s,
    with_loading,
)
from advisor.report.words import sentence
from tests.builders import make_op, make_trace
from tests.findings import said, sample

V100 = resolve_gpu("V100-PCIE-32GB")
NOT_COUNTED = sample(Code.LOADING_NOT_COUNTED)


def loads(seconds: float | None, workers: int | None) -> Trace:
    return make_trace(data_loading_s=seconds, num_workers=workers)


def estimate(seconds: float | None, workers: int | None) -> IterationEstimate:
    return predict(loads(seconds, workers), V100)


ALONE_S = estimate(None, 0).iteration_s.p50


@pytest.mark.parametrize(
    ("seconds", "workers", "expected"),
    [(4.0, 8, 0.5), (4.0, 1, 4.0), (4.0, 0, 4.0), (4.0, None, 4.0), (None, 8, 0.0), (None, None, 0.0)],
)
def test_workers_share_the_loading(seconds: float | None, workers: int | None, expected: float) -> None:
    assert loading_s(loads(seconds, workers)) == expected


def test_loading_that_is_too_short_to_time_counts_as_none() -> None:
    assert loading_s(loads(SHORTEST_S, 0)) == SHORTEST_S
    assert loading_s(loads(SHORTEST_S * 0.99, 0)) == 0.0
    assert NOT_COUNTED not in estimate(SHORTEST_S * 0.99, 0).assumptions


@pytest.mark.parametrize(("seconds", "is_told"), [(SHORTEST_S / 2, True), (None, False), (0.0, False)])
def test_where_the_iteration_is_as_short_that_is_said(seconds: float | None, is_told: bool) -> None:
    short = replace(loads(seconds, 0), ops=(make_op("aten::add.Tensor", flops=1, num_bytes=4),))
    assert (NOT_COUNTED in predict(short, V100).assumptions) == is_told


@pytest.mark.parametrize(
    ("workers", "device_s", "expected"), [(8, 0.2, 0.3), (8, 0.5, 0.0), (8, 0.6, 0.0), (0, 9.0, 4.0)]
)
def test_workers_overlap_and_the_main_process_does_not(
    workers: int, device_s: float, expected: float
) -> None:
    assert waiting_s(loads(4.0, workers), device_s) == pytest.approx(expected)


def test_an_input_bound_iteration_takes_as_long_as_its_loading() -> None:
    found = estimate(40.0, 8)
    assert found.iteration_s.p50 == pytest.approx(5.0)
    assert found.loading_s == pytest.approx(5.0 - ALONE_S)
    assert sentence(found.assumptions[0]).startswith("input-bound: loading takes 5 s")
    assert found.by_family[WAITING] == found.by_operator[WAITING] == found.loading_s
    assert found.by_method[Method.MEASURED] == found.loading_s
    factor = math.exp(Z90 * SIGMA_LOADING)
    assert found.iteration_s.p10 == pytest.approx(5.0 / factor)
    assert found.iteration_s.p90 == pytest.approx(5.0 * factor)


def test_without_workers_both_add_up_and_so_do_their_variances() -> None:
    found = estimate(ALONE_S, 0)
    assert found.iteration_s.p50 == pytest.approx(2 * ALONE_S)
    assert found.loading_s == pytest.approx(ALONE_S)
    sigma_alone = math.log(estimate(None, 0).iteration_s.p90 / ALONE_S) / Z90
    sigma = math.log(found.iteration_s.p90 / found.iteration_s.p50) / Z90
    assert sigma == pytest.approx(math.hypot(sigma_alone, SIGMA_LOADING) / 2)


def test_loading_that_hides_changes_nothing() -> None:
    assert estimate(ALONE_S / 10, 8) == estimate(None, 8)


def test_loading_that_may_be_longer_elsewhere_widens_the_interval() -> None:
    found, alone = estimate(ALONE_S * 8 * 0.9, 8), estimate(None, 8)
    assert found.iteration_s.p50 == alone.iteration_s.p50
    assert found.iteration_s.p90 > alone.iteration_s.p90
    assert found.loading_s == 0
    assert found.assumptions == (found.assumptions[0], *alone.assumptions)
    assert sentence(found.assumptions[0]).startswith("nearly input-bound: loading takes")


def test_a_profile_tells_nothing_of_loading() -> None:
    op = make_op(measured_s=0.5)
    trace = make_trace(ops=(op,), origin_gpu=V100.name, num_workers=None)
    found = predict(trace, V100)
    assert (found.loading_s, found.iteration_s.p50) == (0.0, pytest.approx(0.5))


def test_a_measured_iteration_has_waited_for_its_data_already() -> None:
    facts = {"origin_gpu": V100.name, "iteration_s": 2.0, "data_loading_s": 1.5, "num_workers": 0}
    trace = make_trace(ops=(make_op(measured_s=0.5),), **facts)
    here, elsewhere = predict(trace, V100), predict(trace, resolve_gpu("T4"))
    assert (here.loading_s, here.iteration_s.p50) == (0.0, pytest.approx(2.0))
    assert elsewhere.loading_s == pytest.approx(1.5)
    assert input_note(trace, here) is None


def test_an_interval_needs_no_loading() -> None:
    interval = with_loading(loads(None, 0), 2.0, 0.0)
    assert (interval.p10, interval.p50, interval.p90) == (2.0, 2.0, 2.0)


def test_the_note_names_every_figure() -> None:
    found = replace(estimate(40.0, 8), loading_s=4.0)
    note = input_note(loads(40.0, 8), found)
    assert note is not None
    for part in ("input-bound: ", "5 s per iteration", "8 workers", "40 s of CPU work", "the GPU 1 s"):
        assert part in sentence(note)
    assert "1 worker (" in said([input_note(loads(40.0, 1), found) or note])


@pytest.mark.parametrize("workers", [0, 8])
def test_the_assumption_is_the_same_for_all_gpus_that_wait(workers: int) -> None:
    first, second = (predict(loads(400.0, workers), resolve_gpu(name)) for name in ("T4", "L4"))
    assert first.loading_s != second.loading_s or not workers
    assert first.assumptions[0] == second.assumptions[0]
    assert sentence(first.assumptions[0]).startswith("input-bound: loading takes")
    assert input_note(loads(400.0, workers), first) != input_note(loads(400.0, workers), second)


def test_without_workers_the_note_proposes_them() -> None:
    slow, quick = estimate(ALONE_S * 2, 0), estimate(ALONE_S / 2, 0)
    notes = [input_note(loads(ALONE_S * 2, 0), slow), input_note(loads(ALONE_S / 2, 0), quick)]
    assert [note and note.code for note in notes] == [Code.INPUT_BOUND_ALONE, Code.INPUT_IN_TURN]
    assert "num_workers" in sentence(slow.assumptions[0])


def test_without_waiting_there_is_no_note() -> None:
    assert input_note(loads(None, 8), estimate(None, 8)) is None
    assert not any(WAITING in name for name in estimate(None, 8).by_family)


@pytest.mark.parametrize(
    ("workers", "num_gpus", "vcpus", "expected"),
    [(8, 1, 4, "8 loading workers share 4 vCPUs: loading takes 10 s"), (8, 2, 8, "takes 10 s"),
     (8, 1, 8, None), (8, 1, None, None), (0, 8, 1, None)],
)  # fmt: skip
def test_workers_that_share_too_few_cores(
    workers: int, num_gpus: int, vcpus: int | None, expected: str | None
) -> None:
    trace = loads(40.0, workers)
    note = cpu_note(trace, predict(trace, V100, num_gpus), vcpus)
    assert note is expected if expected is None or note is None else expected in sentence(note)


def test_few_cores_that_suffice_are_no_matter() -> None:
    trace = loads(ALONE_S / 100, 8)
    assert cpu_note(trace, predict(trace, V100), 1) is None
