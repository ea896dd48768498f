"""What an old GPU or an Arm host asks of the user's environment."""

import pytest

from advisor.core.gpus import load_gpus, resolve_gpu
from recommender.outcome.reasons import capability, is_unsupported, software_changes, why_unsupported
from tests.builders import make_offer, make_plan
from tests.findings import said


@pytest.mark.parametrize(("name", "unsupported"), [("K80", True), ("M60", False), ("T4", False)])
def test_kepler_is_gone(name, unsupported):
    assert is_unsupported(resolve_gpu(name)) == unsupported
    assert (why_unsupported(resolve_gpu(name)) is not None) == unsupported


@pytest.mark.parametrize(
    ("name", "old"), [("P100-PCIE-16GB", True), ("V100-SXM-16GB", True), ("T4", False), ("L4", False)]
)
def test_before_turing_a_cuda_12_build_is_needed(name, old):
    spec = resolve_gpu(name)
    words = said(software_changes(make_plan(spec.name), spec))
    assert ("CUDA 12" in words) == old


def test_another_vendor_needs_another_build():
    spec = resolve_gpu("MI300X")
    assert capability(spec) is None
    assert "AMD" in said(software_changes(make_plan(spec.name), spec))


def test_an_arm_host_is_said():
    spec = resolve_gpu("T4G")
    offer = make_offer("T4G", architecture="arm64")
    assert "aarch64" in said(software_changes(make_plan("T4G", offer=offer), spec))
    assert software_changes(make_plan("T4G"), spec) == []


def test_every_gpu_of_the_catalog_has_an_answer():
    for spec in load_gpus().values():
        assert (capability(spec) is None) == (spec.vendor != "NVIDIA")
