"""Scripts of several processes, unmodified, profiled as one of eight and put into predictions."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Scaling, Trace
from advisor.formats.trace_files import read_trace, write_trace
from advisor.predict.exchange.collective_time import collective_time
from advisor.predict.exchange.collectives import resharded, sharded_over
from advisor.predict.iteration import predict_counts
from advisor.profile import profile
from advisor.workloads.step_counts import seen_scaling
from tests.end_to_end.cli import Shell, assert_plain_error
from tests.findings import named, said

SCRIPTS = Path(__file__).parents[1] / "compatibility" / "scripts"
RUNS = {
    "torchrun": ("ddp_torchrun.py", 8),
    "torchrun alone": ("ddp_torchrun.py", None),
    "fsdp2": ("fsdp2.py", 8),
    "fsdp2 of four": ("fsdp2.py", 4),
    "fsdp2 alone": ("fsdp2.py", None),
    "tensor parallel": ("tensor_parallel.py", 4),
    "zero1": ("zero1.py", 8),
    "zero1 alone": ("zero1.py", None),
}
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]


@pytest.fixture(scope="module")
def traces():
    pytest.importorskip("torch")

    def run(name):
        file, world_size = RUNS[name]
        return name, profile(SCRIPTS / file, world_size=world_size)

    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(run, RUNS))


def total_bytes(trace: Trace, kind: str) -> int:
    return sum((c.num_bytes or 0) * c.count for c in trace.collectives if c.kind == kind)


def test_a_rank_of_ddp_computes_what_one_process_does(traces):
    trace = traces["torchrun"]
    assert trace.ops == traces["torchrun alone"].ops
    assert (trace.world_size, trace.awaits_reductions, sharded_over(trace)) == (8, False, None)
    # One bucket.
    assert [one.count for one in trace.collectives] == [1]


def test_a_torchrun_script_runs_without_a_world_and_says_so(traces):
    assert any("`world_size` N" in warning for warning in named(traces["torchrun alone"].warnings))
    assert not any("world_size" in warning for warning in named(traces["torchrun"].warnings))


def test_fsdp2_gathers_every_layer_twice_and_scatters_its_gradients_once(traces):
    trace = traces["fsdp2"]
    layer = 3 * 256 * 256 + 3 * 256 + 256 * 256 + 256 + 8 * 256 * 256 + 5 * 256 + 4 * 256
    rest = 1024 * 256 + 64 * 256 + 2 * 256 + 256 * 1024
    expected = {
        ("all_gather", 4 * layer): 6,
        # The root stays gathered between forward and backward.
        ("all_gather", 4 * rest): 1,
        ("reduce_scatter", 4 * layer): 3,
        ("reduce_scatter", 4 * rest): 1,
    }
    counts = {(c.kind, c.num_bytes): c.count for c in trace.collectives if c.kind != "all_reduce"}
    assert counts == expected
    shard = 4 * (3 * layer + rest) // 8
    # Each of some 40 parameters is rounded up to 512 bytes.
    assert shard <= trace.memory.parameter_bytes <= shard + 40 * 512


def test_a_share_of_parameters_is_predicted_for_other_worlds_as_if_profiled_there(traces):
    four, eight = resharded(traces["fsdp2"], 4), traces["fsdp2"]
    profiled = traces["fsdp2 of four"]
    assert four.collectives == profiled.collectives
    for name in ("parameter_bytes", "gradient_bytes", "optimizer_bytes", "peak_bytes"):
        assert getattr(four.memory, name) == pytest.approx(getattr(profiled.memory, name), rel=0.03), name
    gpu = resolve_gpu("A100-SXM-80GB")
    estimates = [predict_counts(trace, gpu, [4])[0] for trace in (eight, profiled)]
    # Loading is measured, and a busy machine measures more.
    assert estimates[0].device_s.p50 == pytest.approx(estimates[1].device_s.p50, rel=0.03)


@pytest.mark.parametrize("ranks", [4, 8])
def test_memory_of_other_worlds_is_that_of_a_profile_there(traces, ranks):
    gpu, names = resolve_gpu("A100-SXM-80GB"), ("fsdp2", "fsdp2 of four")
    needs = [predict_counts(traces[name], gpu, [ranks])[0].memory_bytes for name in names]
    assert needs[0] == pytest.approx(needs[1], rel=0.001)


def test_a_shared_state_is_predicted_for_eight_ranks_as_if_profiled_there(traces):
    # A third of all weights is the embedding, which is one rank's: an eighth of them would be too little.
    alone, profiled, gpu = traces["zero1 alone"], traces["zero1"], resolve_gpu("A100-SXM-80GB")
    assert profiled.memory.optimizer_bytes == pytest.approx(2 * 4 * 4096 * 512, rel=0.001)
    there = resharded(alone, 8)
    assert there.memory.optimizer_bytes == pytest.approx(profiled.memory.optimizer_bytes, rel=0.001)
    assert there.memory.peak_bytes == pytest.approx(profiled.memory.peak_bytes, rel=0.001)
    assert there.collectives == profiled.collectives
    estimates = [predict_counts(trace, gpu, [8])[0] for trace in (alone, profiled)]
    assert estimates[0].memory_bytes == pytest.approx(estimates[1].memory_bytes, rel=0.001)
    # Loading is measured, and a busy machine measures more.
    assert estimates[0].device_s.p50 == pytest.approx(estimates[1].device_s.p50, rel=0.03)
    assert "ZeRO-1 or 2: each of 8 GPUs" in said(estimates[0].assumptions)


def test_updated_weights_are_sent_in_the_open(traces):
    trace, gpu = traces["zero1"], resolve_gpu("A100-SXM-80GB")
    reduced = tuple(c for c in trace.collectives if c.kind == "all_reduce")
    without = replace(trace, collectives=reduced)
    whole, part = (predict_counts(one, gpu, [8])[0] for one in (trace, without))
    sent_s = sum(
        c.count * collective_time("broadcast", c.num_bytes, whole.layout, gpu).seconds
        for c in trace.collectives
        if c.kind == "broadcast"
    )
    assert total_bytes(trace, "broadcast") == 4 * (4096 * 512 + 16 * 512 * 513)
    assert whole.communication_s - part.communication_s == pytest.approx(sent_s)


def test_who_shards_is_known_where_it_is_profiled_alone(traces):
    alone = traces["fsdp2 alone"]
    assert (alone.world_size, alone.is_sharded, sharded_over(alone)) == (1, True, 1)


def test_a_share_of_layers_is_predicted_for_its_own_world_alone(traces):
    one, four = predict_counts(traces["tensor parallel"], resolve_gpu("A100-SXM-80GB"), [1, 4])
    assert one.memory_bytes is None
    assert four.memory_bytes is not None
    assert four.communication_s > 0
    assert "--world 1" in said(one.assumptions)


def test_who_holds_a_part_of_the_model(traces):
    sharded = {name for name, trace in traces.items() if trace.is_sharded}
    assert sharded == {"fsdp2", "fsdp2 of four", "fsdp2 alone", "tensor parallel"}
    assert sharded_over(traces["tensor parallel"]) == 4
    assert [one.count for one in traces["tensor parallel"].collectives] == [1]


def test_the_command_takes_a_world_once(shell, traces):
    script = str(SCRIPTS / "ddp_spawn.py")
    answer = shell.run("profile", script, "--world", "8", "--out", "t.json.gz", "--json")
    assert answer.code == 0, answer
    assert answer.document["trace"]["collectives"][0]["world_size"] == 8
    assert_plain_error(shell.run("predict", "t.json.gz", "--world", "8"), 2, "saved trace", "--world")
    assert_plain_error(shell.run("profile", "--from-kineto", "t.json.gz", "--world", "8"), 2, "--world")
    assert shell.run("profile", script, "--world", "0").code == 2


def test_nothing_is_recommended_for_another_number_of_ranks(shell, traces):
    write_trace(traces["tensor parallel"], shell.folder / "tp.json.gz")
    answer = shell.run("recommend", "tp.json.gz", "--iterations", "1000", "-g", "L4:1")
    assert_plain_error(answer, 4, "--world 1")
    both = shell.run("recommend", "tp.json.gz", "--iterations", "1000", "-g", "L4:1,4", "--json").document
    feasible = {option["num_gpus"]: option["feasible"] for option in both["options"]}
    assert feasible == {1: False, 4: True}


LIGHTNING_DDP = """
import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        return self.layer(batch[0]).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

loader = DataLoader(TensorDataset(torch.zeros(256, 4)), batch_size=8, shuffle=True, num_workers=2)
trainer = L.Trainer(max_epochs=5, accelerator="gpu", devices=2, strategy="ddp", logger=False,
                    enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Model(), loader)
"""


@pytest.mark.skipif(importlib.util.find_spec("lightning") is None, reason="needs lightning")
def test_a_loader_that_lightning_makes_again_keeps_its_batch_size(shell):
    shell.write("train.py", LIGHTNING_DDP)
    answer = shell.run("profile", "train.py", "--world", "2", "--backend", "fake", "--json")
    trace = answer.document["trace"]
    # An epoch's batches are those of both ranks.
    assert [trace[name] for name in ("batch_size", "iterations_per_epoch", "num_workers")] == [8, 32, 2]


ANOTHER_TORCH = """
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import _sharding_prop

del _sharding_prop.detect_fake_mode
dist.init_process_group("nccl")
init_device_mesh("cuda", (2,))
"""


def test_what_a_mesh_lacks_in_this_torch_is_told(shell):
    shell.write("train.py", ANOTHER_TORCH)
    answer = shell.run("profile", "train.py", "--world", "2", "--backend", "fake")
    assert_plain_error(answer, 2, "torch.distributed.tensor._sharding_prop.detect_fake_mode", "'dtensor'")


# As karpathy/nanoGPT does: DDP under torchrun or a single process, batches without a DataLoader.
ACCUMULATION_BY_WORLD = """
import os
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

gradient_accumulation_steps = 8
batch_size, features, max_iters = 16, 64, 20

ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    init_process_group(backend="nccl")
    device = f"cuda:{int(os.environ['LOCAL_RANK'])}"
    torch.cuda.set_device(device)
    world_size = int(os.environ["WORLD_SIZE"])
    assert gradient_accumulation_steps % world_size == 0
    gradient_accumulation_steps //= world_size
else:
    device = "cuda"

model = nn.Sequential(nn.Linear(features, 256), nn.GELU(), nn.Linear(256, 10)).to(device)
if ddp:
    model = DDP(model, device_ids=[int(os.environ["LOCAL_RANK"])])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def get_batch():
    x, y = torch.randn(batch_size, features), torch.randint(10, (batch_size,))
    return x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)


X, Y = get_batch()
for _ in range(max_iters):
    for micro_step in range(gradient_accumulation_steps):
        last = micro_step == gradient_accumulation_steps - 1
        with model.no_sync() if ddp and not last else nullcontext():
            loss = F.cross_entropy(model(X), Y) / gradient_accumulation_steps
        X, Y = get_batch()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
if ddp:
    destroy_process_group()
"""


@pytest.mark.parametrize(("world", "elsewhere"), [(("--world", "4"), (1, 8)), ((), (2, 4))])
def test_accumulation_divided_by_the_world_is_seen(tmp_path, world, elsewhere):
    shell = Shell(folder=tmp_path)
    shell.write("train.py", ACCUMULATION_BY_WORLD)
    assert shell.run("profile", "train.py", *world, "--out", "t.json").code == 0
    trace = read_trace(tmp_path / "t.json")
    assert trace.batch_size is None
    assert (trace.work_elsewhere.world_size, trace.work_elsewhere.accumulation) == elsewhere
    assert seen_scaling(trace) is Scaling.STRONG
    answer = shell.run("recommend", "t.json", "--iterations", "5000", "--gpu", "L4", "--offline", "--json")
    assert answer.document["job"]["scaling"]["source"] == "seen"
    assert {option["iterations"] for option in answer.document["options"]} == {5000}
    held = ("--gpu", "L4:8", "--scaling", "weak")
    weak = shell.run("recommend", "t.json", "--iterations", "5000", *held, "--json")
    assert weak.document["job"]["scaling"]["mode"] == "weak"
    assert {option["iterations"] for option in weak.document["options"]} == {
        5000 * (trace.world_size or 1) // 8
    }


def test_a_batch_a_rank_is_seen_to_be_held(tmp_path):
    shell = Shell(folder=tmp_path)
    script = SCRIPTS / "ddp_torchrun.py"
    assert shell.run("profile", str(script), "--world", "8", "--out", "t.json").code == 0
    trace = read_trace(tmp_path / "t.json")
    assert (trace.work_elsewhere.world_size, trace.work_elsewhere.batch_size) == (1, 32)
    assert seen_scaling(trace) is Scaling.WEAK
