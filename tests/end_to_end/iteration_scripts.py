"""Training loops of every shape around the same small model."""

MODEL = """
import torch
import torch.nn.functional as F
from torch import nn

def make():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()

model = make()
inputs = torch.zeros(32, 64, device="cuda")
labels = torch.zeros(32, dtype=torch.long, device="cuda")

def loss_of(network=model):
    return F.cross_entropy(network(inputs), labels)
"""
STEP = """
while True:
    optimizer.zero_grad()
    loss_of().backward()
    optimizer.step()
"""
CLOSURE = """
def closure():
    optimizer.zero_grad()
    loss = loss_of()
    loss.backward()
    return loss

while True:
    optimizer.step(closure)
"""
GAN = """
critic, generator = make(), make()
critic_optimizer = torch.optim.RMSprop(critic.parameters())
generator_optimizer = torch.optim.RMSprop(generator.parameters())

def step(network, optimizer):
    optimizer.zero_grad()
    loss_of(network).backward()
    optimizer.step()
"""
SAM = """
class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **options):
        super().__init__(params, dict(rho=rho, **options))
        self.base_optimizer = base(self.param_groups, **options)
        self.param_groups = self.base_optimizer.param_groups

    def weights(self):
        return [p for group in self.param_groups for p in group["params"]]

    @torch.no_grad()
    def first_step(self):
        norm = torch.norm(torch.stack([p.grad.norm(2) for p in self.weights()]), 2)
        for p in self.weights():
            self.state[p]["old_p"] = p.data.clone()
            p.add_(p.grad * (0.05 / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for p in self.weights():
            p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure):
        self.first_step()
        torch.enable_grad()(closure)()
        self.second_step()

optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1)
"""

SCRIPTS = {
    "plain": MODEL + "optimizer = torch.optim.SGD(model.parameters(), 0.1)" + STEP,
    "by hand, through data": MODEL
    + """
while True:
    model.zero_grad()
    loss_of().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-0.1)
""",
    "by hand, without modules": MODEL
    + """
w = torch.randn(64, 10, device="cuda", requires_grad=True)
while True:
    F.cross_entropy(inputs @ w, labels).backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()
""",
    "by hand, accumulating": MODEL
    + """
step = 0
while True:
    loss_of().backward()
    step += 1
    if step % 4 == 0:
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(0.1 * p.grad)
                p.grad = None
""",
    "by hand, setting data": MODEL
    + """
while True:
    model.zero_grad()
    loss_of().backward()
    for p in model.parameters():
        p.data = p.data - 0.1 * p.grad
""",
    "a class of its own": MODEL
    + """
class FusedSGD:
    def __init__(self, params):
        self.params = list(params)
        self.momenta = [torch.zeros_like(p) for p in self.params]
    def zero_grad(self):
        for p in self.params:
            p.grad = None
    @torch.no_grad()
    def step(self):
        for p, momentum in zip(self.params, self.momenta):
            momentum.mul_(0.9).add_(p.grad)
            p.add_(momentum, alpha=-0.1)
optimizer = FusedSGD(model.parameters())
"""
    + STEP,
    "a subclass": MODEL
    + """
class Plain(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad, alpha=-0.1)
optimizer = Plain(model.parameters())
"""
    + STEP,
    "accumulates 64": MODEL
    + """
optimizer = torch.optim.SGD(model.parameters(), 0.1)
step = 0
while True:
    loss_of().backward()
    step += 1
    if step % 64 == 0:
        optimizer.step()
        optimizer.zero_grad()
""",
    "warms up without an optimizer": MODEL
    + """
for _ in range(12):
    loss_of().backward()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""
    + STEP,
    "winds a scheduler forward": MODEL
    + """
optimizer = torch.optim.SGD(model.parameters(), 0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
for _ in range(50):
    optimizer.step()
    scheduler.step()
"""
    + STEP,
    "LBFGS": MODEL + "optimizer = torch.optim.LBFGS(model.parameters())" + CLOSURE,
    "Adam with a closure": MODEL + "optimizer = torch.optim.Adam(model.parameters())" + CLOSURE,
    "steps in the backward pass": MODEL
    + """
optimizers = {p: torch.optim.Adam([p], foreach=False) for p in model.parameters()}
def hook(p):
    optimizers[p].step()
    optimizers[p].zero_grad()
for p in model.parameters():
    p.register_post_accumulate_grad_hook(hook)
while True:
    loss_of().backward()
""",
    "five critic steps first": MODEL
    + GAN
    + """
while True:
    for _ in range(5):
        step(critic, critic_optimizer)
        for p in critic.parameters():
            p.data.clamp_(-0.01, 0.01)
    step(generator, generator_optimizer)
""",
    "every fifth, from the first on": MODEL
    + GAN
    + """
number = 0
while True:
    step(critic, critic_optimizer)
    if number % 5 == 0:
        step(generator, generator_optimizer)
    number += 1
""",
    "one optimizer idles": MODEL
    + """
idle = torch.optim.Adam(make().parameters())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""
    + STEP,
    "SAM in two calls": MODEL
    + SAM
    + """
while True:
    loss_of().backward()
    optimizer.first_step()
    loss_of().backward()
    optimizer.second_step()
""",
    "SAM with a closure": MODEL
    + SAM
    + """
while True:
    loss_of().backward()
    optimizer.step(lambda: loss_of().backward())
""",
    "only backward passes": MODEL + "for _ in range(10): loss_of().backward()",
    "rolls out before its updates": MODEL
    + """
optimizer = torch.optim.SGD(model.parameters(), 0.1)
while True:
    for _ in range(40):
        with torch.no_grad():
            model(inputs)
    for _ in range(16):
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()
""",
    "evaluates 300 times": MODEL
    + """
with torch.no_grad():
    for _ in range(300):
        model(inputs)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""
    + STEP,
}
