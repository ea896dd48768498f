"""T5 from a configuration, raw loop
transformers docs, "T5" training section and run_translation_no_trainer.py: Adafactor, no downloads.
"""

import torch
from torch.utils.data import DataLoader
from transformers import Adafactor, T5Config, T5ForConditionalGeneration, get_scheduler

config = T5Config(
    vocab_size=500, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0
)
model = T5ForConditionalGeneration(config).to("cuda")
pairs = [
    {
        "input_ids": torch.randint(2, 500, (32,)),
        "attention_mask": torch.ones(32, dtype=torch.long),
        "labels": torch.randint(2, 500, (24,)),
    }
    for _ in range(64)
]
train_dataloader = DataLoader(pairs, shuffle=True, batch_size=8)
optimizer = Adafactor(model.parameters(), lr=1e-3, scale_parameter=False, relative_step=False)
num_training_steps = 3 * len(train_dataloader)
lr_scheduler = get_scheduler("linear", optimizer, num_warmup_steps=2, num_training_steps=num_training_steps)
device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
model.train()
for epoch in range(3):
    for batch in train_dataloader:
        batch = {k: v.to(device) for k, v in batch.items()}
        outputs = model(**batch)
        loss = outputs.loss
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
