"""torch.func: functional_call, vmap and per-sample gradients
PyTorch tutorials, "Per-sample gradients" (as DP-SGD clips them) and "Model ensembling".
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.utils.data import DataLoader, TensorDataset


class SimpleCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1)
        self.conv2 = nn.Conv2d(16, 32, 3, 2)
        self.fc1 = nn.Linear(4608, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return F.log_softmax(self.fc1(torch.flatten(x, 1)), dim=1)


device = "cuda"
model = SimpleCNN().to(device=device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def compute_loss(params, buffers, sample, target):
    batch = sample.unsqueeze(0)
    targets = target.unsqueeze(0)
    predictions = functional_call(model, (params, buffers), (batch,))
    return F.nll_loss(predictions, targets)


ft_compute_sample_grad = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))
loader = DataLoader(TensorDataset(torch.rand(64, 1, 28, 28), torch.randint(10, (64,))), batch_size=8)
for data, targets in loader:
    data, targets = data.to(device), targets.to(device)
    params = {k: v.detach() for k, v in model.named_parameters()}
    buffers = {k: v.detach() for k, v in model.named_buffers()}
    per_sample_grads = ft_compute_sample_grad(params, buffers, data, targets)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in per_sample_grads.values()]).norm(dim=0)
    factor = (1.0 / (norms + 1e-6)).clamp(max=1.0)
    for name, parameter in model.named_parameters():
        parameter.grad = torch.einsum("n,n...->...", factor, per_sample_grads[name]) / len(data)
    optimizer.step()
    optimizer.zero_grad()

models = [SimpleCNN().to(device) for _ in range(4)]
params, buffers = stack_module_state(models)
predictions = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), (0, 0, None))(
    params, buffers, data
)
print(predictions.shape)
