"""torchvision reference training loop with MetricLogger
pytorch/vision, references/classification: train.py and utils.py, transforms v2, MobileNetV3, FP16, EMA.
"""

import datetime
import time
from collections import defaultdict, deque

import torch
import torchvision
from torch import nn
from torch.utils.data.dataloader import default_collate
from torchvision.transforms import v2


class SmoothedValue:
    def __init__(self, window_size=20, fmt="{median:.4f} ({global_avg:.4f})"):
        self.deque = deque(maxlen=window_size)
        self.total = 0.0
        self.count = 0
        self.fmt = fmt

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    @property
    def median(self):
        return torch.tensor(list(self.deque)).median().item()

    @property
    def global_avg(self):
        return self.total / self.count

    def __str__(self):
        return self.fmt.format(median=self.median, global_avg=self.global_avg, value=self.deque[-1])


class MetricLogger:
    def __init__(self, delimiter="\t"):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **kwargs):
        for k, v in kwargs.items():
            self.meters[k].update(v.item() if isinstance(v, torch.Tensor) else v)

    def log_every(self, iterable, print_freq, header):
        start_time = time.time()
        for i, obj in enumerate(iterable):
            yield obj
            if i % print_freq == 0:
                meters = self.delimiter.join(f"{name}: {meter}" for name, meter in self.meters.items())
                memory = torch.cuda.max_memory_allocated() / 2**20
                print(f"{header} [{i}/{len(iterable)}] {meters} max mem: {memory:.0f}")
        print(f"{header} Total time: {datetime.timedelta(seconds=int(time.time() - start_time))}")


class ExponentialMovingAverage(torch.optim.swa_utils.AveragedModel):
    def __init__(self, model, decay, device="cpu"):
        def ema_avg(avg_model_param, model_param, num_averaged):
            return decay * avg_model_param + (1 - decay) * model_param

        super().__init__(model, device, ema_avg, use_buffers=True)


def accuracy(output, target, topk=(1,)):
    with torch.inference_mode():
        maxk = max(topk)
        batch_size = target.size(0)
        if target.ndim == 2:
            target = target.max(dim=1)[1]
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target[None])
        res = []
        for k in topk:
            correct_k = correct[:k].flatten().sum(dtype=torch.float32)
            res.append(correct_k * (100.0 / batch_size))
        return res


def train_one_epoch(model, criterion, optimizer, data_loader, device, epoch, model_ema, scaler):
    model.train()
    metric_logger = MetricLogger(delimiter="  ")
    header = f"Epoch: [{epoch}]"
    for i, (image, target) in enumerate(metric_logger.log_every(data_loader, 1, header)):
        start_time = time.time()
        image, target = image.to(device), target.to(device)
        with torch.amp.autocast("cuda", enabled=scaler is not None):
            output = model(image)
            loss = criterion(output, target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        if i % 2 == 0:
            model_ema.update_parameters(model)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        batch_size = image.shape[0]
        metric_logger.update(loss=loss.item(), lr=optimizer.param_groups[0]["lr"])
        metric_logger.meters["acc1"].update(acc1.item(), n=batch_size)
        metric_logger.meters["acc5"].update(acc5.item(), n=batch_size)
        metric_logger.meters["img/s"].update(batch_size / (time.time() - start_time))


def main():
    device = torch.device("cuda")
    transform = v2.Compose([
        v2.PILToTensor(), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float, scale=True),
        v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)), v2.ToPureTensor(),
    ])  # fmt: skip
    dataset = torchvision.datasets.FakeData(64, (3, 64, 64), num_classes=10, transform=transform)
    mixup = v2.RandomChoice([v2.MixUp(num_classes=10), v2.CutMix(num_classes=10)])
    data_loader = torch.utils.data.DataLoader(
        dataset, batch_size=8, sampler=torch.utils.data.RandomSampler(dataset), num_workers=4,
        pin_memory=True, collate_fn=lambda batch: mixup(*default_collate(batch)),
    )  # fmt: skip
    model = torchvision.models.get_model("mobilenet_v3_small", weights=None, num_classes=10).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    parameters = torchvision.ops._utils.split_normalization_params(model)
    groups = [{"params": p, "weight_decay": wd} for p, wd in zip(parameters, (0.0, 1e-4)) if p]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True)
    scaler = torch.amp.GradScaler("cuda")
    main_lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=9)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=1)
    lr_scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, main_lr_scheduler], [1])
    model_ema = ExponentialMovingAverage(model, device=device, decay=0.999)
    for epoch in range(3):
        train_one_epoch(model, criterion, optimizer, data_loader, device, epoch, model_ema, scaler)
        lr_scheduler.step()
        torch.save({"model": model.state_dict(), "epoch": epoch}, "checkpoint.pth")


if __name__ == "__main__":
    main()
