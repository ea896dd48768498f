"""Six small models, whole in structure, and one training step of each; imported by the scripts beside."""

import itertools

import torch
from torch import nn
from torch.nn import functional


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, 2, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, 2, bias=False)

    def forward(self, x):
        hidden = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(hidden)) + self.shortcut(x))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.project(x).chunk(3, -1)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class TransformerLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.second_norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.feed(self.second_norm(x))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 128)
        self.layers = nn.Sequential(*[TransformerLayer(128, 4) for _ in range(3)])
        self.head = nn.Linear(128, 1000)

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), nn.ReLU())
        self.bottom = nn.Sequential(nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU())
        self.up = nn.ConvTranspose2d(32, 16, 2, 2)
        self.out = nn.Conv2d(32, 1, 1)

    def forward(self, x):
        fine = self.down(x)
        return self.out(torch.cat([fine, self.up(self.bottom(fine))], 1))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 96, 8, 8)
        self.layers = nn.Sequential(*[TransformerLayer(96, 4) for _ in range(3)])
        self.head = nn.Linear(96, 10)

    def forward(self, x):
        return self.head(self.layers(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(5000, 32) for _ in range(4)])
        self.top = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x):
        return self.top(torch.cat([table(x[:, i]) for i, table in enumerate(self.tables)], 1))


def perceptron():
    widths = (256, 1024, 1024, 10)
    layers = [part for a, b in itertools.pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def residual_network():
    blocks = [ResidualBlock(16, 32), ResidualBlock(32, 64)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(64, 10))  # fmt: skip


# Name: model, shape and dtype of a batch, optimizer.
MODELS = {
    "perceptron": (perceptron, (64, 256), torch.float32, "adamw"),
    "residual network": (residual_network, (8, 3, 64, 64), torch.float32, "sgd"),
    "language model": (LanguageModel, (4, 64), torch.int64, "adamw"),
    "u-net": (UNet, (4, 3, 64, 64), torch.float32, "sgd"),
    "vision transformer": (VisionTransformer, (8, 3, 64, 64), torch.float32, "adamw"),
    "recommender": (Recommender, (64, 4), torch.int64, "sgd"),
}


def training(name, device):
    """A model, its optimizer, and a function that makes one step."""
    make, shape, dtype, kind = MODELS[name]
    model = make().to(device)
    # Lists of tensors on both devices: on a CPU alone torch would update one by one, with other temporaries.
    if kind == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=True)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)

    def step():
        optimizer.zero_grad()
        loss = model(torch.zeros(shape, dtype=dtype, device=device)).pow(2).mean()
        loss.backward()
        optimizer.step()

    return model, optimizer, step
