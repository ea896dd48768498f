"""Two encoders with a contrastive loss (CLIP)
mlfoundations/open_clip's train.py and its loss: learned temperature, logit_scale clamped after the step.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class CLIP(nn.Module):
    def __init__(self, width=64, embed_dim=32, context_length=16, vocab_size=500):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, kernel_size=8, stride=8, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(width) / math.sqrt(width))
        self.positional = nn.Parameter(torch.randn(17, width) / math.sqrt(width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.visual = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.token_embedding = nn.Embedding(vocab_size, width)
        self.text_positional = nn.Parameter(torch.empty(context_length, width))
        self.transformer = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.text_projection = nn.Parameter(torch.empty(width, embed_dim))
        self.proj = nn.Parameter(torch.randn(width, embed_dim) / math.sqrt(width))
        self.logit_scale = nn.Parameter(torch.ones([]) * np.log(1 / 0.07))
        mask = torch.empty(context_length, context_length).fill_(float("-inf")).triu_(1)
        self.register_buffer("attn_mask", mask, persistent=False)
        nn.init.normal_(self.text_positional, std=0.01)
        nn.init.normal_(self.text_projection, std=width**-0.5)

    def encode_image(self, image):
        x = self.conv1(image)
        x = x.reshape(x.shape[0], x.shape[1], -1).permute(0, 2, 1)
        cls = self.class_embedding.to(x.dtype) + torch.zeros(x.shape[0], 1, x.shape[-1], device=x.device)
        x = torch.cat([cls, x], dim=1) + self.positional
        return F.normalize(self.visual(x)[:, 0] @ self.proj, dim=-1)

    def encode_text(self, text):
        x = self.token_embedding(text) + self.text_positional
        x = self.transformer(x, mask=self.attn_mask)
        x = x[torch.arange(x.shape[0]), text.argmax(dim=-1)] @ self.text_projection
        return F.normalize(x, dim=-1)

    def forward(self, image, text):
        return self.encode_image(image), self.encode_text(text), self.logit_scale.exp()


device = torch.device("cuda:0")
model = CLIP().to(device)
exclude = lambda n, p: p.ndim < 2 or "bn" in n or "ln" in n or "bias" in n or "logit_scale" in n
named_parameters = list(model.named_parameters())
optimizer = torch.optim.AdamW(
    [
        {"params": [p for n, p in named_parameters if exclude(n, p)], "weight_decay": 0.0},
        {"params": [p for n, p in named_parameters if not exclude(n, p)], "weight_decay": 0.2},
    ],
    lr=5e-4, betas=(0.9, 0.98), eps=1e-6,
)  # fmt: skip
pairs = TensorDataset(torch.rand(256, 3, 32, 32), torch.randint(500, (256, 16)))
dataloader = DataLoader(pairs, batch_size=32, shuffle=True, num_workers=2, drop_last=True)
for epoch in range(2):
    model.train()
    for images, texts in dataloader:
        images = images.to(device=device, dtype=torch.float32, non_blocking=True)
        texts = texts.to(device=device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda", dtype=torch.bfloat16):
            image_features, text_features, logit_scale = model(images, texts)
            logits_per_image = logit_scale * image_features @ text_features.T
            labels = torch.arange(logits_per_image.shape[0], device=device, dtype=torch.long)
            loss = (
                F.cross_entropy(logits_per_image, labels) + F.cross_entropy(logits_per_image.T, labels)
            ) / 2
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, math.log(100))
        print(f"Logit Scale: {logit_scale.item():.3f} Loss: {loss.item():.3f}")
