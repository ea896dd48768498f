"""BF16 autocast on a convolutional network
PyTorch docs, "Automatic Mixed Precision examples", with the channels_last tutorial's memory format.
"""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1, stride=2)
        self.bn2 = nn.BatchNorm2d(64)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.fc(x)


def main():
    if not torch.cuda.is_bf16_supported():
        raise SystemExit("this GPU has no BF16")
    torch.backends.cudnn.benchmark = True
    model = Net().cuda().to(memory_format=torch.channels_last)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    data = TensorDataset(torch.rand(512, 3, 32, 32), torch.randint(10, (512,)))
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=2, pin_memory=True)
    for epoch in range(2):
        running = 0.0
        for images, labels in loader:
            images = images.cuda(non_blocking=True).to(memory_format=torch.channels_last)
            labels = labels.cuda(non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            running += loss.detach()
        print(f"epoch {epoch}: {running.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
