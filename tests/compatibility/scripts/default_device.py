"""torch.set_default_device("cuda")
PyTorch recipes, "Changing default device": no .to() anywhere; the DataLoader's generator is on the GPU.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_default_device("cuda")
model = nn.Sequential(nn.Embedding(100, 32), nn.Flatten(), nn.Linear(320, 64), nn.ReLU(), nn.Linear(64, 5))
print(next(model.parameters()).device)
inputs, targets = torch.randint(0, 100, (512, 10)), torch.randint(0, 5, (512,))
loader = DataLoader(
    TensorDataset(inputs, targets), batch_size=64, shuffle=True, generator=torch.Generator(device="cuda")
)
weights = torch.tensor([1.0, 2.0, 1.0, 1.0, 0.5])
criterion = nn.CrossEntropyLoss(weight=weights)
optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, float(loss))
