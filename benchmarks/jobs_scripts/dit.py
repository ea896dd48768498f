"""Train DiT-XL/2 on encoded images of 256 pixels, in bfloat16 under autocast.

python dit.py --batch-size 32
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

WIDTH, HEADS, LAYERS, PATCH, SIDE = 1152, 16, 28, 2, 32


class Latents(Dataset):
    """ImageNet, encoded by an autoencoder: four channels of 32 x 32."""

    def __len__(self):
        return 1_281_167

    def __getitem__(self, index):
        return torch.randn(4, SIDE, SIDE), index % 1000


class Block(nn.Module):
    """A transformer's layer whose norms are scaled, shifted and gated by the step and the class."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH, elementwise_affine=False) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 6 * WIDTH))

    def forward(self, x, condition):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(condition)[:, None].chunk(6, dim=-1)
        parts = self.qkv(self.norm1(x) * (1 + scale1) + shift1)
        parts = parts.unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + gate1 * self.out(F.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2))
        return x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)


class DiT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(4, WIDTH, PATCH, PATCH)
        self.places = nn.Parameter(torch.zeros(1, (SIDE // PATCH) ** 2, WIDTH))
        self.step = nn.Sequential(nn.Linear(256, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.label = nn.Embedding(1001, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.last = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, PATCH * PATCH * 8)

    def forward(self, images, waves, labels):
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        condition = self.step(waves) + self.label(labels)
        for block in self.blocks:
            x = block(x, condition)
        return self.last(self.norm(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()

    model, average = DiT().to("cuda"), DiT().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0, fused=True)
    loader = DataLoader(Latents(), args.batch_size, shuffle=True, num_workers=4, drop_last=True)
    for images, labels in loader:
        images, labels = images.to("cuda"), labels.to("cuda")
        waves = torch.randn(len(images), 256, device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            patches = model(images + torch.randn_like(images), waves, labels)
            loss = F.mse_loss(patches[..., :16].flatten(1), images.flatten(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1e-4)


if __name__ == "__main__":
    main()
