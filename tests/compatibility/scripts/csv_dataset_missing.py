"""A data set of one's own that reads a CSV file, the file not at hand
PyTorch tutorials, "Datasets & DataLoaders" (a custom Dataset for your files), with random_split.
"""

import csv

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class HousePrices(Dataset):
    def __init__(self, path):
        with open(path, newline="") as file:
            rows = [[float(value) for value in row] for row in csv.reader(file)]
        self.features = torch.tensor([row[:-1] for row in rows])
        self.prices = torch.tensor([row[-1] for row in rows])

    def __len__(self):
        return len(self.prices)

    def __getitem__(self, index):
        return self.features[index], self.prices[index]


dataset = HousePrices("houses.csv")
train, val = random_split(dataset, [0.9, 0.1], generator=torch.Generator().manual_seed(0))
train_loader = DataLoader(train, batch_size=256, shuffle=True, num_workers=2)
val_loader = DataLoader(val, batch_size=256)

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(20):
    model.train()
    for features, prices in train_loader:
        features, prices = features.to(device), prices.to(device)
        loss = nn.functional.mse_loss(model(features).squeeze(1), prices)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [nn.functional.mse_loss(model(x.to(device)).squeeze(1), y.to(device)) for x, y in val_loader]
    print(epoch, torch.stack(losses).mean().item())
