"""Diffusion U-Net, noise prediction with EMA
Hugging Face's "The annotated diffusion model" and diffusers' training example: DDPM with time embedding.
"""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

timesteps = 200


class SinusoidalPositionEmbeddings(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, time):
        half_dim = self.dim // 2
        embeddings = math.log(10000) / (half_dim - 1)
        embeddings = torch.exp(torch.arange(half_dim, device=time.device) * -embeddings)
        embeddings = time[:, None] * embeddings[None, :]
        return torch.cat((embeddings.sin(), embeddings.cos()), dim=-1)


class ResnetBlock(nn.Module):
    def __init__(self, dim, dim_out, time_emb_dim):
        super().__init__()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_emb_dim, dim_out * 2))
        self.conv1 = nn.Conv2d(dim, dim_out, 3, padding=1)
        self.norm = nn.GroupNorm(4, dim_out)
        self.conv2 = nn.Conv2d(dim_out, dim_out, 3, padding=1)
        self.res_conv = nn.Conv2d(dim, dim_out, 1) if dim != dim_out else nn.Identity()

    def forward(self, x, time_emb):
        scale, shift = self.mlp(time_emb)[:, :, None, None].chunk(2, dim=1)
        h = F.silu(self.norm(self.conv1(x)) * (scale + 1) + shift)
        return self.conv2(h) + self.res_conv(x)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=16):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(1, dim)
        self.to_qkv = nn.Conv2d(dim, heads * dim_head * 3, 1, bias=False)
        self.to_out = nn.Conv2d(heads * dim_head, dim, 1)

    def forward(self, x):
        b, _, h, w = x.shape
        q, k, v = (t.view(b, self.heads, -1, h * w).mT for t in self.to_qkv(self.norm(x)).chunk(3, dim=1))
        out = F.scaled_dot_product_attention(q, k, v)
        return x + self.to_out(out.mT.reshape(b, -1, h, w))


class Unet(nn.Module):
    def __init__(self, dim=16, channels=3):
        super().__init__()
        self.init_conv = nn.Conv2d(channels, dim, 7, padding=3)
        time_dim = dim * 4
        self.time_mlp = nn.Sequential(
            SinusoidalPositionEmbeddings(dim),
            nn.Linear(dim, time_dim),
            nn.GELU(),
            nn.Linear(time_dim, time_dim),
        )
        self.down1 = ResnetBlock(dim, dim, time_dim)
        self.pool = nn.Conv2d(dim, dim * 2, 4, 2, 1)
        self.mid = ResnetBlock(dim * 2, dim * 2, time_dim)
        self.attention = Attention(dim * 2)
        self.unpool = nn.Sequential(
            nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(dim * 2, dim, 3, 1, 1)
        )
        self.up1 = ResnetBlock(dim * 2, dim, time_dim)
        self.final_conv = nn.Conv2d(dim, channels, 1)

    def forward(self, x, time):
        x = self.init_conv(x)
        t = self.time_mlp(time)
        skip = self.down1(x, t)
        x = self.attention(self.mid(self.pool(skip), t))
        x = self.up1(torch.cat((self.unpool(x), skip), dim=1), t)
        return self.final_conv(x)


betas = torch.linspace(0.0001, 0.02, timesteps)
alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)


def extract(a, t, x_shape):
    out = a.gather(-1, t.cpu())
    return out.reshape(t.shape[0], *((1,) * (len(x_shape) - 1))).to(t.device)


def q_sample(x_start, t, noise):
    mean = extract(alphas_cumprod.sqrt(), t, x_start.shape) * x_start
    return mean + extract((1.0 - alphas_cumprod).sqrt(), t, x_start.shape) * noise


device = "cuda" if torch.cuda.is_available() else "cpu"
model = Unet().to(device)
ema_model = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
images = TensorDataset(torch.rand(160, 3, 32, 32))
dataloader = DataLoader(images, batch_size=16, shuffle=True)
for epoch in range(2):
    for step, (batch,) in enumerate(dataloader):
        optimizer.zero_grad()
        batch = batch.to(device)
        t = torch.randint(0, timesteps, (batch.shape[0],), device=device).long()
        noise = torch.randn_like(batch)
        predicted_noise = model(q_sample(batch, t, noise), t)
        loss = F.smooth_l1_loss(noise, predicted_noise)
        if step % 100 == 0:
            print("Loss:", loss.item())
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for shadow, parameter in zip(ema_model.parameters(), model.parameters()):
                shadow.lerp_(parameter, 1 - 0.995)
