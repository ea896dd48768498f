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
result = [dist.get_rank(), dist.get_world_size(), dist.get_backend(), half.size(), tensor.tolist(),
          other is dist.GroupMember.NON_GROUP_MEMBER, os.environ["LOCAL_WORLD_SIZE"]]
dist.barrier()
dist.destroy_process_group()
""",
        [0, 4, "nccl", 2, [1.0, 1.0, 1.0], True, "4"],
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
