"""Train ViT-B/16 on images of ImageNet's size, under autocast.

python vit.py --batch-size 256
"""

import argparse

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import vit_b_16


class Images(Dataset):
    """As many as ImageNet's, eight of them over and over."""

    def __init__(self):
        self.images = torch.rand(8, 3, 224, 224)

    def __len__(self):
        return 1_281_167

    def __getitem__(self, index):
        return self.images[index % 8], index % 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--batch-size", type=int, default=256)
    args = parser.parse_args()

    model = vit_b_16().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.3)
    scaler = torch.amp.GradScaler("cuda")
    loader = DataLoader(Images(), args.batch_size, shuffle=True, num_workers=16, drop_last=True)
    for epoch in range(args.epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(model(images.to("cuda")), labels.to("cuda"))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        torch.save({"model": model.state_dict(), "epoch": epoch}, "vit.pt")


if __name__ == "__main__":
    main()
