"""Hugging Face from_pretrained with a device map
transformers' guide to big models; of the folder only its configuration is here.
"""

import tempfile

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

with tempfile.TemporaryDirectory() as folder:
    LlamaConfig(
        vocab_size=500,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        architectures=["LlamaForCausalLM"],
    ).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, device_map={"": 0}, dtype=torch.float32)

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(10):
    tokens = torch.randint(0, 500, (4, 32), device=model.device)
    loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
