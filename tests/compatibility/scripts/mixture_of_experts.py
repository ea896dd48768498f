"""Mixture of experts with top-k routing
transformers' MixtralSparseMoeBlock and lucidrains' routing by index_add, with a load-balancing loss.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseMoeBlock(nn.Module):
    def __init__(self, dim=64, hidden=128, num_experts=4, top_k=2):
        super().__init__()
        self.num_experts, self.top_k = num_experts, top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(Expert(dim, hidden) for _ in range(num_experts))

    def forward(self, hidden_states):
        batch_size, sequence_length, hidden_dim = hidden_states.shape
        hidden_states = hidden_states.view(-1, hidden_dim)
        router_logits = self.gate(hidden_states)
        routing_weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        routing_weights, selected_experts = torch.topk(routing_weights, self.top_k, dim=-1)
        routing_weights /= routing_weights.sum(dim=-1, keepdim=True)
        routing_weights = routing_weights.to(hidden_states.dtype)
        final_hidden_states = torch.zeros_like(hidden_states)
        expert_mask = F.one_hot(selected_experts, num_classes=self.num_experts).permute(2, 1, 0)
        for expert_idx in range(self.num_experts):
            idx, top_x = torch.where(expert_mask[expert_idx])
            current_state = hidden_states[None, top_x].reshape(-1, hidden_dim)
            current = self.experts[expert_idx](current_state) * routing_weights[top_x, idx, None]
            final_hidden_states.index_add_(0, top_x, current.to(hidden_states.dtype))
        density = expert_mask.float().mean(dim=(1, 2))
        balance = (density * router_logits.softmax(-1).mean(0)).sum() * self.num_experts
        return final_hidden_states.view(batch_size, sequence_length, hidden_dim), balance


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(500, 64)
        self.blocks = nn.ModuleList(SparseMoeBlock() for _ in range(2))
        self.norms = nn.ModuleList(nn.RMSNorm(64) for _ in range(2))
        self.head = nn.Linear(64, 500)

    def forward(self, tokens):
        x, balance = self.embedding(tokens), 0.0
        for norm, block in zip(self.norms, self.blocks):
            y, loss = block(norm(x))
            x, balance = x + y, balance + loss
        return self.head(x), balance


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
loader = DataLoader(TensorDataset(torch.randint(500, (96, 33))), batch_size=8)
for _ in range(2):
    for (tokens,) in loader:
        tokens = tokens.cuda()
        logits, balance = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()) + 0.02 * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
