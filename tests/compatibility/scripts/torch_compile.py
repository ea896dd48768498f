"""torch.compile
PyTorch tutorials, "Introduction to torch.compile": the whole training step is compiled.
"""

import torch
from torch import nn

device = "cuda"
torch.set_float32_matmul_precision("high")


def generate_data(b):
    return torch.randn(b, 3, 32, 32).to(device), torch.randint(10, (b,)).to(device)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)

    def forward(self, x):
        return torch.relu(x + self.bn(self.conv(x)))


def init_model():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3), Residual(32), Residual(32), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(32, 10),
    ).to(device)  # fmt: skip


model = init_model()
opt = torch.optim.Adam(model.parameters())


@torch.compile
def foo(x):
    return torch.sin(x) + torch.cos(x)


def train(mod, data):
    opt.zero_grad(True)
    pred = mod(data[0])
    loss = torch.nn.CrossEntropyLoss()(pred, data[1])
    loss.backward()
    opt.step()


model.compile(mode="max-autotune")
train_opt = torch.compile(train, mode="reduce-overhead")
print(foo(torch.randn(10, 10, device=device)).shape)
for _ in range(10):
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    train_opt(model, generate_data(16))
    end.record()
    torch.cuda.synchronize()
    print("compile train time:", start.elapsed_time(end) / 1000)
