"""Builds the models of a measurement file straight on the GPU that is not there, and profiles them.

The iterations are those of the measurements: Hugging Face models with random weights, eager attention, FP32
without TF32, all tokens 1. Training is forward and backward with dropout, gradients added to those of the
iteration before, no optimizer; the loss is not timed. Inference is forward alone.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from advisor.core.errors import InputError, ProfileError
from advisor.core.values import Phase, Trace
from advisor.profile import profile_callable

# What the loss runs forward: it was not timed, its backward pass was.
_UNTIMED = ("aten::_log_softmax", "aten::nll_loss_forward")
_ENCODER_HEADS = {"train": "AutoModelForPreTraining", "inf": "AutoModelForSequenceClassification"}
_PROCESSES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One iteration of one model, whatever GPU it runs on."""

    model: str
    mode: str
    seq_len: int
    batch_size: int

    def __str__(self) -> str:
        return f"{self.model} {self.mode} {self.seq_len} x {self.batch_size}"


def traces_of(workloads: Iterable[Workload], configs: Path) -> Iterator[tuple[Workload, Trace]]:
    """Every distinct workload with its trace, as they are done, in two processes.

    Raises:
        InputError: transformers is not installed, or a configuration is not JSON.
        ProfileError: a model cannot be built or run.
    """
    if importlib.util.find_spec("transformers") is None:
        raise InputError("models are built by transformers: pip install 'gpu-advisor[frameworks]'.")
    # Threads of torch do not survive a fork: the workers start afresh, and only what they profile forks.
    context = multiprocessing.get_context("spawn")
    # An interrupt is told once, by us.
    ignore = (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(
        _PROCESSES, mp_context=context, initializer=signal.signal, initargs=ignore
    ) as pool:
        futures = {pool.submit(trace_of, each, configs): each for each in dict.fromkeys(workloads)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise ProfileError("a profiling process was ended, perhaps for its memory: free some.") from error
        finally:
            pool.shutdown(cancel_futures=True)


def trace_of(workload: Workload, configs: Path) -> Trace:
    """The workload's operators, profiled without a GPU.

    Raises:
        InputError: the configuration of the model is missing or not JSON.
        ProfileError: the model cannot be built or run.
    """
    path = configs / f"{workload.model}.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        document["model_type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{str(path)!r} is no Hugging Face configuration ({type(error).__name__}: {error}): it needs to"
            " be JSON with a 'model_type'."
        ) from error
    step = _train if workload.mode == "train" else _infer
    try:
        trace = profile_callable(step, setup=_builder(document, workload), batch_size=workload.batch_size)
    except ProfileError as error:
        reason = str(error).partition("\n\n")[0]
        raise ProfileError(f"cannot profile {workload} ({path.name}): {reason}") from error
    timed = tuple(op for op in trace.ops if op.phase is not Phase.FORWARD or op.name not in _UNTIMED)
    return replace(trace, ops=timed)


def _builder(document: dict[str, Any], workload: Workload) -> Callable[[], Any]:
    import torch
    import transformers

    def build() -> Any:
        config = transformers.AutoConfig.for_model(**document)
        head = _head(config, workload.mode)
        with torch.device("cuda"):
            # Some configurations name the dtype of their published weights.
            model = getattr(transformers, head).from_config(
                config, attn_implementation="eager", dtype=torch.float32
            )
            ids = torch.ones(workload.batch_size, workload.seq_len, dtype=torch.int64)
        _fill_experts(model, config)
        model.train(workload.mode == "train")
        inputs = {"input_ids": ids}
        if config.is_encoder_decoder:
            inputs |= {"attention_mask": ids, "decoder_input_ids": ids, "decoder_attention_mask": ids}
        # The library that was measured kept no copies of keys and values in a forward pass.
        return model, inputs if head in _ENCODER_HEADS.values() else inputs | {"use_cache": False}

    return build


def _head(config: Any, mode: str) -> str:
    """BERT can also be a decoder, and was none in these measurements."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING as DECODERS

    if config.is_encoder_decoder:
        return "AutoModelForSeq2SeqLM"
    is_encoder = config.model_type == "bert" or type(config) not in DECODERS
    return _ENCODER_HEADS[mode] if is_encoder else "AutoModelForCausalLM"


def _fill_experts(model: Any, config: Any) -> None:
    capacity: int = getattr(config, "expert_capacity", None) or 0
    for layer in model.modules() if capacity else ():
        if hasattr(layer, "experts") and hasattr(layer, "router"):
            layer.forward = partial(_run_every_expert, layer.experts, capacity)


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
