"""Where the lines between CUDA builds run."""

from dataclasses import replace

import pytest

from advisor.core.findings.about_estimates import EditScript
from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.pricing.sources.custom import CustomSource
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import SnapshotSource
from advisor.report.words import sentences
from recommender.outcome.reasons import capability, software_changes, why_unsupported
from tests.builders import make_gpu, make_offer, make_plan


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("7.5", (7, 5)), ("10.0", (10, 0)), ("12.1", (12, 1)), ("", None), ("gfx942", None), ("9", None)],
)
def test_a_capability_is_two_numbers_or_none(text, numbers):
    assert capability(make_gpu(compute_capability=text)) == numbers


def test_every_gpu_of_the_catalog_has_a_capability_or_is_of_another_vendor():
    for spec in load_gpus().values():
        assert (capability(spec) is None) == (spec.vendor != "NVIDIA")


@pytest.mark.parametrize(
    ("text", "unsupported"),
    [("3.7", True), ("4.9", True), ("5.0", False), ("5.2", False), ("10.0", False), ("gfx942", False)],
)
def test_cuda_12_starts_at_5_0(text, unsupported):
    assert (why_unsupported(make_gpu(compute_capability=text)) is not None) == unsupported


@pytest.mark.parametrize(
    ("text", "old_build"),
    [("3.7", False), ("5.0", True), ("7.0", True), ("7.4", True), ("7.5", False), ("12.0", False)],
)
def test_an_old_build_is_asked_for_from_5_0_until_before_7_5(text, old_build):
    gpu = make_gpu(compute_capability=text, architecture="Oldtimer")
    needed = list(software_changes(make_plan(), gpu))
    assert bool(needed) == old_build
    assert all("Oldtimer" in line and "CUDA 12" in line for line in sentences(needed))


def test_an_own_machine_has_no_offer_to_read():
    assert not list(software_changes(make_plan(offer=None), make_gpu(compute_capability="9.0")))


def test_two_reasons_are_two_lines():
    gpu = make_gpu(compute_capability="gfx942", vendor="AMD")
    needed = sentences(software_changes(make_plan(offer=make_offer(architecture="arm64")), gpu))
    assert len(needed) == 2
    assert "AMD" in needed[0]
    assert "aarch64" in needed[1]


def test_an_arm_host_is_a_fact_of_the_offer_whichever_source_has_it(tmp_path):
    """Before: it was read out of the text "(Arm)", which only our own catalog writes."""
    path = tmp_path / "rates.yaml"
    path.write_text(
        "- {provider: aws, instance_type: g5g.xlarge, region: us-east-1, gpu: T4G, num_gpus: 1,"
        " usd_per_h: 0.3, as_of: 2026-11-01}\n"
    )
    query = OfferQuery(providers=("aws",), gpus=("T4G",))
    for source in (SnapshotSource(), CustomSource([str(path)])):
        offers = [offer for part in source.offers(query) for offer in part.offers]
        assert offers
        for offer in offers:
            codes = set(software_changes(make_plan("T4G", offer=offer), resolve_gpu("T4G")))
            assert EditScript(what="install-aarch64") in codes, offer
            x86 = replace(offer, architecture="x86_64", includes=("4 vCPU (Arm)",))
            assert not list(software_changes(make_plan("T4G", offer=x86), resolve_gpu("T4G")))
