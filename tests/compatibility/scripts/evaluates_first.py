"""A whole validation before the first step
pytorch/examples, mnist/main.py: its network, Adadelta and test(), here run before training too.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
train = TensorDataset(torch.randn(20_000, 1, 28, 28), torch.randint(10, (20_000,)))
val = TensorDataset(torch.randn(32_000, 1, 28, 28), torch.randint(10, (32_000,)))
train_loader = DataLoader(train, batch_size=64, shuffle=True)
val_loader = DataLoader(val, batch_size=64)
model = nn.Sequential(
    nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10),
).to(device)  # fmt: skip
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)


@torch.no_grad()
def evaluate():
    model.eval()
    loss_sum, correct, outputs = 0.0, 0, []
    for images, labels in val_loader:
        images, labels = images.to(device), labels.to(device)
        output = model(images)
        loss_sum += nn.functional.cross_entropy(output, labels, reduction="sum").item()
        correct += output.argmax(1).eq(labels).sum().item()
        outputs.append(output.cpu())
    scores = torch.cat(outputs).softmax(1)
    model.train()
    return loss_sum / len(val_loader), correct / len(val_loader.dataset), scores


print("before training", evaluate()[:2])
for epoch in range(10):
    for images, labels in train_loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, evaluate()[:2])
