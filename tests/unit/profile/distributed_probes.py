"""Probes of the patches for scripts of several processes; the world has 4."""

DISTRIBUTED_PROBES = {
    "process_group": (
        """
import os
import torch.distributed as dist
dist.init_process_group("nccl", device_id=torch.device("cuda:0"))
half = dist.new_group([0, 1], backend="gloo")
other = dist.new_group([2, 3])
tensor = torch.ones(3)
dist.all_reduce(tensor)
result = [dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.get_backend(half), half.size(),
          tensor.tolist(), other is dist.GroupMember.NON_GROUP_MEMBER, os.environ["LOCAL_WORLD_SIZE"]]
dist.barrier()
dist.destroy_process_group()
""",
        [0, 4, "nccl", "gloo", 2, [4.0, 4.0, 4.0], True, "4"],
    ),
    "object_collectives": (
        """
import torch.distributed as dist
dist.init_process_group("gloo", rank=0, world_size=2)
gathered, everywhere, received, scattered = [None] * 2, [None] * 2, [{"a": 1}], [None]
dist.all_gather_object(everywhere, "mine")
dist.gather_object("mine", gathered)
dist.broadcast_object_list(received, src=1)
dist.scatter_object_list(scattered, ["first", "second"])
result = [gathered, everywhere, received, scattered]
""",
        [["mine"] * 2, ["mine"] * 2, [{"a": 1}], ["first"]],
    ),
    "spawning": (
        """
import torch.multiprocessing as mp
def main(rank, *args):
    ran.append([rank, *args])
ran = []
nothing = mp.spawn(main, args=("a", 2), nprocs=2)
context = mp.spawn(main, nprocs=2, join=False)
result = [ran, nothing, context.join()]
""",
        [[[0, "a", 2], [0]], None, True],
    ),
    "distributed_data_parallel": (
        """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(1000, 10).to("cuda"), device_ids=[0])
session.collectives.start_span()
model(torch.zeros(2, 1000)).sum().backward()
result = session.collectives.entries()
""",
        [{"kind": "all_reduce", "num_bytes": 4 * 10_010, "world_size": 4, "count": 1}],
    ),
    "dtensor": (
        """
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
mesh = init_device_mesh("cuda", (4,))
sharded = distribute_tensor(torch.zeros(8, 6, device="cuda"), mesh, [Shard(0)])
total = (sharded * 2).sum()
result = [str(sharded.device), sharded.is_cuda, list(sharded.to_local().shape),
          list(total.full_tensor().shape)]
""",
        ["cuda:0", True, [2, 6], []],
    ),
    "storage": (
        """
tensor = torch.zeros(1000, device="cuda")
before = session.memory.current_bytes
tensor.untyped_storage().resize_(0)
freed = session.memory.current_bytes
tensor.untyped_storage().resize_(4000)
result = [before - freed, session.memory.current_bytes - freed]
""",
        [4096, 4096],
    ),
}

_GROUP = """
import torch.distributed as dist
dist.init_process_group("nccl")
session.collectives.start_span()
session.recorder.start_span()
"""
_DDP = (
    _GROUP
    + """
from torch.nn.parallel import DistributedDataParallel
model = DistributedDataParallel(nn.Linear(4, 8).cuda(), device_ids=[0])
def step():
    model(torch.zeros(2, 4, device="cuda")).sum().backward()
"""
)
_HALF = (
    _DDP
    + """
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
model.register_comm_hook(None, default_hooks.{}_compress_hook)
step()
step()
session.collectives.start_span()
step()
result = session.collectives.entries()
"""
)
COLLECTIVE_PROBES = {
    "SyncBatchNorm": _GROUP
    + """
layer = nn.SyncBatchNorm(6).cuda()
data = torch.zeros(8, 6, 3, 3, device="cuda", dtype=torch.bfloat16, requires_grad=True)
session.mode.assumptions.clear()
layer(data).sum().backward()
shapes = [list(tensor.shape) for tensor in (data.grad, layer.weight.grad, layer.bias.grad)]
result = [shapes, str(data.grad.dtype), session.collectives.entries(), list(session.mode.assumptions)]
""",
    "ZeroRedundancyOptimizer": _DDP
    + """
from torch.distributed.optim import ZeroRedundancyOptimizer
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)
for _ in range(3):
    session.collectives.start_span()
    step()
    optimizer.step()
result = sorted({entry["kind"] for entry in session.collectives.entries()})
""",
    "collectives of tensors": _GROUP
    + """
own, whole = torch.zeros(100, device="cuda"), torch.zeros(400, device="cuda")
parts = list(torch.zeros(4, 100, device="cuda"))
dist.all_reduce(own)
dist.broadcast(own, src=0)
dist.reduce(own, dst=0)
dist.all_gather(parts, own)
dist.all_gather_into_tensor(whole, own)
dist.reduce_scatter(own, parts)
dist.reduce_scatter_tensor(own, whole)
dist.all_to_all(parts, list(torch.zeros(4, 100, device="cuda")))
dist.all_to_all_single(whole, torch.zeros(400, device="cuda"))
dist.scatter(own, parts, src=0)
dist.gather(own, parts, dst=0)
dist.send(own, dst=1)
dist.recv(own, src=1)
dist.barrier()
result = session.collectives.entries()
""",
    "who waits for reductions": _GROUP
    + """
gradient, side = torch.zeros(100, device="cuda"), torch.cuda.Stream()
def awaits(reduce):
    session.collectives.start_span()
    reduce()
    return session.collectives.awaits_reductions
def on(stream, **how):
    with torch.cuda.stream(stream):
        dist.all_reduce(gradient, **how)
result = [awaits(lambda: on(torch.cuda.current_stream())), awaits(lambda: on(None)), awaits(lambda: on(side)),
          awaits(lambda: on(torch.cuda.default_stream(), async_op=True)), awaits(lambda: None),
          awaits(lambda: [dist.all_reduce(gradient[:10]), dist.all_reduce(gradient, async_op=True)])]
""",
    "functional collectives": _GROUP
    + """
import torch.distributed._functional_collectives as functional
tensor, group = torch.zeros(100, device="cuda"), dist.group.WORLD
made = [functional.all_reduce(tensor, "sum", group),
        functional.all_gather_tensor(tensor, 0, group),
        functional.reduce_scatter_tensor(tensor, "sum", 0, group)]
result = [[list((part + 1).shape) for part in made], session.collectives.entries()]
""",
    "collectives on the CPU": """
import torch.distributed as dist
dist.init_process_group("gloo", rank=0, world_size=2)
session.collectives.start_span()
parts = [torch.zeros(2) for _ in range(2)]
dist.all_gather(parts, torch.tensor([1.0, 2.0]))
result = [[part.tolist() for part in parts], session.collectives.entries()]
""",
    "values of collectives": _GROUP
    + """
result = []
for device in ("cpu", "cuda"):
    seven = torch.tensor([7]).to(device)
    parts = [torch.zeros_like(seven) for _ in range(4)]
    whole = torch.zeros(4, dtype=torch.long).to(device)
    views = list(torch.zeros(4, 1, dtype=torch.long).to(device))
    dist.all_gather(parts, seven)
    dist.all_gather_into_tensor(whole, seven)
    dist.all_gather(views, seven)
    total, largest, product = (torch.tensor([7]).to(device) for _ in range(3))
    dist.all_reduce(total)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    dist.broadcast(seven, src=0)
    if device == "cuda":
        dist.all_reduce(product, op=dist.ReduceOp.PRODUCT)
        dist.all_reduce(whole[:2], op=dist.ReduceOp.PRODUCT)
    result.append([torch.cat(parts).tolist(), whole.tolist(), torch.cat(views).tolist(),
                   total.item(), largest.item(), seven.item(), product.item()])
""",
    "operators beside collectives": _GROUP
    + """
tensor = torch.zeros(8, device="cuda")
dist.all_reduce(tensor)
result = [entry["name"] for entry in session.recorder.operators()]
""",
    "future of a collective": _GROUP
    + """
work = dist.all_reduce(torch.zeros(8, device="cuda"), async_op=True)
result = [work.wait(), work.is_completed(), list(work.get_future().value()[0].shape)]
""",
    "collective of a group": _GROUP
    + """
dist.all_reduce(torch.zeros(2, device="cuda"), group=dist.new_group([0, 2]))
result = session.collectives.entries()
""",
    "no_sync": _DDP
    + """
step()
step()  # has its buckets rebuilt
session.collectives.start_span()
with model.no_sync():
    step()
    step()
step()
result = session.collectives.entries()
""",
    "fp16 hook": _HALF.format("fp16"),
    "bf16 hook": _HALF.format("bf16"),
    "memory of FSDP2": _GROUP
    + """
from torch.distributed.fsdp import fully_shard
model = nn.Sequential(*[nn.Linear(512, 512, bias=False) for _ in range(8)]).cuda()
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    session.memory.start_span()
    session.collectives.start_span()
    model(torch.zeros(1, 512, device="cuda")).sum().backward()
    for tensor in model.parameters():
        session.memory.tag(tensor, "parameter")
        session.memory.tag(tensor.grad, "gradient")
    optimizer.step()
    for state in optimizer.state.values():
        for name in ("exp_avg", "exp_avg_sq"):
            session.memory.tag(state[name], "optimizer")
    usage, entries = session.memory.usage(), session.collectives.entries()
    optimizer.zero_grad()
result = [usage, entries, 4 * 512 * 512]
""",
}
