"""Batches that are accumulated over a warm-up, from a loader that never ends (YOLO)
ultralytics/ultralytics, engine/trainer.py and data/build.py: InfiniteDataLoader, nominal batch size, EMA.
"""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return {"img": torch.zeros(3, 32, 32, dtype=torch.uint8), "cls": torch.tensor(index % 10)}


class RepeatSampler:
    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from iter(self.sampler)


class InfiniteDataLoader(DataLoader):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "batch_sampler", RepeatSampler(self.batch_sampler))
        self.iterator = super().__iter__()

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        for _ in range(len(self)):
            yield next(self.iterator)

    def reset(self):
        self.iterator = self._get_iterator()


batch_size, nbs, epochs = 16, 64, 100
device = torch.device("cuda")
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.SiLU(), nn.Flatten(), nn.Linear(4096, 10)
).to(device)
ema = copy.deepcopy(model).eval()
loader = InfiniteDataLoader(Images(), batch_size=batch_size, shuffle=True, num_workers=4, pin_memory=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
scaler = torch.amp.GradScaler("cuda")
accumulate = max(round(nbs / batch_size), 1)
num_batches, last_step = len(loader), -1
warm_up = max(3 * num_batches, 100)
loader.reset()  # as it does for the last epochs, without mosaics
for epoch in range(epochs):
    for i, batch in enumerate(loader):
        step = i + num_batches * epoch
        if step <= warm_up:
            share = step / warm_up
            accumulate = max(1, round(1 + share * (nbs / batch_size - 1)))
            for group in optimizer.param_groups:
                group["lr"] = share * 0.01
        with torch.autocast("cuda"):
            images = batch["img"].to(device, non_blocking=True).float() / 255
            loss = nn.functional.cross_entropy(model(images), batch["cls"].to(device))
        scaler.scale(loss).backward()
        if step - last_step >= accumulate:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=10.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            last_step = step
            with torch.no_grad():
                for average, weight in zip(ema.parameters(), model.parameters(), strict=True):
                    average.lerp_(weight, 0.001)
