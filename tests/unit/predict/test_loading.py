"""What feeding a GPU adds to an iteration, in hand arithmetic, and what is said about it."""

import math
from dataclasses import replace

import pytest

from advisor.core import input_time
from advisor.core.findings.about_options import Unknown
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Z90, Bound, InputWork, Interval, IterationEstimate, Method, TensorSpec, Trace
from advisor.predict.interval import SIGMA_LOADING
from advisor.predict.iteration import predict
from advisor.predict.loading import SHORTEST_S, input_work
from advisor.report.words import sentence
from tests.builders import exactly, make_estimate, make_op, make_trace
from tests.findings import said

V100 = resolve_gpu("V100-PCIE-32GB")
NOT_COUNTED = Unknown(what="loading")
# p90 over p50 of loading that was measured on another machine.
FACTOR = math.exp(Z90 * SIGMA_LOADING)


def loads(seconds: float | None, workers: int | None, **changes: object) -> Trace:
    return make_trace(data_loading_s=seconds, num_workers=workers, **changes)


def estimate(seconds: float | None, workers: int | None) -> IterationEstimate:
    return predict(loads(seconds, workers), V100)


def work(cpu_s: float, num_workers: int | None, wait_s: float = 0.0) -> InputWork:
    return InputWork(cpu_s=exactly(cpu_s), wait_s=wait_s, num_workers=num_workers, num_samples=64)


def images(batch: int = 64, side: int = 224) -> tuple[object, ...]:
    """The operators of a script that copies images to the GPU."""
    batch_of_images = TensorSpec(shape=(batch, 3, side, side), dtype="float32")
    copy = replace(make_op("advisor::h2d_copy", flops=0), inputs=(batch_of_images,))
    return (*make_trace().ops, copy)


ALONE_S = estimate(None, 0).iteration_s.p50


@pytest.mark.parametrize(
    ("trace", "cpu_s", "wait_s", "facts"),
    [
        # What one process took besides is disks and networks.
        (loads(2.0, 8, loader_cpu_s_per_sample=0.02), 64 * 0.02, 2.0 - 1.28, (8, 64, None)),
        # A trace of before counts all of it as work of the CPU.
        (loads(4.0, 8), 4.0, 0.0, (8, 64, None)),
        # More work than time is that of several threads.
        (loads(0.5, 8, loader_cpu_s_per_sample=0.02), 1.28, 0.0, (8, 64, None)),
        # What was measured goes before what is assumed.
        (loads(4.0, 8, ops=images()), 4.0, 0.0, (8, 64, None)),
        # Without a DataLoader the copies tell how many samples there are.
        (loads(None, None, ops=images(batch=32), batch_size=None), 32 * 0.00695, 0.0, (None, 32, "image")),
    ],
)
def test_what_loading_takes(trace, cpu_s, wait_s, facts):
    loading = input_work(trace)
    assert loading.cpu_s.p50 == pytest.approx(cpu_s, rel=1e-3)
    assert loading.wait_s == pytest.approx(wait_s)
    assert (loading.num_workers, loading.num_samples, loading.kind) == facts
    if loading.kind is None:
        band = (loading.cpu_s.p50 / FACTOR, loading.cpu_s.p50 * FACTOR)
        assert (loading.cpu_s.p10, loading.cpu_s.p90) == pytest.approx(band)


def test_loading_that_is_too_short_to_time_counts_as_none_and_a_script_that_copies_nothing_has_none():
    assert input_work(loads(SHORTEST_S, 0)) is not None
    for trace in (loads(SHORTEST_S * 0.99, 0), loads(0.0, 8, ops=images()), loads(None, 8)):
        assert input_work(trace) is None
    assert NOT_COUNTED not in estimate(SHORTEST_S * 0.99, 0).assumptions


@pytest.mark.parametrize(("seconds", "is_told"), [(SHORTEST_S / 2, True), (None, False), (0.0, False)])
def test_where_the_iteration_is_as_short_that_is_said(seconds, is_told):
    short = replace(loads(seconds, 0), ops=(make_op("aten::add.Tensor", flops=1, num_bytes=4),))
    assert (NOT_COUNTED in predict(short, V100).assumptions) == is_told


def test_what_nobody_measured_is_assumed_by_the_kind_of_sample():
    loading = input_work(loads(None, 8, ops=images()))
    assert (loading.kind, loading.num_workers, loading.num_samples) == ("image", 8, 64)
    # JPEG decode and crop: 144 images a second and vCPU, give or take.
    assert 64 / 400 < loading.cpu_s.p50 < 64 / 70
    assert loading.cpu_s.p10 < loading.cpu_s.p50 / 1.5
    assert loading.cpu_s.p90 > loading.cpu_s.p50 * 1.5


@pytest.mark.parametrize(
    ("workers", "vcpus", "expected"),
    [
        (8, 4, 4), (8, 32, 8), (0, 32, 1), (1, 32, 1), (None, 32, 32), (8, 0.5, 0.5),
        # Without a machine each worker has a vCPU of its own.
        (8, None, 8), (0, None, 1), (None, None, input_time.ASSUMED_VCPUS_PER_GPU),
    ],
)  # fmt: skip
def test_vcpus_load_as_far_as_there_are_workers(workers, vcpus, expected):
    assert input_time.num_cores(work(1.0, workers), vcpus) == expected


@pytest.mark.parametrize(
    ("cpu_s", "wait_s", "workers", "vcpus", "expected"),
    [
        (1.28, 0.0, 32, 8, 0.16),  # 20 ms a sample, 400 samples/s
        (1.28, 0.0, 32, 32, 0.04),
        (1.28, 0.0, 4, 32, 0.32),  # the script asks for four workers
        (1.28, 1.28, 8, 8, 0.32),  # half the time each worker waits for its disk
        (1.28, 1.28, 16, 8, 0.16),  # twice the workers hide that
        (1.28, 1.28, 16, 4, 0.32),  # and then the vCPUs run out
        (1.28, 0.5, 0, 8, 1.78),
    ],
)
def test_whichever_runs_out_first_decides(cpu_s, wait_s, workers, vcpus, expected):
    assert input_time.input_s(work(cpu_s, workers, wait_s), vcpus).p50 == pytest.approx(expected)


def test_an_input_bound_iteration_takes_as_long_as_its_loading():
    loading = estimate(40.0, 8)
    assert loading.iteration_s.p50 == pytest.approx(5.0)
    assert loading.loading_s == pytest.approx(5.0 - ALONE_S)
    assert loading.binds is Bound.INPUT
    assert sentence(loading.assumptions[0]).startswith("input-bound: loading takes 5 s")
    assert (
        loading.by_family[input_time.WAITING] == loading.by_operator[input_time.WAITING] == loading.loading_s
    )
    assert loading.by_method[Method.MEASURED] == loading.loading_s
    assert loading.iteration_s.p10 == pytest.approx(5.0 / FACTOR)
    assert loading.iteration_s.p90 == pytest.approx(5.0 * FACTOR)


def test_fewer_vcpus_than_workers_make_it_longer_and_more_do_not():
    loading = estimate(40.0, 8)
    assert input_time.fed(loading, 4).iteration_s.p50 == pytest.approx(10.0)
    assert input_time.fed(loading, 64).iteration_s == loading.iteration_s
    assert input_time.fed(input_time.fed(loading, 4), 8).by_family == input_time.fed(loading, 8).by_family


def test_feeding_adds_up_and_is_undone_by_a_machine_that_feeds_faster():
    loading = predict(loads(None, None, ops=images()), V100)
    slow, quick = input_time.fed(loading, 0.1), input_time.fed(loading, 1e4)
    assert slow.loading_s > 0
    assert sum(slow.by_family.values()) + slow.communication_s == pytest.approx(slow.iteration_s.p50)
    assert sum(slow.by_method.values()) + slow.communication_s == pytest.approx(slow.iteration_s.p50)
    assert slow.by_method[Method.ASSUMED] == pytest.approx(slow.loading_s)
    assert (quick.loading_s, quick.iteration_s) == (0.0, quick.device_s)
    assert input_time.WAITING not in quick.by_family
    assert input_time.fed(slow, 1e4).by_family == quick.by_family


def test_without_workers_both_add_up():
    loading = estimate(ALONE_S, 0)
    assert loading.iteration_s.p50 == pytest.approx(2 * ALONE_S)
    assert loading.loading_s == pytest.approx(ALONE_S)
    assert loading.iteration_s.p90 == pytest.approx(loading.device_s.p90 + ALONE_S * FACTOR)


def test_loading_that_hides_changes_nothing():
    loading, alone = estimate(ALONE_S / 10, 8), estimate(None, 8)
    assert replace(loading, input=None, input_s=None) == alone


def test_loading_that_may_be_longer_elsewhere_widens_the_interval():
    loading, alone = estimate(ALONE_S * 8 * 0.9, 8), estimate(None, 8)
    assert loading.iteration_s.p50 == alone.iteration_s.p50
    assert loading.iteration_s.p90 > alone.iteration_s.p90
    assert loading.loading_s == 0
    assert loading.assumptions == (loading.assumptions[0], *alone.assumptions)
    assert sentence(loading.assumptions[0]).startswith("nearly input-bound: loading takes")


def test_a_profile_tells_nothing_of_loading():
    op = make_op(measured_s=0.5)
    trace = make_trace(ops=(op,), origin_gpu=V100.name, num_workers=None)
    loading = predict(trace, V100)
    assert (loading.loading_s, loading.iteration_s.p50) == (0.0, pytest.approx(0.5))


def test_a_measured_iteration_has_waited_for_its_data_already():
    facts = {"origin_gpu": V100.name, "iteration_s": 2.0, "data_loading_s": 1.5, "num_workers": 0}
    trace = make_trace(ops=(make_op(measured_s=0.5),), **facts)
    here, elsewhere = predict(trace, V100), predict(trace, resolve_gpu("T4"))
    assert (here.input, here.loading_s, here.iteration_s.p50) == (None, 0.0, pytest.approx(2.0))
    assert elsewhere.loading_s == pytest.approx(1.5)
    assert input_time.input_note(here, 8) is None


def test_where_it_was_measured_a_machine_with_fewer_vcpus_still_waits_longer():
    facts = {"origin_gpu": V100.name, "iteration_s": 2.0, "data_loading_s": 12.0, "num_workers": 8}
    loading = predict(make_trace(ops=(make_op(measured_s=0.5),), **facts), V100)
    assert loading.iteration_s.p50 == pytest.approx(2.0)
    assert input_time.fed(loading, 2).iteration_s.p50 == pytest.approx(6.0)


def test_what_is_assumed_is_no_more_than_the_measured_iteration_had_time_for():
    ops = tuple(replace(op, measured_s=1e-4) for op in images())
    loading = predict(loads(None, 2, ops=ops, origin_gpu=V100.name, iteration_s=1e-3), V100)
    assert loading.input.cpu_s == exactly(2e-3)


def test_the_note_names_every_figure():
    note = input_time.input_note(estimate(40.0, 8), 4.0, names_gpu_time=True)
    assert note is not None
    for part in ("input-bound: ", "10 s per iteration", "6 samples/s", "4 vCPUs for each GPU", "40 s of CPU"):
        assert part in sentence(note)
    assert f"the GPU {ALONE_S * 1e3:.3g}"[:10] in sentence(note)
    assert "8 workers for each GPU" in said([input_time.input_note(estimate(40.0, 8), 64.0) or note])
    assert "1 worker for each GPU" in said([input_time.input_note(estimate(40.0, 1), 64.0) or note])


@pytest.mark.parametrize("workers", [0, 8])
def test_the_assumption_is_the_same_for_all_gpus_that_wait(workers):
    first, second = (predict(loads(400.0, workers), resolve_gpu(name)) for name in ("T4", "L4"))
    assert first.loading_s != second.loading_s or not workers
    assert first.assumptions[0] == second.assumptions[0]
    assert sentence(first.assumptions[0]).startswith("input-bound: loading takes")
    notes = [input_time.input_note(one, None, names_gpu_time=True) for one in (first, second)]
    assert notes[0] != notes[1]


def test_without_workers_the_note_proposes_them():
    slow, quick = estimate(ALONE_S * 2, 0), estimate(ALONE_S / 2, 0)
    notes = [input_time.input_note(slow, None), input_time.input_note(quick, None)]
    assert [note and note.facts["is_bound"] for note in notes] == [True, False]
    assert [slow.binds is Bound.INPUT, quick.binds is Bound.INPUT] == [True, False]
    assert "workers of a DataLoader would overlap" in sentence(slow.assumptions[0])


def test_without_a_loader_the_vcpus_that_load_are_named():
    """It said 0 workers, whose work would never end."""
    slow = estimate(ALONE_S * 100, None)
    assumed, told = input_time.input_note(slow, None), input_time.input_note(slow, 26.0)
    assert assumed is not None
    assert told is not None
    assert "with 8 vCPUs for each GPU" in sentence(assumed)
    assert "with 26 vCPUs for each GPU" in sentence(told)


def test_without_waiting_there_is_no_note():
    assert input_time.input_note(estimate(None, 8), None) is None
    assert not any(input_time.WAITING in name for name in estimate(None, 8).by_family)


def test_what_is_assumed_is_said_with_its_spread_and_what_replaces_it():
    loading = predict(loads(None, 8, ops=images()), V100)
    note = input_time.assumed_note(loading.input)
    assert note is not None
    assert note in loading.assumptions
    assert "an image of its size is assumed to take 6.95 ms of a vCPU" in sentence(note)
    assert "--loader-s-per-sample" in sentence(note)
    assert input_time.assumed_note(estimate(40.0, 8).input) is None


def test_an_estimate_without_input_is_fed_by_any_machine():
    alone = make_estimate("X", Interval(p10=1.0, p50=2.0, p90=3.0))
    assert input_time.fed(alone, 0.25) is alone


@pytest.mark.parametrize("vcpus", [0.5, 1.0, 4.0, None])
def test_what_is_fed_again_waits_as_if_it_had_never_been_fed(vcpus):
    """The same estimate is asked about on machine after machine."""
    slow = estimate(2.0, 8)
    once, again = input_time.fed(slow, vcpus), input_time.fed(input_time.fed(slow, 0.5), vcpus)
    assert again.by_method == pytest.approx(once.by_method)
    assert replace(again, by_method={}) == replace(once, by_method={})
    for parts in (again.by_method, again.by_family, again.by_operator):
        assert sum(parts.values()) == pytest.approx(again.iteration_s.p50)
