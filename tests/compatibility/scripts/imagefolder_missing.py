"""torchvision's ImageFolder of ImageNet, the data not at hand
pytorch/examples, imagenet/main.py: two folders, ResNet-18, a validation after each epoch.
"""

import argparse
import os

import torch
import torchvision.transforms as transforms
from torch import nn
from torchvision import datasets, models

parser = argparse.ArgumentParser()
parser.add_argument("data", nargs="?", default="imagenet")
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--workers", type=int, default=4)
parser.add_argument("--epochs", type=int, default=90)
args = parser.parse_args()

normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
train_dataset = datasets.ImageFolder(
    os.path.join(args.data, "train"),
    transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            normalize,
        ]
    ),
)
val_dataset = datasets.ImageFolder(
    os.path.join(args.data, "val"),
    transforms.Compose(
        [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), normalize]
    ),
)
train_loader = torch.utils.data.DataLoader(
    train_dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.workers, pin_memory=True
)
val_loader = torch.utils.data.DataLoader(
    val_dataset, batch_size=args.batch_size, shuffle=False, num_workers=args.workers, pin_memory=True
)

device = torch.device("cuda")
model = models.resnet18(num_classes=len(train_dataset.classes)).to(device)
criterion = nn.CrossEntropyLoss().to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)

for epoch in range(args.epochs):
    model.train()
    for i, (images, target) in enumerate(train_loader):
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(f"Epoch: [{epoch}][{i}/{len(train_loader)}] Loss {loss.item():.4e}")
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, target in val_loader:
            output = model(images.to(device))
            correct += (output.argmax(1).cpu() == target).sum().item()
    print(f"accuracy {correct / len(val_dataset):.3f}")
    scheduler.step()
