"""Tensor parallelism by parallelize_module
pytorch/examples, distributed/tensor_parallelism/tensor_parallel_example.py: by columns, then by rows.
"""

import os

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.in_proj = nn.Linear(512, 2048)
        self.relu = nn.ReLU()
        self.out_proj = nn.Linear(2048, 512)

    def forward(self, x):
        return self.out_proj(self.relu(self.in_proj(x)))


world_size = int(os.environ["WORLD_SIZE"])
device_mesh = init_device_mesh(device_type="cuda", mesh_shape=(world_size,))
tp_model = parallelize_module(
    module=ToyModel().to("cuda"),
    device_mesh=device_mesh,
    parallelize_plan={"in_proj": ColwiseParallel(), "out_proj": RowwiseParallel()},
)
optimizer = torch.optim.AdamW(tp_model.parameters(), lr=0.25, foreach=True)
for i in range(10):
    torch.manual_seed(i)
    inp = torch.rand(20, 512, device="cuda")
    output = tp_model(inp)
    output.sum().backward()
    optimizer.step()
