"""Llama from a configuration, BF16 weights
transformers docs, "Llama": grouped-query attention, SDPA, gradient checkpointing, a raw loop.
"""

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=1000, hidden_size=64, intermediate_size=176, num_hidden_layers=2, num_attention_heads=8,
    num_key_value_heads=2, max_position_embeddings=128, attn_implementation="sdpa",
)  # fmt: skip
model = LlamaForCausalLM(config).to(device="cuda", dtype=torch.bfloat16)
model.gradient_checkpointing_enable()
model.train()
print(f"{model.num_parameters():,} parameters")
loader = DataLoader(TensorDataset(torch.randint(1000, (80, 128))), batch_size=4, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
for step, (input_ids,) in enumerate(loader):
    input_ids = input_ids.to(model.device)
    outputs = model(input_ids=input_ids, labels=input_ids, use_cache=False)
    outputs.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(step, outputs.loss.item())
