"""Parametrizations: weight norm, spectral norm, orthogonal
PyTorch tutorials, "Parametrizations", and the docs of torch.nn.utils.parametrizations.
"""

import torch
import torch.nn as nn
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm
from torch.utils.data import DataLoader, TensorDataset


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = spectral_norm(nn.Conv2d(3, 16, 3))
        self.temporal = weight_norm(nn.Conv1d(16, 32, 3), name="weight")
        self.mixing = orthogonal(nn.Linear(32, 32))
        self.square = nn.Linear(32, 32)
        parametrize.register_parametrization(self.square, "weight", Symmetric())
        self.head = torch.nn.utils.spectral_norm(nn.Linear(32, 10))

    def forward(self, x):
        x = torch.relu(self.conv(x)).flatten(2)
        x = torch.relu(self.temporal(x)).mean(-1)
        with parametrize.cached():
            x = self.square(self.mixing(x))
        return self.head(x)


model = Model().to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4, betas=(0.0, 0.9))
loader = DataLoader(TensorDataset(torch.rand(80, 3, 16, 16), torch.randint(10, (80,))), batch_size=8)
for images, labels in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images.to("cuda")), labels.to("cuda"))
    loss.backward()
    optimizer.step()
    print(loss.item())
