"""Predictions as a use case: which GPUs, in which order, and what is refused when."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.config.layers import Config, load_config
from advisor.config.settings import Settings
from advisor.core.errors import InputError, NoOfferError, UnknownGpuError
from advisor.core.gpus import load_gpus
from advisor.core.units import GIB
from advisor.core.values import WHOLE, Split, Tier
from advisor.service import traces
from advisor.service.listening import Listener
from advisor.service.plan_facts import PlanRequest, given_facts
from advisor.service.predicting import PredictAnswer, PredictRequest, check, predict
from advisor.service.prices.query_limits import list_gpus
from advisor.service.recommend.recommending import that_suit
from advisor.service.traces import TraceRequest
from recommender.outcome.nodes import times_of_one
from tests.builders import make_plan, make_trace
from tests.listening import Heard

TRACE = make_trace()


def config(**sections: object) -> Config:
    return Config(settings=Settings(**sections), origins={}, warnings=())


def predicted(*gpus: str, heard: Listener | None = None, **sections: object) -> PredictAnswer:
    request = PredictRequest(trace=TraceRequest(source=TRACE), gpus=gpus)
    return predict(request, config(**sections), heard or Listener())


def test_without_a_choice_all_of_nvidia_s_are_predicted_the_fastest_first():
    answer = predicted()
    nvidia = {name for name, spec in load_gpus().items() if spec.vendor == "NVIDIA"}
    assert {estimate.gpu for estimate in answer.estimates} == nvidia
    medians = [estimate.iteration_s.p50 for estimate in answer.estimates]
    assert medians == sorted(medians)


def test_each_count_is_an_estimate_of_its_own():
    heard = Heard()
    answer = predicted("L4:1..2", "T4", heard=heard)
    assert {(e.gpu, e.num_gpus) for e in answer.estimates} == {("L4", 1), ("L4", 2), ("T4", 1)}
    assert heard.notes == []
    predicted("A100:2", heard=heard)
    assert "'A100:2' means" in heard.notes[0]


def test_of_a_script_of_eight_processes_one_gpu_is_said_to_be_alone():
    def notes(*gpus: str) -> list[str]:
        heard = Heard()
        trace = make_trace(world_size=8)
        predict(PredictRequest(trace=TraceRequest(source=trace), gpus=gpus), config(), heard)
        return heard.notes

    assert notes("L4") == ["profiled as one of 8 processes, predicted on one GPU alone (L4:8 means all)"]
    assert notes("L4:1..8") == notes("L4:8") == []


def test_hardware_without_software_is_a_warning_of_the_answer_and_not_of_the_trace():
    answer = predicted("K80")
    assert [doubt.facts["gpu"] for doubt in answer.doubts] == ["K80"]
    assert answer.trace.warnings == TRACE.warnings


def test_more_gpus_than_any_machine_has_are_refused_unless_one_s_own_is_so_large():
    with pytest.raises(
        InputError, match=r"no machine has as many GPUs as 'L4:63' asks for, nor do whole nodes"
    ):
        predicted("L4:63")
    lab = {"name": "lab", "gpu": "L4", "num_gpus": 64}
    (own,) = predicted("L4:64", clusters=[lab]).estimates
    assert (own.layout.num_nodes, own.num_gpus) == (1, 64)


def test_more_gpus_than_a_machine_has_are_whole_nodes_of_the_largest():
    (estimate,) = predicted("A100-SXM-80GB:32").estimates
    assert (estimate.layout.num_nodes, estimate.layout.gpus_per_node) == (4, 8)
    assert estimate.layout.fabric is not None
    assert estimate.layout.fabric.network is not None


def test_nodes_may_be_named_and_a_family_counts_as_far_as_it_has_them():
    layouts = {e.gpu: e.layout for e in predicted("L4:4x2", "H200:128").estimates}
    assert (layouts["L4"].gpus_per_node, layouts["L4"].num_nodes) == (4, 2)
    assert layouts["H200-SXM-141GB"].num_nodes == 16
    assert "H200-NVL-141GB" not in layouts


def test_what_is_wrong_shows_before_a_script_is_started(tmp_path, monkeypatch):
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(traces, "profile_script", never)
    script = tmp_path / "train.py"
    script.write_text("pass\n")
    with pytest.raises(InputError, match="no machine has as many"):
        predict(PredictRequest(trace=TraceRequest(source=script), gpus=("L4:63",)), config(), Listener())
    for gpus, source in ((("L44",), script), ((), tmp_path / "gone.py")):
        with pytest.raises((UnknownGpuError, InputError)):
            check(PredictRequest(trace=TraceRequest(source=source), gpus=gpus))


def test_machines_that_hold_no_whole_copies_are_left_out():
    plans = [make_plan(num_gpus=number) for number in (1, 2, 4, 8)]
    assert [plan.num_gpus for plan in that_suit(plans, Split(tensor=4))] == [4, 8]
    assert that_suit(plans, WHOLE) == plans


def test_where_none_is_left_it_says_what_to_ask_for():
    with pytest.raises(NoOfferError, match=r"tensor-8.pipeline-2 divides none .* a multiple of 16 GPUs"):
        that_suit([make_plan(num_gpus=8)], Split(tensor=8, pipeline=2))


def test_without_plans_somebody_else_says_why():
    assert that_suit([], Split(tensor=8)) == []


@pytest.fixture
def own_config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return load_config({"store.url": f"sqlite:///{tmp_path}/a.db", "prices.sources": ["snapshot"]})


@pytest.mark.parametrize(
    ("plan", "tier", "provider", "counts"),
    [
        ("local/4xL4", Tier.LOCAL, "local", (1, 4)),
        ("cluster/lab/8xL4", Tier.CLUSTER, "lab", (1, 8)),
        ("cluster/lab/2x8xL4", Tier.CLUSTER, "lab", (2, 16)),
        ("cluster/a/b/16x4xL4", Tier.CLUSTER, "a/b", (16, 64)),
    ],
)
def test_ids_of_one_s_own(own_config, plan, tier, provider, counts):
    facts = given_facts(PlanRequest(plan=plan), own_config, Listener())
    assert (facts.tier, facts.provider, facts.gpu) == (tier, provider, "L4")
    assert (facts.num_nodes, facts.num_gpus) == counts


def test_nodes_of_a_cloud_cost_and_count_together(own_config):
    one, four = (
        given_facts(PlanRequest(plan=f"aws/{machine}/us-east-1/on-demand"), own_config, Listener())
        for machine in ("p4d.24xlarge", "4xp4d.24xlarge")
    )
    assert (one.num_nodes, one.num_gpus) == (1, 8)
    assert (four.num_nodes, four.num_gpus, four.instance_type) == (4, 32, "p4d.24xlarge")
    assert four.usd_per_h == pytest.approx(4 * (one.usd_per_h or 0.0))
    assert four.preemptions_per_h == pytest.approx((one.preemptions_per_h or 0.0) * times_of_one(4))


def test_what_is_given_wins_over_an_id(own_config):
    plan = "aws/2xp4d.24xlarge/us-east-1/on-demand"
    facts = given_facts(PlanRequest(plan=plan, num_nodes=3), own_config, Listener())
    assert (facts.num_nodes, facts.num_gpus) == (3, 16)
    named = given_facts(PlanRequest(gpu="H100-SXM-80GB:8x4"), own_config, Listener())
    assert (named.num_nodes, named.num_gpus) == (4, 32)
    assert given_facts(PlanRequest(gpu="H100-SXM-80GB:8"), own_config, Listener()).num_nodes is None


@pytest.mark.parametrize("plan", ["local/2x", "cluster/lab", "aws/0xp4d.24xlarge/x", "cluster/lab/x8xL4"])
def test_other_texts_are_no_ids(own_config, plan):
    with pytest.raises(InputError, match="not the id of a plan"):
        given_facts(PlanRequest(plan=plan), own_config, Listener())


LARGEST_GIB = max(spec.memory_bytes for spec in load_gpus().values()) / GIB


def names(**asked: Any) -> list[str]:
    return [spec.name for spec in list_gpus(asked.pop("names", ()), Listener(), **asked)]


def test_without_a_limit_all_are_listed_and_names_only_once():
    assert names() == [*load_gpus()]
    assert names(names=("L4", "NVIDIA L4", "T4")) == ["L4", "T4"]


@given(st.sampled_from([None, "nvidia", "AMD"]), st.floats(0, LARGEST_GIB) | st.none())
def test_what_is_left_is_what_the_limits_say(vendor, least_gib):
    expected = [
        spec.name
        for spec in load_gpus().values()
        if (vendor is None or spec.vendor.lower() == vendor.lower())
        and (least_gib is None or spec.memory_bytes >= least_gib * GIB)
    ]
    if expected:
        assert names(vendor=vendor, min_memory_gib=least_gib) == expected
    else:
        with pytest.raises(NoOfferError):
            names(vendor=vendor, min_memory_gib=least_gib)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"names": ("L4:8",)}, "'L4:8' asks for a number of GPUs"),
        ({"vendor": "nvidai"}, "Did you mean 'nvidia'"),
        ({"min_memory_gib": -1}, "min_memory_gib must be a finite number"),
    ],
)
def test_what_cannot_be_meant_is_refused(asked, words):
    with pytest.raises(InputError, match=words):
        names(**asked)


def test_the_limit_that_leaves_none_is_named_with_what_there_is_without_it():
    with pytest.raises(NoOfferError) as caught:
        names(names=("L4",), min_memory_gib=100)
    assert "no GPU is left with min_memory_gib 100: without it there are 1, the largest" in str(caught.value)
