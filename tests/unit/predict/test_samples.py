"""What kind of samples a batch holds, and the table of what one takes of a CPU."""

import importlib
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.values import Op, TensorSpec, Trace
from advisor.predict import loading
from tests.builders import make_op, make_trace
from tests.shared import SHARED, needs_shared


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
