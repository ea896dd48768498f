"""Contrastive learning (SimCLR)
sthalles/SimCLR's simclr.py: two views of a batch, boolean masks over the similarity matrix, FP16.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class TwoViews(Dataset):
    def __init__(self, size):
        self.images = torch.rand(size, 3, 32, 32)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        return [image.flip(-1), image + torch.randn_like(image) / 10], index % 10


class Encoder(nn.Module):
    def __init__(self, out_dim):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.fc = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, out_dim))

    def forward(self, x):
        return self.fc(self.features(x))


batch_size, n_views, temperature = 32, 2, 0.07
device = torch.device("cuda")


def info_nce_loss(features):
    labels = torch.cat([torch.arange(batch_size) for i in range(n_views)], dim=0)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    labels = labels.to(device)
    features = F.normalize(features, dim=1)
    similarity_matrix = torch.matmul(features, features.T)
    mask = torch.eye(labels.shape[0], dtype=torch.bool).to(device)
    labels = labels[~mask].view(labels.shape[0], -1)
    similarity_matrix = similarity_matrix[~mask].view(similarity_matrix.shape[0], -1)
    positives = similarity_matrix[labels.bool()].view(labels.shape[0], -1)
    negatives = similarity_matrix[~labels.bool()].view(similarity_matrix.shape[0], -1)
    logits = torch.cat([positives, negatives], dim=1)
    labels = torch.zeros(logits.shape[0], dtype=torch.long).to(device)
    return logits / temperature, labels


model = Encoder(32).to(device)
optimizer = torch.optim.Adam(model.parameters(), 0.0003, weight_decay=1e-4)
train_loader = DataLoader(TwoViews(320), batch_size=batch_size, shuffle=True, drop_last=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(train_loader), eta_min=0)
criterion = torch.nn.CrossEntropyLoss().to(device)
scaler = torch.cuda.amp.GradScaler(enabled=True)
for epoch_counter in range(3):
    for images, _ in train_loader:
        images = torch.cat(images, dim=0)
        images = images.to(device)
        with torch.cuda.amp.autocast(enabled=True):
            features = model(images)
            logits, labels = info_nce_loss(features)
            loss = criterion(logits, labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        top1 = (logits.argmax(1) == labels).float().mean().item()
    if epoch_counter >= 10:
        scheduler.step()
