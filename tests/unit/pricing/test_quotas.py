"""The quotas that machines count against, as their providers name them."""

from dataclasses import replace

import numpy as np
import pytest

from advisor.core.findings.about_options import QuotaNeeded
from advisor.core.values import Market
from advisor.pricing.instance_types import load_instances
from advisor.pricing.providers import quota_of
from advisor.report.words import sentence
from recommender.plans.candidates import AccountLimits, Quota, plans_of_offers, quota_note
from recommender.plans.extras import CloudTerms
from tests.builders import make_estimate, make_gpu, make_job, make_offer, make_trace
from tests.recommending import recommend


@pytest.mark.parametrize(
    ("provider", "instance_type", "market", "quota"),
    [
        ("aws", "p5.48xlarge", Market.ON_DEMAND, "L-417A185B"),
        ("aws", "p6-b200.48xlarge", Market.ON_DEMAND, "L-417A185B"),
        ("aws", "g5.xlarge", Market.ON_DEMAND, "L-DB2E81BA"),
        ("aws", "p4d.24xlarge", Market.SPOT, "L-7212CCBC"),
        ("aws", "p5.48xlarge", Market.SPOT, "L-C4BD4855"),
        ("gcp", "a3-highgpu-8g", Market.ON_DEMAND, "NVIDIA_H100_GPUS"),
        ("gcp", "a2-ultragpu-1g", Market.SPOT, "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS"),
        ("gcp", "n1-standard-8+2xT4", Market.SPOT, "PREEMPTIBLE_NVIDIA_T4_GPUS"),
    ],
)
def test_a_machine_has_its_quota(provider, instance_type, market, quota):
    found = quota_of(provider, instance_type, market)
    assert found is not None
    assert found.quota == quota


def test_every_machine_of_aws_on_demand_has_one():
    names = [name for provider, name in load_instances() if provider == "aws"]
    assert all(quota_of("aws", name, Market.ON_DEMAND) for name in names)


def test_what_nobody_wrote_down_has_none():
    assert quota_of("aws", "p5en.48xlarge", Market.SPOT) is None
    assert quota_of("lambda", "gpu_8x_h100", Market.ON_DEMAND) is None


def test_two_machines_need_twice_the_quota_and_the_row_says_what_to_request():
    offer = make_offer("X", 9.0, instance_type="p5.48xlarge", num_gpus=8, num_vcpus=192)
    note = quota_note(offer, 2)
    assert note is not None
    assert sentence(note) == (
        "needs a quota of 384 vCPU in us-east-1: L-417A185B (Running On-Demand P instances). New accounts"
        " start with little or none: request it from aws first"
    )
    unknown = make_offer("X", 9.0, instance_type="p5.48xlarge", num_gpus=8, num_vcpus=None)
    assert quota_note(unknown) is None


def test_of_equal_machines_the_one_with_quota_goes_first():
    offer = make_offer("X", 9.0, instance_type="p5.48xlarge", num_gpus=8, num_vcpus=192)
    first = replace(offer, region="ap-south-1")
    limits = {("aws", "ap-south-1", "L-417A185B"): 0, ("aws", offer.region, "L-417A185B"): 192}
    account = AccountLimits(limits=limits, read_on="2026-11-26")
    lacking, enough = plans_of_offers([first, offer], terms=CloudTerms(startup_s=0.0), account=account)
    assert (lacking.lacks_quota, enough.lacks_quota) == (True, False)
    assert not any(isinstance(note, QuotaNeeded) for note in enough.notes)
    assert lacking.id < enough.id, "by their names it would be first"
    answer = recommend(
        make_trace(), {("X", lacking.layout): make_estimate("X", 0.1)}, {"X": make_gpu("X")},
        [lacking, enough], make_job(iterations=5000), rng=np.random.default_rng(0),
    )  # fmt: skip
    assert answer.recommended == enough.id


def test_a_plan_names_it_unless_the_user_told_what_the_account_may_start():
    offer = make_offer("X", 9.0, instance_type="p5.48xlarge", num_gpus=8, num_vcpus=192)
    for quotas, is_named in (((), True), ((Quota(provider="aws", vcpus=500),), False)):
        (plan,) = plans_of_offers([offer], terms=CloudTerms(startup_s=0.0), quotas=quotas)
        assert any(isinstance(note, QuotaNeeded) for note in plan.notes) is is_named
