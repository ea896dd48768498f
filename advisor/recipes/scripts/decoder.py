"""A decoder as Llama, Mistral and Qwen 2.5 have it; parameters are named as in their published weights."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

# Logits of so many tokens at a time: those of a large vocabulary would take more memory than all else.
LOSS_CHUNK = 1024


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, heads = config["hidden_size"], config["num_attention_heads"]
        self.size = config.get("head_dim") or width // heads
        key_width = self.size * config.get("num_key_value_heads", heads)
        bias = config.get("attention_bias", False)
        self.q_proj = nn.Linear(width, heads * self.size, bias=bias)
        self.k_proj = nn.Linear(width, key_width, bias=bias)
        self.v_proj = nn.Linear(width, key_width, bias=bias)
        self.o_proj = nn.Linear(heads * self.size, width, bias=False)

    def forward(self, x, cos, sin):
        q, k, v = (
            project(x).unflatten(-1, (-1, self.size)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = (part * cos + rotated(part) * sin for part in (q, k))
        # Fewer heads of keys than of queries: each serves a group.
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=k.shape[1] < q.shape[1])
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


def rotated(x):
    left, right = x.chunk(2, dim=-1)
    return torch.cat([-right, left], dim=-1)


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, hidden = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, epsilon = config["hidden_size"], config.get("rms_norm_eps", 1e-5)
        self.input_layernorm = nn.RMSNorm(width, eps=epsilon)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = nn.RMSNorm(width, eps=epsilon)
        self.mlp = MLP(config)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, config, checkpointing):
        super().__init__()
        width, vocabulary = config["hidden_size"], config["vocab_size"]
        self.checkpointing = checkpointing
        self.theta = config.get("rope_theta", 10_000.0)
        self.size = config.get("head_dim") or width // config["num_attention_heads"]
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = nn.RMSNorm(width, eps=config.get("rms_norm_eps", 1e-5))
        is_tied = config.get("tie_word_embeddings", False)
        self.lm_head = None if is_tied else nn.Linear(width, vocabulary, bias=False)

    def reset_parameters(self):
        nn.init.normal_(self.embed_tokens.weight, std=0.02)

    def rotation(self, length, like):
        steps = torch.arange(0, self.size, 2, device=like.device) / self.size
        angles = torch.arange(length, device=like.device)[:, None] / self.theta**steps
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos().to(like.dtype), angles.sin().to(like.dtype)

    def forward(self, tokens, targets):
        """The mean loss of the batch."""
        x = self.embed_tokens(tokens)
        cos, sin = self.rotation(tokens.shape[1], x)
        for layer in self.layers:
            if self.checkpointing:
                x = checkpoint(layer, x, cos, sin, use_reentrant=False)
            else:
                x = layer(x, cos, sin)
        rows, targets = self.norm(x).flatten(0, 1).split(LOSS_CHUNK), targets.flatten()
        losses = [
            checkpoint(self.loss_sum, *part, use_reentrant=False)
            for part in zip(rows, targets.split(LOSS_CHUNK), strict=True)
        ]
        return torch.stack(losses).sum() / targets.numel()

    def loss_sum(self, rows, targets):
        logits = self.lm_head(rows) if self.lm_head else F.linear(rows, self.embed_tokens.weight)
        return F.cross_entropy(logits.float(), targets, reduction="sum")
