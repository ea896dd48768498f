"""with torch.device("cuda") and meta initialisation
PyTorch docs, torch.device as a context manager; modules built on the device, a seed, a small ViT block.
"""

import torch
from torch import nn

torch.manual_seed(0)
with torch.device("cuda"):
    model = nn.Sequential(
        nn.Linear(48, 96), nn.TransformerEncoderLayer(96, 4, 192, batch_first=True), nn.Linear(96, 8)
    )
    tokens = torch.randn(16, 20, 48)
    labels = torch.randint(8, (16, 20))
    scale = torch.as_tensor([0.5])
    positions = torch.arange(20)
with torch.device("meta"):
    sketch = nn.Linear(10_000, 10_000)
assert sketch.weight.is_meta
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
assert positions.device == torch.device("cuda:0")
for step in range(10):
    loss = nn.functional.cross_entropy(model(tokens * scale).transpose(1, 2), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())
