"""An evaluation between any two steps, and the model exported before training
PyTorch docs, torch.export and torch.inference_mode; the validation step of any loop that counts steps.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

train = TensorDataset(torch.randn(640, 3, 16, 16), torch.randint(10, (640,)))
val = TensorDataset(torch.randn(200, 3, 16, 16), torch.randint(10, (200,)))
train_loader = DataLoader(train, batch_size=32, shuffle=True)
val_loader = DataLoader(val, batch_size=50)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
program = torch.export.export(model, (torch.randn(2, 3, 16, 16, device="cuda"),))
torch.export.save(program, "model.pt2")
assert "convolution" in str(program.graph) or "conv2d" in str(program.graph)


@torch.inference_mode()
def evaluate():
    model.eval()
    losses = [nn.functional.cross_entropy(model(x.cuda()), y.cuda()).item() for x, y in val_loader]
    model.train()
    return sum(losses) / len(losses)


for epoch in range(10):
    for images, labels in train_loader:
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item(), evaluate())
