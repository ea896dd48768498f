"""An endless stream of batches, steps counted instead of epochs
PyTorch's documentation of torch.utils.data: an IterableDataset without a length, next() in the loop.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        generator = torch.Generator().manual_seed(0)
        while True:
            tokens = torch.randint(1000, (129,), generator=generator)
            yield {"input_ids": tokens[:-1], "labels": tokens[1:], "text": "not a tensor"}


model = nn.Sequential(nn.Embedding(1000, 64), nn.Linear(64, 1000)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batches = iter(DataLoader(Stream(), batch_size=32, num_workers=1))
for step in range(10_000):
    batch = next(batches)
    logits = model(batch["input_ids"].cuda())
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].cuda().flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
