"""A U-Net with attention to a text, as Stable Diffusion 1.x has it."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Residual(nn.Module):
    def __init__(self, inputs, outputs, time_width):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(32, inputs), nn.GroupNorm(32, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(time_width, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    def __init__(self, width, context_width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(context_width, width, bias=False)
        self.value = nn.Linear(context_width, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x, context):
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query(x), self.key(context), self.value(context))
        )
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, width, context_width, heads):
        super().__init__()
        self.norm = nn.GroupNorm(32, width)
        self.enter, self.leave = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.self_attention = Attention(width, width, heads)
        self.cross_attention = Attention(width, context_width, heads)
        self.gate, self.down = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, image, context):
        x = self.enter(self.norm(image)).flatten(2).transpose(1, 2)
        normed = self.norm1(x)
        x = x + self.self_attention(normed, normed)
        x = x + self.cross_attention(self.norm2(x), context)
        values, gates = self.gate(self.norm3(x)).chunk(2, dim=-1)
        x = x + self.down(values * F.gelu(gates))
        return image + self.leave(x.transpose(1, 2).unflatten(2, image.shape[2:]))


class Block(nn.Module):
    """A residual, attention where it is wanted, and a change of resolution."""

    def __init__(self, inputs, outputs, config, attends, resize=None):
        super().__init__()
        self.residual = Residual(inputs, outputs, 4 * config["channels"][0])
        self.attention = Transformer(outputs, config["context_width"], config["heads"]) if attends else None
        self.resize = resize

    def forward(self, x, time, context):
        x = self.residual(x, time)
        x = x if self.attention is None else self.attention(x, context)
        return x if self.resize is None else self.resize(x)


class UNet(nn.Module):
    def __init__(self, config, checkpointing):
        super().__init__()
        channels, self.checkpointing = config["channels"], checkpointing
        self.first = channels[0]
        self.time = nn.Sequential(
            nn.Linear(self.first, 4 * self.first), nn.SiLU(), nn.Linear(4 * self.first, 4 * self.first)
        )
        self.enter = nn.Conv2d(config["latent_channels"], self.first, 3, padding=1)
        last, skips, width = len(channels) - 1, [self.first], self.first
        self.down, self.halve = nn.ModuleList(), nn.ModuleList()
        for level, outputs in enumerate(channels):
            for _ in range(2):
                self.down.append(Block(width, outputs, config, level < last))
                width = outputs
                skips.append(width)
            if level < last:
                self.halve.append(nn.Conv2d(width, width, 3, stride=2, padding=1))
                skips.append(width)
        self.middle = nn.ModuleList([Block(width, width, config, True), Block(width, width, config, False)])
        self.up = nn.ModuleList()
        for level, outputs in reversed(list(enumerate(channels))):
            for position in range(3):
                resize = None
                if level and position == 2:
                    resize = nn.Sequential(
                        nn.Upsample(scale_factor=2), nn.Conv2d(outputs, outputs, 3, padding=1)
                    )
                self.up.append(Block(width + skips.pop(), outputs, config, level < last, resize))
                width = outputs
        self.norm, self.leave = (
            nn.GroupNorm(32, width),
            nn.Conv2d(width, config["latent_channels"], 3, padding=1),
        )

    @property
    def layers(self):
        """What is sharded and recomputed as one."""
        return [*self.down, *self.middle, *self.up]

    def run(self, block, *inputs):
        return checkpoint(block, *inputs, use_reentrant=False) if self.checkpointing else block(*inputs)

    def noise(self, x, step, context):
        """The noise in an image at a step, as the network sees it."""
        rates = torch.exp(
            -math.log(10_000) * torch.arange(self.first // 2, device=x.device) / (self.first // 2)
        )
        angles = step[:, None] * rates
        time = self.time(torch.cat([angles.cos(), angles.sin()], dim=-1))
        x = self.enter(x)
        skips = [x]
        for position, block in enumerate(self.down):
            x = self.run(block, x, time, context)
            skips.append(x)
            if position % 2 and position // 2 < len(self.halve):
                x = self.halve[position // 2](x)
                skips.append(x)
        for block in self.middle:
            x = self.run(block, x, time, context)
        for block in self.up:
            x = self.run(block, torch.cat([x, skips.pop()], dim=1), time, context)
        return self.leave(F.silu(self.norm(x)))

    def forward(self, latents, context):
        """The mean loss of the batch: how far the noise is off that was put on the images."""
        step = torch.randint(1000, (len(latents),), device=latents.device)
        share = torch.cos(step / 1000 * math.pi / 2)[:, None, None, None]
        noise = torch.randn_like(latents)
        noisy = share * latents + (1 - share**2).sqrt() * noise
        return F.mse_loss(self.noise(noisy, step, context).float(), noise)
