"""Hugging Face Accelerate
accelerate docs, "Quicktour" and nlp_example.py: prepare, accumulate, clip, gather for metrics.
"""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(gradient_accumulation_steps=2, mixed_precision="fp16")
set_seed(42)
model = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4))
dataset = TensorDataset(torch.randn(320, 32), torch.randint(4, (320,)))
training_dataloader = DataLoader(dataset, shuffle=True, batch_size=16)
eval_dataloader = DataLoader(dataset, batch_size=32)
optimizer = AdamW(params=model.parameters(), lr=1e-3)
scheduler = LambdaLR(optimizer, lambda step: 0.95**step)
loss_function = torch.nn.CrossEntropyLoss()

model, optimizer, training_dataloader, eval_dataloader, scheduler = accelerator.prepare(
    model, optimizer, training_dataloader, eval_dataloader, scheduler
)
accelerator.print(accelerator.device, accelerator.state)
for epoch in range(3):
    model.train()
    for batch in training_dataloader:
        with accelerator.accumulate(model):
            inputs, targets = batch
            outputs = model(inputs)
            loss = loss_function(outputs, targets)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    model.eval()
    correct = 0
    for inputs, targets in eval_dataloader:
        with torch.no_grad():
            predictions = model(inputs).argmax(dim=-1)
        predictions, references = accelerator.gather_for_metrics((predictions, targets))
        correct += (predictions == references).sum().item()
    accelerator.print(f"epoch {epoch}: {correct / len(dataset):.3f}")
accelerator.save_state("checkpoint")
