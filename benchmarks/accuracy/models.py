"""Builds the models of a measurement file straight on the GPU that is not there, and profiles them.

The iterations are those of the measurements: Hugging Face models with random weights, eager attention, FP32
without TF32, all tokens 1. Training is forward and backward with dropout, gradients added to those of the
iteration before, no optimizer; the loss is not timed. Inference is forward alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from advisor.profile import profile_callable
from advisor.types import Phase, Trace

# What the loss runs forward: it was not timed, its backward pass was.
_UNTIMED = ("aten::_log_softmax", "aten::nll_loss_forward")
_HEADS = {
    ("bert", "train"): "AutoModelForPreTraining",
    ("bert", "inf"): "AutoModelForSequenceClassification",
    ("switch_transformers", "train"): "AutoModelForSeq2SeqLM",
    ("switch_transformers", "inf"): "AutoModelForSeq2SeqLM",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One iteration of one model, whatever GPU it runs on."""

    model: str
    mode: str
    seq_len: int
    batch_size: int


@cache
def trace_of(workload: Workload, configs: Path) -> Trace:
    """The workload's operators, profiled without a GPU.

    Raises:
        FileNotFoundError: there is no configuration of the model.
        ProfileError: the model cannot be built or run.
    """
    document = json.loads((configs / f"{workload.model}.json").read_text())
    step = _train if workload.mode == "train" else _infer
    trace = profile_callable(step, setup=_builder(document, workload), batch_size=workload.batch_size)
    timed = tuple(op for op in trace.ops if op.phase is not Phase.FORWARD or op.name not in _UNTIMED)
    return replace(trace, ops=timed)


def _builder(document: dict[str, Any], workload: Workload) -> Callable[[], Any]:
    import torch
    import transformers

    kind = document["model_type"]
    head = getattr(transformers, _HEADS.get((kind, workload.mode), "AutoModelForCausalLM"))

    def build() -> Any:
        config = transformers.AutoConfig.for_model(**document)
        with torch.device("cuda"):
            # Some configurations name the dtype of their published weights.
            model = head.from_config(config, attn_implementation="eager", dtype=torch.float32)
            ids = torch.ones(workload.batch_size, workload.seq_len, dtype=torch.int64)
        for layer in model.modules():
            if hasattr(layer, "experts") and hasattr(layer, "router"):
                layer.forward = partial(_run_every_expert, layer.experts, config.expert_capacity)
        model.train(workload.mode == "train")
        # The library that was measured kept no copies of keys and values in a forward pass.
        inputs = {"input_ids": ids} | ({} if kind == "bert" else {"use_cache": False})
        if kind == "switch_transformers":
            inputs |= {"attention_mask": ids, "decoder_input_ids": ids, "decoder_attention_mask": ids}
        return model, inputs

    return build


def _run_every_expert(experts: Any, capacity: int, hidden: Any) -> Any:
    """As measured: each expert runs batch x capacity rows, one after the other, in place of the routing."""
    routed = hidden[:, :capacity]
    for expert in experts.values():
        routed = routed + expert(hidden[:, :capacity])
    return routed if capacity >= hidden.shape[1] else _with_head(hidden, routed)


def _with_head(hidden: Any, head: Any) -> Any:
    import torch

    return torch.cat([head, hidden[:, head.shape[1] :]], dim=1)


def _infer(state: Any) -> None:
    import torch

    model, inputs = state
    with torch.no_grad():
        model(**inputs)


def _train(state: Any) -> None:
    import torch

    model, inputs = state
    output = model(**inputs)
    logits = output["prediction_logits"] if "prediction_logits" in output else output["logits"]
    ids = inputs["input_ids"]
    torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), ids.view(-1)).backward()
