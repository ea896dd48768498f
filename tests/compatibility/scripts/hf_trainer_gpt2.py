"""Hugging Face Trainer, GPT-2 from a configuration
transformers docs, "Causal language modeling" and run_clm.py, with random tokens and no downloads.
"""

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator


class RandomTokens(Dataset):
    def __init__(self, vocab_size, block_size, num_blocks):
        self.blocks = torch.randint(vocab_size, (num_blocks, block_size))

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, index):
        block = self.blocks[index]
        return {"input_ids": block, "attention_mask": torch.ones_like(block), "labels": block.clone()}


config = GPT2Config(vocab_size=1000, n_positions=64, n_embd=64, n_layer=2, n_head=4)
model = GPT2LMHeadModel(config)
training_args = TrainingArguments(
    output_dir="my_awesome_clm-model",
    eval_strategy="epoch",
    learning_rate=2e-5,
    weight_decay=0.01,
    per_device_train_batch_size=8,
    gradient_accumulation_steps=2,
    num_train_epochs=3,
    bf16=True,
    logging_steps=1,
    report_to="none",
)
trainer = Trainer(
    model=model,
    args=training_args,
    train_dataset=RandomTokens(1000, 64, 320),
    eval_dataset=RandomTokens(1000, 64, 16),
    data_collator=default_data_collator,
)
trainer.train()
print(trainer.evaluate())
trainer.save_model()
