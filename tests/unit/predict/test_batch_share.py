"""Another share of the batch per GPU, and what its samples are and take of a CPU."""

import importlib
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.errors import CatalogError
from advisor.core.findings.about_estimates import BatchNotProfiled
from advisor.core.gpus import catalog_path, resolve_gpu
from advisor.core.values import Collective, IterationEstimate, Op, RankWork, TensorSpec, Trace
from advisor.predict import loading
from advisor.predict.batch_share import EXPONENT, batch_share, trace_at
from advisor.predict.iteration import predict_counts
from advisor.predict.loading import input_work
from tests.builders import make_op, make_trace
from tests.shared import SHARED, needs_shared

V100 = resolve_gpu("V100-PCIE-32GB")


def at(share: float, trace: Trace | None = None, num_gpus: int = 1) -> IterationEstimate:
    return predict_counts(trace or make_trace(), V100, [num_gpus], share_of=lambda _: share)[0]


def test_half_a_batch_takes_more_than_half_the_time():
    # Optimizer and host aside, which take as long.
    trace = make_trace(ops=(make_op(flops=10**12), make_op(flops=2 * 10**12)))
    whole, half = at(1.0, trace), at(0.5, trace)
    assert half.iteration_s.p50 == pytest.approx(whole.iteration_s.p50 * 0.5**EXPONENT)
    assert half.iteration_s.p10 >= whole.iteration_s.p10 * 0.5
    assert half.iteration_s.p90 <= whole.iteration_s.p90
    assert half.iteration_s.p90 / half.iteration_s.p50 > whole.iteration_s.p90 / whole.iteration_s.p50
    (note,) = (note for note in half.assumptions if isinstance(note, BatchNotProfiled))
    assert note.facts == {"share": 0.5, "batch": 0.5, "exponent": EXPONENT}


def test_the_whole_batch_is_what_was_predicted():
    assert at(1.0) == predict_counts(make_trace(), V100, [1])[0]


def test_a_larger_batch_takes_as_much_longer():
    trace = make_trace(ops=(make_op(flops=10**12),))
    assert at(8.0, trace).iteration_s.p50 == pytest.approx(8 * at(1.0, trace).iteration_s.p50)


def test_passes_take_exactly_their_share():
    trace = make_trace(ops=(make_op(flops=10**12, count=8),), accumulation=8, batch_size=64)
    whole, quarter = at(1.0, trace), at(0.25, trace)
    assert quarter.iteration_s.p50 == pytest.approx(whole.iteration_s.p50 / 4)
    assert quarter.memory_bytes == whole.memory_bytes
    spread = quarter.iteration_s.p90 / quarter.iteration_s.p50
    assert spread == pytest.approx(whole.iteration_s.p90 / whole.iteration_s.p50)


def test_below_one_pass_the_batch_is_divided():
    trace = make_trace(accumulation=4)
    share = batch_share(trace, 0.125)
    assert (share.passes, share.batch, share.whole) == (0.25, 0.5, 0.125)
    there = trace_at(trace, share)
    assert (there.accumulation, there.batch_size) == (1, 8)


def test_a_script_that_accumulates_elsewhere_grows_by_passes():
    # Profiled in forty processes of one pass; alone it makes forty.
    work = RankWork(world_size=1, batch_size=None, accumulation=40, flops=0)
    share = batch_share(make_trace(world_size=40, work_elsewhere=work), 10.0)
    assert (share.passes, share.batch) == (10.0, 1.0)


@pytest.mark.parametrize(("accumulation", "share"), [(1, 0.125), (4, 0.125), (4, 0.5), (1, 3.0)])
@pytest.mark.parametrize("cpu_s", [None, 0.02])
def test_what_is_loaded_follows_the_samples(accumulation, share, cpu_s):
    """Assumed by what is copied to the GPU, or measured, without a batch size that is known."""
    batch = TensorSpec(shape=(64, 3, 224, 224), dtype="float32")
    copy = replace(make_op("advisor::h2d_copy", flops=0, count=accumulation), inputs=(batch,))
    trace = make_trace(
        ops=(copy,), accumulation=accumulation, batch_size=None,
        data_loading_s=None, loader_cpu_s_per_sample=cpu_s,
    )  # fmt: skip
    there = input_work(trace_at(trace, batch_share(trace, share)))
    whole = input_work(trace)
    assert whole is not None
    assert there is not None
    assert there.num_samples == 64 * accumulation * share
    assert there.cpu_s.p50 == pytest.approx(whole.cpu_s.p50 * share)


def test_memory_follows_the_batch_of_one_pass():
    trace = make_trace()
    memory = trace_at(trace, batch_share(trace, 2.0)).memory
    assert memory.activation_bytes == 8 * 10**9
    assert memory.peak_bytes == 83 * 10**8
    unknown = replace(trace, memory=replace(trace.memory, activation_bytes=None))
    assert trace_at(unknown, batch_share(unknown, 2.0)).memory == unknown.memory


def test_what_was_measured_on_this_gpu_scales_too():
    ops = (make_op(flops=10**13, measured_s=0.4),)
    trace = make_trace(ops=ops, origin_gpu=V100.name, iteration_s=0.5)
    # 0.1 s of waiting stay.
    assert at(2.0, trace).iteration_s.p50 == pytest.approx(0.9)


@settings(max_examples=60)
@given(
    share=st.floats(0.01, 1),
    accumulation=st.integers(1, 64),
    flops=st.floats(6, 13).map(lambda power: int(10**power)),
    loading_s=st.none() | st.floats(0.2, 1),  # below 1 ms it counts as noise
    num_gpus=st.sampled_from([1, 2, 8]),
)
def test_never_faster_than_linear_nor_slower_than_the_whole(share, accumulation, flops, loading_s, num_gpus):
    ops = (make_op(flops=flops, count=accumulation), make_op("aten::relu", flops=10**6, count=10))
    trace = make_trace(ops=ops, accumulation=accumulation, data_loading_s=loading_s)
    whole, part = at(1.0, trace, num_gpus), at(share, trace, num_gpus)
    assert part.iteration_s.p50 >= share * whole.iteration_s.p50 * (1 - 1e-9)
    assert part.iteration_s.p50 <= whole.iteration_s.p50 * (1 + 1e-9)


def exchanged(share: float, *collectives: Collective, **changes: Any) -> dict[str, int]:
    """How often what is exchanged at a share of two passes of 40 bytes of gradients."""
    memory = replace(make_trace().memory, gradient_bytes=40)
    facts = {"collectives": collectives, "accumulation": 2, "world_size": 4, "memory": memory}
    trace = make_trace(**(facts | changes))
    return {one.kind: one.count for one in trace_at(trace, batch_share(trace, share)).collectives}


def collective(kind: str, count: int, num_bytes: int = 10) -> Collective:
    return Collective(kind=kind, num_bytes=num_bytes, world_size=4, count=count)


@pytest.mark.parametrize(("share", "each", "once"), [(0.5, 4, 4), (1.0, 8, 4), (2.0, 16, 4)])
def test_gradients_are_exchanged_after_each_pass_or_once(share, each, once):
    """Without ``no_sync`` DDP reduces in every pass: four buckets of ten bytes in each."""
    assert exchanged(share, collective("all_reduce", 8)) == {"all_reduce": each}
    assert exchanged(share, collective("all_reduce", 4)) == {"all_reduce": once}


@pytest.mark.parametrize(("scatters", "at_four_passes"), [(8, 16), (4, 4)])
def test_shards_are_gathered_in_each_pass(scatters, at_four_passes):
    """Under FSDP's ``no_sync`` gradients are scattered once, and parameters gathered all the same."""
    shards = collective("all_gather", 16), collective("reduce_scatter", scatters, num_bytes=40)
    found = exchanged(2.0, *shards, is_sharded=True)
    assert found == {"all_gather": 32, "reduce_scatter": at_four_passes}


def copy_of(shape: tuple[int, ...], dtype: str = "float32", count: int = 1) -> Op:
    copy = make_op("advisor::h2d_copy", flops=0, count=count)
    return replace(copy, inputs=(TensorSpec(shape=shape, dtype=dtype),))


def copies(*ops: Op) -> Trace:
    return make_trace(ops=(make_op(), *ops))


@pytest.mark.parametrize(
    ("shape", "dtype", "kind"),
    [
        ((64, 3, 224, 224), "float32", loading.IMAGE),
        ((64, 1, 28, 28), "float32", loading.IMAGE),
        ((64, 4, 512, 512), "float16", loading.IMAGE),
        ((64, 224, 224, 3), "uint8", loading.IMAGE),
        ((8, 3, 16, 112, 112), "float32", loading.IMAGE),  # a clip
        ((8, 512, 512, 3), "uint8", loading.IMAGE),
        ((12, 1024), "int64", loading.TOKENS),
        ((64,), "int64", loading.TOKENS),
        ((8, 4, 512), "int64", loading.TOKENS),  # of four answers each
        ((512, 9, 84, 84), "uint8", loading.ARRAY),  # three frames of a game
        ((64, 13), "float32", loading.ARRAY),
        ((64, 80, 3000), "float32", loading.ARRAY),  # a spectrogram
        ((64, 256, 14, 14), "float32", loading.ARRAY),  # features
        ((64, 3, 7, 7), "float32", loading.ARRAY),  # a filter
    ],
)
def test_shape_and_dtype_tell_the_kind(shape, dtype, kind):
    assert loading.kind_of(TensorSpec(shape=shape, dtype=dtype)) == kind


def test_the_largest_copy_tells_what_the_samples_are():
    trace = copies(copy_of((32,), "int64"), copy_of((32, 3, 224, 224)))
    cpu_s = loading.assumed_cpu_s(trace)
    assert cpu_s[0] == loading.IMAGE
    assert loading.num_copied(trace) == 32
    assert loading.num_copied(copies(copy_of((8, 128), "int64", count=4))) == 32


def test_nothing_copied_and_scalars_tell_nothing():
    assert loading.assumed_cpu_s(copies()) is None
    assert loading.assumed_cpu_s(copies(copy_of((), "float32"))) is None
    assert loading.num_copied(copies()) is None


def test_seconds_go_by_pixels_and_tokens_are_nearly_free():
    def median_s(op: Op) -> float:
        cpu_s = loading.assumed_cpu_s(copies(op))
        return cpu_s[1].p50

    large, small = median_s(copy_of((64, 3, 448, 448))), median_s(copy_of((64, 3, 224, 224)))
    assert large == pytest.approx(4 * small)
    assert median_s(copy_of((64, 1, 224, 224))) == pytest.approx(small)
    assert median_s(copy_of((64, 3, 224, 224), count=3)) == pytest.approx(3 * small)
    assert median_s(copy_of((12, 1024), "int64")) < small / 1000


def test_every_kind_has_quantiles_in_order_a_source_and_a_date():
    priors = loading.load_loader_priors()
    entries = tomllib.loads(catalog_path(loading.LOADERS_FILE).read_text())
    assert set(priors) == set(loading.KINDS)
    for kind, cpu_s in priors.items():
        assert 0 < cpu_s.p10 < cpu_s.p50 < cpu_s.p90
        assert entries[kind]["source"]
        assert str(entries[kind]["as_of"]).startswith("20")


GOOD = "p10_ns = 1\np50_ns = 2\np90_ns = 3\nsource = 'a'\nas_of = 'b'\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = ",
        f"[image]\n{GOOD}",
        "".join(f"[{k}]\n{GOOD}" for k in loading.KINDS).replace("p10_ns = 1", "p10_ns = 9"),
    ],
)
def test_a_broken_table_is_refused(tmp_path, text):
    path = tmp_path / "loaders.toml"
    path.write_text(text)
    with pytest.raises(CatalogError, match=r"loaders\.toml"):
        loading.read_loader_priors(path)
    with pytest.raises(CatalogError):
        loading.read_loader_priors(tmp_path / "none.toml")


@needs_shared
def test_the_table_is_made_of_the_published_rates(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "research")
    build_loaders = importlib.import_module("build_loaders")

    path = tmp_path / "loaders.toml"
    build_loaders.write(build_loaders.text_of(build_loaders.tables(SHARED / "measurements/published")), path)
    assert loading.read_loader_priors(path) == loading.load_loader_priors()
