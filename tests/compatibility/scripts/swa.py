"""Clipping, schedules, SWA and EMA
PyTorch docs, torch.optim.swa_utils: AveragedModel, SWALR, update_bn, OneCycleLR per batch.
"""

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(96, 20), torch.randint(3, (96,))), batch_size=16)
model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 3)).cuda()
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
swa_model = AveragedModel(model)
ema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=300)
swa_start = 2
swa_scheduler = SWALR(optimizer, swa_lr=0.05)
for epoch in range(4):
    for input, target in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(input.cuda()), target.cuda())
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=2.0, error_if_nonfinite=False)
        optimizer.step()
        ema_model.update_parameters(model)
        if epoch < swa_start:
            scheduler.step()
    if epoch >= swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    print(epoch, loss.item(), norm.item())
update_bn(loader, swa_model, device=torch.device("cuda"))
