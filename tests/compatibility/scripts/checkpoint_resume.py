"""Checkpoints: resume, save each epoch, keep the best, load it again
pytorch/examples, imagenet/main.py: save_checkpoint copies the best; the best is read back after each epoch.
"""

import os
import shutil

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

START = "checkpoint.pth.tar"


def save_checkpoint(state, is_best, filename=START):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(64, 3, 32, 32), torch.randint(10, (64,)))
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=2, pin_memory=True)
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10))
    model = model.to(device)
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    start_epoch, best_loss = 0, float("inf")
    if os.path.isfile(START):  # noqa: PTH113
        checkpoint = torch.load(START, map_location=device)
        start_epoch, best_loss = checkpoint["epoch"], checkpoint["best_loss"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])

    for epoch in range(start_epoch, 90):
        total = 0.0
        for images, target in loader:
            images = images.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            loss = criterion(model(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        is_best = total < best_loss
        best_loss = min(total, best_loss)
        save_checkpoint(
            {
                "epoch": epoch + 1,
                "state_dict": model.state_dict(),
                "best_loss": best_loss,
                "optimizer": optimizer.state_dict(),
            },
            is_best,
        )
        best = torch.load("model_best.pth.tar", map_location="cpu")
        model.load_state_dict(best["state_dict"])


if __name__ == "__main__":
    main()
