"""A search for the learning rate, then the training
The learning rate range test (L. Smith, 2017) as torch_lr_finder and fastai run it: batches of its own size.
"""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.randn(2048, 128), torch.randint(0, 10, (2048,)))
model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
criterion = nn.CrossEntropyLoss()


def train_step(optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = criterion(model(inputs.to(device)), labels.to(device))
    loss.backward()
    optimizer.step()
    return loss.item()


def range_test(start_lr=1e-7, end_lr=10, num_iter=100):
    before = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), lr=start_lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: (end_lr / start_lr) ** (i / num_iter))
    history, best = [], float("inf")
    for _, (inputs, labels) in zip(range(num_iter), DataLoader(data, batch_size=16, shuffle=True)):
        loss = train_step(optimizer, inputs, labels)
        history.append((loss, schedule.get_last_lr()[0]))
        best = min(best, loss)
        if loss > 5 * best:
            break
        schedule.step()
    model.load_state_dict(before)
    return min(history)[1] / 10


optimizer = torch.optim.AdamW(model.parameters(), lr=range_test())
for epoch in range(5):
    for inputs, labels in DataLoader(data, batch_size=64, shuffle=True):
        loss = train_step(optimizer, inputs, labels)
    print(epoch, loss)
