"""Semi-supervised: two loaders side by side
In the manner of Mean Teacher, after no library: zip(itertools.cycle(labelled), unlabelled), one to validate.
"""

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

labelled = DataLoader(TensorDataset(torch.randn(400, 32), torch.randint(4, (400,))), 8, shuffle=True)
unlabelled = DataLoader(TensorDataset(torch.randn(9000, 32)), 56, shuffle=True, drop_last=True)
validation = DataLoader(TensorDataset(torch.randn(1000, 32), torch.randint(4, (1000,))), 100)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 4)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
for epoch in range(100):
    model.train()
    for (x, y), (u,) in zip(itertools.cycle(labelled), unlabelled):
        x, y, u = x.cuda(), y.cuda(), u.cuda()
        with torch.no_grad():
            guess = model(u).softmax(1)
        loss = nn.functional.cross_entropy(model(x), y) + (model(u).softmax(1) - guess).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        correct = sum((model(x.cuda()).argmax(1).cpu() == y).sum() for x, y in validation)
    print(epoch, int(correct) / 1000)
