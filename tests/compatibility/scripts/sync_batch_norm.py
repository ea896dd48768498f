"""DistributedDataParallel with SyncBatchNorm
PyTorch docs, "torch.nn.SyncBatchNorm": convert_sync_batchnorm before the model is wrapped.
"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10)
)
model = nn.SyncBatchNorm.convert_sync_batchnorm(model).to(rank)
model = DistributedDataParallel(model, device_ids=[rank])
data = TensorDataset(torch.randn(512, 3, 32, 32), torch.randint(0, 10, (512,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=16, sampler=sampler)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs.to(rank)), labels.to(rank))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
