"""Where each constant comes from: this GPU, its relatives, its architecture, or any GPU."""

import math
import statistics
from collections.abc import Callable
from dataclasses import replace

import pytest

from advisor.core.errors import CatalogError
from advisor.core.findings.about_estimates import Constant
from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.operators import registry
from advisor.predict import constants
from advisor.predict.constants import constants_for, described
from advisor.predict.knowledge import read_knowledge, shipped
from advisor.report.words import sentence, sentences
from tests.builders import make_gpu
from tests.findings import said

TABLES = """
[gpu."T4"]
source = "a test"
streaming_fraction = 0.5
gemm_fraction.fp32 = 0.4

[gpu."V100-PCIE-32GB"]
streaming_fraction = 0.9
gemm_fraction.fp32 = 0.8
conv_fraction.fp32 = 0.85

[gpu."V100-SXM-16GB"]
streaming_fraction = 0.7

[gpu."V100-SXM-32GB"]
streaming_fraction = 0.1

[assumed.any]
streaming_fraction = 0.8
reduction_fraction = 1
gemm_fraction = { fp32 = 0.7, fp16 = 0.6 }
conv_fraction = { fp32 = 0.75, fp16 = 0.3 }

[assumed.Volta]
reduction_fraction = 0.6
gemm_fraction = { fp32 = 0.65, fp16 = 0.55 }
"""
Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Tables of our own instead of the shipped ones."""

    def write(text: str) -> None:
        (tmp_path / "fitted.toml").write_text(text)

    monkeypatch.setattr(constants, "shipped", lambda: read_knowledge(tmp_path))
    return write


def test_what_was_fitted_on_the_gpu_beats_everything(install):
    install(TABLES)
    fitted = constants_for(resolve_gpu("V100-PCIE-32GB"))
    assert fitted.fractions["streaming_fraction"] == 0.9
    assert (fitted.fractions["gemm_fraction.fp32"], fitted.fractions["conv_fraction.fp32"]) == (0.8, 0.85)
    assert fitted.measured == {"streaming_fraction", "gemm_fraction.fp32", "conv_fraction.fp32"}


def test_a_relative_gets_the_median_of_the_others(install):
    install(TABLES)
    # Not fitted: the median of 0.9, 0.7 and 0.1. Another architecture (T4: 0.5) does not count.
    fitted = constants_for(make_gpu("V100-OTHER", architecture="Volta"))
    assert fitted.fractions["streaming_fraction"] == 0.7
    assert fitted.fractions["gemm_fraction.fp32"] == 0.8
    assert fitted.measured == frozenset()


def test_a_gpu_is_not_its_own_relative(install):
    install(TABLES)
    # Fitted for streaming alone; the products come from the one other Volta that has them.
    fitted = constants_for(resolve_gpu("V100-SXM-16GB"))
    assert fitted.fractions["gemm_fraction.fp32"] == 0.8
    assert fitted.measured == {"streaming_fraction"}
    alone = constants_for(resolve_gpu("T4"))
    assert "median" not in {source.facts["of"] for source in alone.origin.values()}


def test_a_board_that_lives_on_its_slot_tells_nothing_of_one_that_does_not(install):
    """An RTX 2080 Ti is a Turing as the T4 is, and draws 250 W: it is like the V100s."""
    install(TABLES)
    fitted = constants_for(resolve_gpu("RTX-2080-Ti"))
    assert (fitted.fractions["streaming_fraction"], fitted.fractions["gemm_fraction.fp32"]) == (0.7, 0.8)
    assert sentence(fitted.origin["streaming_fraction"]) == "median of the measured GPUs above 75 W"
    assert constants_for(resolve_gpu("L4")).fractions["streaming_fraction"] == 0.5
    assert sentence(constants_for(resolve_gpu("L4")).origin["streaming_fraction"]).endswith("GPUs up to 75 W")
    twin = constants_for(make_gpu(architecture="Turing", tdp_w=75.0))
    assert sentence(twin.origin["streaming_fraction"]) == "median of the measured Turing GPUs up to 75 W"


def test_another_vendors_boards_are_no_measure(install):
    install(TABLES)
    assert constants_for(make_gpu(vendor="AMD", architecture="CDNA3")).fractions["streaming_fraction"] == 0.8


def test_the_power_class_foretells_the_constants_of_a_gpu_that_was_left_out():
    """Over all constants that were fitted: 12 % off, where the assumptions alone are 18 %."""
    tables = shipped().tables
    by_class, by_assumption = [], []
    for name, own in tables["gpu"].items():
        others = {other: table for other, table in tables["gpu"].items() if other != name}
        for fitted, errors in ((others, by_class), ({}, by_assumption)):
            knowledge = replace(shipped(), tables={**tables, "gpu": fitted}, is_calibrated_here=False)
            foretold = constants_for(resolve_gpu(name), knowledge)
            for constant, measured in constants._flat(own).items():
                errors.append(abs(math.log(foretold.fractions[constant] / measured)))
    assert len(by_class) == 66
    assert statistics.fmean(by_class) < 0.12 < statistics.fmean(by_assumption)


def test_then_the_architecture_then_any_gpu(install):
    install(TABLES)
    volta = constants_for(resolve_gpu("V100-PCIE-32GB"))
    assert volta.fractions == {
        "streaming_fraction": 0.9,
        "reduction_fraction": 0.6,
        "gemm_fraction.fp32": 0.8,
        "gemm_fraction.fp16": 0.55,
        "conv_fraction.fp32": 0.85,
        "conv_fraction.fp16": 0.3,
    }
    stranger = constants_for(make_gpu(architecture="Unheard-of")).fractions
    assert (stranger["streaming_fraction"], stranger["gemm_fraction.fp32"]) == (0.7, 0.8)
    assert stranger["gemm_fraction.fp16"] == 0.6


def test_a_whole_number_is_a_constant_too(install):
    install(TABLES)
    assert constants_for(resolve_gpu("T4")).fractions["reduction_fraction"] == 1.0


def test_the_sources_name_the_rates_unless_it_is_all_of_them(install):
    install(TABLES)
    fitted, assumed, anything = sentences(described(constants_for(resolve_gpu("V100-PCIE-32GB")).origin))
    assert fitted.endswith(": conv (fp32), gemm (fp32), streaming")
    assert "Volta" in assumed
    assert assumed.endswith(": gemm (fp16), reduction")
    assert anything.endswith(": conv (fp16)")
    stranger = constants_for(make_gpu(architecture="Unheard-of", vendor="Nobody"))
    assert said(described(stranger.origin)).endswith("assumed for any GPU: conv, gemm, reduction, streaming")


def test_sources_may_be_of_some_constants_alone(install):
    install(TABLES)
    origin = constants_for(resolve_gpu("V100-PCIE-32GB")).origin
    assert said(described(origin, {"conv_fraction.fp16"})).endswith("assumed for any GPU: conv (fp16)")
    fitted, assumed = sentences(
        described(origin, {"streaming_fraction", "reduction_fraction", "gemm_fraction.fp16"})
    )
    assert fitted == "roofline constants, fitted to measurements on this GPU: streaming"
    assert assumed == "roofline constants, assumed for Volta: gemm (fp16), reduction"
    assert described(origin, set()) == ()


@pytest.mark.parametrize("text", ["[gpu", "= 1"])
def test_a_broken_table_is_a_catalog_error_that_names_the_file(install, text):
    install(text)
    with pytest.raises(CatalogError, match=r"fitted\.toml"):
        constants_for(make_gpu())


def test_a_missing_table_is_a_catalog_error(install):
    with pytest.raises(CatalogError, match=r"fitted\.toml"):
        constants_for(make_gpu())


def test_every_gpu_of_the_catalog_has_constants_a_gpu_can_reach():
    for spec in load_gpus().values():
        fitted = constants_for(spec)
        reached = {name: x for name, x in fitted.fractions.items() if not name.startswith("conv_fraction.")}
        # GeForce boards run above the clock of their data sheets.
        most = 1.15 if spec.has_half_rate_tensor_cores else 1.0
        assert all(0 < fraction <= most for fraction in reached.values()), spec.name
        for name, has_rates in registry.constants().items():
            rates = {"fp64", "fp32", "fp16_vector", *spec.tensor_flops_per_s} if has_rates else {""}
            assert {f"{name}.{rate}".rstrip(".") for rate in rates} <= fitted.fractions.keys()
        assert set(fitted.origin.values())


@pytest.mark.parametrize("name", ["RTX-3090", "RTX-4090", "RTX-5080", "A10G"])
def test_boards_that_add_at_half_rate_have_a_constant_of_their_own(name):
    constants = constants_for(resolve_gpu(name))
    for rate, most in {"fp16": 1.1, "bf16": 1.1, "tf32": 0.85}.items():
        assert constants.fractions[f"gemm_fraction.{rate}"] == most
        origin = constants.origin[f"gemm_fraction.{rate}"]
        assert isinstance(origin, Constant)
        assert origin.of == "half-rate"
    assert not (
        isinstance(constants.origin["streaming_fraction"], Constant)
        and constants.origin["streaming_fraction"].of == "half-rate"
    )
    assert not constants.is_measured


@pytest.mark.parametrize(("name", "share"), [("RTX-A6000", 0.6), ("RTX-4090", 0.6), ("A100-SXM-40GB", 0.81)])
def test_convolutions_do_not_reach_lanes_that_do_integers_too(name, share):
    assert constants_for(resolve_gpu(name)).fractions["conv_fraction.fp32"] == share


def test_boards_of_the_same_architecture_that_do_not_keep_theirs():
    for name in ("A100-SXM-40GB", "RTX-A6000", "L40S", "T4"):
        origin = constants_for(resolve_gpu(name)).origin
        assert not (
            isinstance(origin["gemm_fraction.fp16"], Constant)
            and origin["gemm_fraction.fp16"].of == "half-rate"
        )
