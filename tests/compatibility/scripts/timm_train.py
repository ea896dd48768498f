"""timm model, optimizer, schedule, scaler and EMA
timm's train.py and docs, "Training": Mixup, label smoothing, NativeScaler, ModelEmaV2, cosine schedule.
"""

import timm
import timm.optim
import timm.scheduler
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.utils import AverageMeter, ModelEmaV2, NativeScaler
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
model = timm.create_model("resnet18", pretrained=False, num_classes=10, drop_path_rate=0.1)
model = model.to(device=device, memory_format=torch.channels_last)
optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
scheduler = timm.scheduler.CosineLRScheduler(optimizer, t_initial=10, warmup_t=2, warmup_lr_init=1e-5)
model_ema = ModelEmaV2(model, decay=0.9998)
loss_scaler = NativeScaler()
mixup_fn = Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=10)
train_loss_fn = SoftTargetCrossEntropy().to(device)
data = TensorDataset(torch.rand(96, 3, 64, 64), torch.randint(10, (96,)))
loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True, num_workers=4)
losses_m = AverageMeter()
for epoch in range(2):
    model.train()
    num_updates = epoch * len(loader)
    for input, target in loader:
        input, target = input.to(device), target.to(device)
        input, target = mixup_fn(input, target)
        input = input.contiguous(memory_format=torch.channels_last)
        with torch.amp.autocast("cuda"):
            loss = train_loss_fn(model(input), target)
        optimizer.zero_grad()
        loss_scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters())
        model_ema.update(model)
        torch.cuda.synchronize()
        losses_m.update(loss.item(), input.size(0))
        num_updates += 1
        scheduler.step_update(num_updates=num_updates, metric=losses_m.avg)
    scheduler.step(epoch + 1)
