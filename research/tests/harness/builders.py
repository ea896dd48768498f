"""Small synthetic measurements in the formats of the real ones."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Op, Phase, TensorSpec
from benchmarks.accuracy.models import Workload
from benchmarks.accuracy.op_traces import Node
from benchmarks.accuracy.rows import Measured
from research.training.samples import Samples

HEADER = ("gpu", "model", "mode", "seq_len", "batch_size", "num_layers", "measured_ms", "forward_ms",
          "backward_ms", "other_ms")  # fmt: skip
NODE_HEADER = ("node", "op", "target", "args", "kwargs", "input_shapes", "output_shape", "dtype",
               "forward_ms", "backward_ms", "accumulate_ms")  # fmt: skip
TINY = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "n_positions": 64, "vocab_size": 256}


def line(**changes):
    """A row of a measurement file as texts."""
    texts = {"gpu": "T4", "model": "tiny", "mode": "inf", "seq_len": "32", "batch_size": "2",
             "num_layers": "2.0", "measured_ms": "10.0", "forward_ms": "10.0", "backward_ms": "0.0",
             "other_ms": "12.0"}  # fmt: skip
    return texts | {name: str(value) for name, value in changes.items()}


def write_measurements(folder: Path, *lines, header=HEADER) -> Path:
    """A measurement file with the configuration of ``tiny`` beside it."""
    configs = folder / "model_configs"
    configs.mkdir(exist_ok=True)
    (configs / "tiny.json").write_text(json.dumps(TINY))
    path = folder / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, header, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(lines)
    return path


def node_line(op, target, output="(8, 64)", inputs="[[8, 64]]", forward=0.0, backward=0.0, accumulate=0.0):
    """A row of an operator trace."""
    return {"node": "n", "op": op, "target": target, "args": "()", "kwargs": "{}", "input_shapes": inputs,
            "output_shape": output, "dtype": "torch.float32", "forward_ms": forward, "backward_ms": backward,
            "accumulate_ms": accumulate}  # fmt: skip


# Timing a node costs 0.01 ms. The layer takes 1 + 2 ms forward, the rest 4.
LINES = (
    node_line("placeholder", "input_ids", inputs="[]"),
    node_line("call_method", "size", output="(1,)", forward=0.01),
    node_line("call_function", "<built-in function getitem>", output="(1,)", forward=0.01),
    node_line("call_module", "h.0.ln_1", forward=1.01, backward=0.51, accumulate=0.11),
    node_line("get_attr", "h.0.weight", inputs="[]"),
    node_line("call_function", "<built-in method addmm of type object at 0x1>", "(8, 64)",
              "[[64], [8, 32], [32, 64]]", forward=2.01, backward=4.01, accumulate=0.01),
    node_line("call_function", "<built-in function add>", inputs="[[8, 64], [8, 64]]", forward=0.01),
    node_line("call_method", "view", output="(8, 64)", forward=0.01),
    node_line("call_module", "lm_head", output="(8, 256)", forward=4.01, backward=8.01, accumulate=1.01),
    node_line("output", "output"),
)  # fmt: skip


def write_op_trace(folder: Path, name: str, lines=LINES) -> Path:
    """``GPU--MODEL-MODE-SEQ-BATCH`` as a compressed table."""
    path = folder / f"{name}.csv.gz"
    with gzip.open(path, "wt", newline="") as file:
        writer = csv.DictWriter(file, NODE_HEADER)
        writer.writeheader()
        writer.writerows(lines)
    return path


def make_node(target="gelu", kind="call_function", inputs=((8, 64),), output=(8, 64), **changes) -> Node:
    times = {"forward_s": 1e-3, "backward_s": 2e-3, "accumulate_s": 0.0} | changes
    return Node(kind=kind, target=target, input_shapes=inputs, output_shape=output, dtype="float32", **times)


def make_workload(**changes) -> Workload:
    return Workload(**({"model": "tiny", "mode": "inf", "seq_len": 32, "batch_size": 2} | changes))


def make_measured(gpu="T4", measured_s=10e-3, forward_s=None, backward_s=None, **workload) -> Measured:
    return Measured(
        columns=line(gpu=gpu, measured_ms=1e3 * measured_s, **workload),
        gpu=resolve_gpu(gpu),
        workload=make_workload(**workload),
        measured_s=measured_s,
        num_layers=2,
        forward_s=forward_s,
        backward_s=backward_s,
    )


def make_op(elements: int, name="aten::add.Tensor") -> Op:
    tensor = TensorSpec(shape=(elements,), dtype="float32", stride=(1,))
    return Op(name=name, phase=Phase.FORWARD, inputs=(tensor, tensor), outputs=(tensor,), attributes={},
              flops=elements, bytes=12 * elements, count=1)  # fmt: skip


def make_samples(sizes, time_s, gpu="T4", kind="add", split="train") -> Samples:
    """Additions of the sizes, all alike otherwise."""
    count = len(sizes)
    return Samples(
        ops=tuple(make_op(int(size)) for size in sizes),
        gpus=np.full(count, gpu),
        time_s=np.asarray(time_s, dtype=float),
        kinds=np.full(count, kind),
        splits=np.full(count, split),
        sources=np.full(count, "kernels"),
    )
