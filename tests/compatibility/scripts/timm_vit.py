"""Vision transformer (timm)
timm docs, "Getting started": vit_tiny_patch16_224 built for small images, BF16, layer-wise learning rates.
"""

import timm
import torch
from timm.optim import create_optimizer_v2
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = timm.create_model(
    "vit_tiny_patch16_224", pretrained=False, img_size=64, num_classes=10, depth=4, drop_rate=0.1
)
model = model.cuda().train()
optimizer = create_optimizer_v2(model, opt="adamw", lr=5e-4, weight_decay=0.05, layer_decay=0.75)
loader = DataLoader(TensorDataset(torch.rand(80, 3, 64, 64), torch.randint(10, (80,))), batch_size=8)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for _ in range(2):
    for images, labels in loader:
        images, labels = images.cuda(), labels.cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            output = model(images)
            loss = criterion(output, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy = timm.utils.accuracy(output, labels, topk=(1, 5))
print(loss.item(), accuracy)
