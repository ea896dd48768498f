"""FlexAttention: a compiled kernel for a causal window
PyTorch blog, "FlexAttention: The Flexibility of PyTorch with the Performance of FlashAttention".
"""

import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

BATCH, HEADS, LENGTH, WIDTH, WINDOW = 2, 4, 256, 128, 64


def sliding_window_causal(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx <= WINDOW)


block_mask = create_block_mask(
    sliding_window_causal, B=None, H=None, Q_LEN=LENGTH, KV_LEN=LENGTH, device="cuda"
)
flex_attention = torch.compile(flex_attention)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        heads = (part.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        attended = flex_attention(*heads, block_mask=block_mask)
        return self.out(attended.transpose(1, 2).reshape(x.shape))


model = Attention().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(100):
    x = torch.randn(BATCH, LENGTH, WIDTH, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = (model(x) - x).square().mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
