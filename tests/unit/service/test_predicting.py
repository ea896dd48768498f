"""Predictions as a use case: which GPUs, in which order, and what is refused when."""

import pytest

from advisor.config.layers import Config
from advisor.config.settings import Settings
from advisor.core.errors import InputError, UnknownGpuError
from advisor.core.gpus import load_gpus
from advisor.service import traces
from advisor.service.listening import Listener
from advisor.service.predicting import PredictAnswer, PredictRequest, check, predict
from advisor.service.traces import TraceRequest
from tests.builders import make_trace
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
