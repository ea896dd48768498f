"""Custom autograd.Function
PyTorch tutorials, "Defining new autograd functions", and the straight-through estimator, under autocast.
"""

import torch
from torch import nn
from torch.amp import custom_bwd, custom_fwd
from torch.autograd.function import once_differentiable


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class Matmul(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a.mm(b)

    @staticmethod
    @once_differentiable
    @custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad.mm(b.t()), a.t().mm(grad)


class Quantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits):
        scale = x.abs().max() / (2 ** (bits - 1) - 1)
        return torch.round(x / scale) * scale

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 64) / 8)
        self.head = nn.Linear(64, 1)

    def forward(self, x):
        x = Matmul.apply(x, Quantize.apply(self.weight, 8))
        return self.head(LegendrePolynomial3.apply(x))


device = torch.device("cuda:0")
model = Model().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.linspace(-1, 1, 2048, device=device).view(32, 64)
y = torch.sin(x).sum(1, keepdim=True)
for t in range(200):
    with torch.autocast("cuda", dtype=torch.float16):
        y_pred = model(x)
    loss = (y_pred.float() - y).pow(2).sum()
    if t % 100 == 99:
        print(t, loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
