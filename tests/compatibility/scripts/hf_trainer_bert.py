"""Hugging Face Trainer, BERT sequence classification
transformers docs, "Text classification": FP16, a collator that pads, metrics, evaluation first.
"""

import random

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
config = BertConfig(
    vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
    max_position_embeddings=64, num_labels=2, id2label={0: "NEGATIVE", 1: "POSITIVE"},
    label2id={"NEGATIVE": 0, "POSITIVE": 1},
)  # fmt: skip
model = BertForSequenceClassification(config)
reviews = [
    {"input_ids": random.choices(range(1, 1000), k=random.randint(8, 48)), "label": index % 2}
    for index in range(200)
]


def collate(features):
    longest = 48
    ids = torch.zeros(len(features), longest, dtype=torch.long)
    mask = torch.zeros(len(features), longest, dtype=torch.long)
    for row, feature in enumerate(features):
        length = len(feature["input_ids"])
        ids[row, :length] = torch.tensor(feature["input_ids"])
        mask[row, :length] = 1
    labels = torch.tensor([feature["label"] for feature in features])
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def compute_metrics(eval_pred):
    predictions, labels = eval_pred
    predictions = np.argmax(predictions, axis=1)
    return {"accuracy": float((predictions == labels).mean())}


training_args = TrainingArguments(
    output_dir="my_awesome_model",
    learning_rate=2e-5,
    per_device_train_batch_size=16,
    per_device_eval_batch_size=16,
    num_train_epochs=2,
    weight_decay=0.01,
    warmup_steps=2,
    fp16=True,
    eval_strategy="epoch",
    eval_on_start=True,
    save_strategy="epoch",
    dataloader_num_workers=2,
    report_to="none",
    remove_unused_columns=False,
)
trainer = Trainer(
    model=model,
    args=training_args,
    train_dataset=reviews[:160],
    eval_dataset=reviews[160:],
    data_collator=collate,
    compute_metrics=compute_metrics,
)
trainer.train()
