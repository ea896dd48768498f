"""What scripts may rely on: torch's semantics hold on the pretended GPU; answers are in test_semantics.py."""

SEMANTICS_PROBES = {
    "copies are copies": """
source = torch.zeros(3, device="cuda", requires_grad=True)
made = torch.tensor(source * 2)
back, there = source.detach().to(torch.zeros(1)), source.detach().to(torch.zeros(1, device="cuda"))
result = [made.requires_grad, torch.as_tensor(source) is source, str(back.device), str(there.device),
          source.to(torch.float32, False, True) is source, source.to(torch.float32, False, False) is source,
          source.to("cuda", torch.float32, True, True) is source, source.to(torch.zeros(1).double()).dtype
          is torch.float64]
""",
    "values after writes": """
counts = torch.tensor([1, 2, 3]).cuda()
known = counts.sum().item()
counts.data.mul_(2)
through_data = counts.sum().item()
other = torch.tensor([1, 2, 3]).cuda()
view = other[1:]
torch._foreach_mul_([view], 2)
through_list = other.sum().item()
third = torch.tensor([4, 5]).cuda()
third.data.copy_(torch.tensor([7, 7]))
result = [known, through_data, through_list, torch.empty_like(third).sum().item(), third.sum().item()]
""",
    "inherited dispatch": """
from torch.utils._pytree import tree_map
class Outer(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        strip = lambda value: value.inner if isinstance(value, Outer) else value
        wrap = lambda value: cls(value) if isinstance(value, torch.Tensor) else value
        return tree_map(wrap, func(*tree_map(strip, args), **tree_map(strip, kwargs or {})))
class Inherited(Outer):
    pass
session.recorder.start_span()
for kind in (Outer, Inherited):
    torch.mm(kind(torch.zeros(4, 4, device="cuda")), kind(torch.zeros(4, 4, device="cuda")))
result = sum(e["count"] for e in session.recorder.operators() if e["name"] == "aten::mm")
""",
    "weights in main memory": """
import copy
def held_bytes():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("RssAnon"))
before = held_bytes()
model = nn.Linear(16384, 16384)
nn.init.trunc_normal_(model.weight)
model.weight.data.normal_(0, 0.02).mul_(0.5)
average = copy.deepcopy(model)
for kept, new in zip(average.parameters(), model.parameters()):
    kept.data.mul_(0.9).add_(new.data, alpha=0.1)
model.load_state_dict(copy.deepcopy(model.state_dict()))
half = torch.cat([model.to(torch.bfloat16).weight, average.bfloat16().weight])
model.cuda()
result = [held_bytes() - before < 64 * 2**20, list(half.shape), str(half.dtype), str(model.weight.device)]
""",
    "data in main memory": """
import copy
data = torch.empty(1024, 1024)
first = data.clone()
data.copy_(torch.ones(1024, 1024))
second, as_numpy = data.clone(), torch.zeros(1024, 1024)
as_numpy.numpy()[0, 0] = 3
third, row = as_numpy.clone(), torch.zeros(1024, 1024)
row[5].fill_(2)
fourth, moved = copy.deepcopy(row), torch.zeros(1024, 1024)
moved += 1
assert nn.Linear(2, 2).cuda().share_memory().weight.is_cuda
shared = torch.zeros(1024, 1024).share_memory_()
shared[0] = 1
made = nn.Parameter(torch.zeros(1024, 1024))
made.data.fill_(7)
result = [tensor.sum().item() for tensor in (first, second, third, fourth, moved, shared, made.clone())]
""",
    "weights that are read in main memory": """
import copy, numpy
def weight(write):
    made = nn.Parameter(torch.empty(1024, 1024))
    with torch.no_grad():
        write(made)
    return made
def told(use):
    session.mode.assumptions.clear()
    use()
    return list(session.mode.assumptions)
plain, small = weight(lambda w: w.zero_().mul_(3)), nn.Linear(256, 256).weight
writes = [nn.init.normal_, lambda w: w.add_(1), lambda w: w.clamp_(min=2),
          lambda w: w.copy_(torch.ones(1024, 1024)),
          lambda w: w.data.uniform_().mul_(2), lambda w: nn.init.orthogonal_(w)]
drawn = weight(nn.init.normal_)
data, other = torch.zeros(1024, 1024), torch.empty(1024, 1024)
data.copy_(drawn.data)
reads = [lambda: drawn.sum(), lambda: drawn[0].tolist(), lambda: drawn.detach().numpy(), lambda: data.mean(),
         lambda: other.add_(weight(nn.init.normal_).data.exp()),
         lambda: copy.deepcopy(weight(nn.init.normal_)).norm(),
         lambda: numpy.from_dlpack(weight(nn.init.normal_).detach()), lambda: repr(weight(nn.init.normal_)),
         lambda: torch.cat([weight(nn.init.normal_), plain]).max()]
unread = [lambda: plain.sum(), lambda: small.std(), lambda: drawn.view(-1).shape,
          lambda: drawn.bfloat16().cuda(),
          lambda: nn.Linear(1024, 1024).load_state_dict(nn.Linear(1024, 1024).state_dict())]
result = [{len(told(weight(w).sum)) for w in writes}, [len(told(use)) for use in reads],
          [told(use) for use in unread], told(reads[-1]), small.std().item() > 0]
result[0] = list(result[0])
""",
    "a parameter of a class of its own": """
class Packed(nn.Parameter):
    def __new__(cls, data, requires_grad=False, state=None):
        made = torch.Tensor._make_subclass(cls, data, requires_grad)
        made.state, made.data = state, data
        return made
    def to(self, *args, **kwargs):
        if self.state is None and torch.device(args[0]).type == "cuda":
            self.data, self.state = self.data.to(*args, **kwargs).to(torch.uint8), "packed"
            return self
        return Packed(super().to(*args, **kwargs), state=self.state)
    def cuda(self, device=None):
        return self.to("cuda")
layer = nn.Linear(8, 8, bias=False)
layer.weight = Packed(layer.weight.data)
layer.cuda()
again = layer.to(0).weight
product = F.linear(torch.zeros(2, 8, device="cuda"), again.float())
result = [type(again).__name__, isinstance(again, Packed), isinstance(again, nn.Parameter), again.state,
          str(again.dtype), again.requires_grad, list(layer.state_dict()), list(product.shape)]
""",
    "threads at once": """
import sys
from concurrent.futures import ThreadPoolExecutor
sys.setswitchinterval(1e-6)
def work(size):
    return sum(torch.zeros(4, size + step).to(0, torch.bfloat16).sum(0).shape[0] for step in range(1, 200))
with ThreadPoolExecutor(4) as pool:
    result = sum(pool.map(work, range(0, 800, 200)))
""",
    "a second GPU": """
def refused(use):
    try:
        use()
    except RuntimeError as error:
        return str(error)
result = [refused(use) for use in (
    lambda: nn.Linear(2, 2).to("cuda:1"), lambda: torch.zeros(2, device="cuda:1"),
    lambda: torch.zeros(2).cuda(1),
    lambda: torch.zeros(2, device=1), lambda: torch.cuda.set_device(1), lambda: nn.Linear(2, 2).cuda(0))]
""",
    "meta in a thread": """
import threading
found = []
def work():
    found.append(torch.empty(3, device="meta").device.type)
    found.append(torch.empty(3, device="cuda").device.type)
thread = threading.Thread(target=work)
thread.start()
thread.join()
result = found
""",
    "attention by choice": """
from torch.nn.attention import SDPBackend, sdpa_kernel
def kernels(dtype, *backends):
    session.recorder.start_span()
    query = torch.zeros(2, 4, 16, 8, device="cuda", dtype=dtype)
    if backends:
        with sdpa_kernel(list(backends)):
            F.scaled_dot_product_attention(query, query, query)
    else:
        F.scaled_dot_product_attention(query, query, query)
    return sorted(name.removeprefix("aten::_scaled_dot_product_") for name in ops() if "attention" in name)
result = [kernels(torch.float32), kernels(torch.float16), kernels(torch.float64),
          kernels(torch.float16, SDPBackend.MATH), kernels(torch.float16, SDPBackend.EFFICIENT_ATTENTION),
          kernels(torch.float16, SDPBackend.CUDNN_ATTENTION)]
import dataclasses
both = SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION
before = session.gpu
result.append(kernels(torch.float16, *both))
session.gpu = dataclasses.replace(before, major=9)
result += [kernels(torch.float16, *both), kernels(torch.float32, *both)]
session.gpu = before
""",
    "attention that is allowed": """
from torch.nn.attention import SDPBackend, sdpa_kernel
def attributes(context, size):
    session.recorder.start_span()
    query = torch.zeros(2, 4, size, 8, device="cuda", dtype=torch.float16, requires_grad=True)
    with context:
        loss = F.scaled_dot_product_attention(query, query, query).sum()
    loss.backward()
    return [[e["attributes"].get("backends"), e["attributes"].get("prefers_backends")]
            for e in session.recorder.operators() if "attention" in e["name"]]
import contextlib
FLASH, CUDNN = SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION
result = [attributes(contextlib.nullcontext(), 16), attributes(sdpa_kernel(FLASH), 16),
          attributes(contextlib.nullcontext(), 16),
          attributes(sdpa_kernel([CUDNN, SDPBackend.EFFICIENT_ATTENTION]), 16),
          attributes(sdpa_kernel([CUDNN, FLASH], set_priority=True), 32)]
torch.backends.cuda.enable_cudnn_sdp(False)
torch.backends.cuda.enable_math_sdp(False)
result.append(attributes(contextlib.nullcontext(), 64))
torch.backends.cuda.enable_cudnn_sdp(True)
torch.backends.cuda.enable_math_sdp(True)
""",
    "RMS norms": """
def norms(dtype, of_weight=None, amp=False, shape=(4, 6, 8)):
    session.recorder.start_span()
    norm = nn.RMSNorm(shape[-2:], elementwise_affine=of_weight is not None).to("cuda", of_weight)
    source = torch.zeros(shape, device="cuda", dtype=dtype, requires_grad=True)
    with torch.autocast("cuda", torch.bfloat16, enabled=amp):
        normed = norm(source)
    normed.float().sum().backward()
    named = [e for e in session.recorder.operators() if "rms_norm" in e["name"]]
    return [[e["phase"], e["inputs"][-1]["dtype"], [t["shape"] for t in e["outputs"]]] for e in named]
half, full = torch.bfloat16, torch.float32
result = [norms(half, half), norms(full, full), norms(half), norms(half, full), norms(half, full, amp=True)]
""",
    "averages of weights": """
def step():
    session.recorder.start_span()
    session.memory.start_span()
    session.recorder.begin_step()
    session.recorder.end_step()
def phases():
    return [[e["name"].removeprefix("aten::"), e["phase"]] for e in session.recorder.operators()]
weight, average = (torch.zeros(8, device="cuda") for _ in range(2))
images = torch.zeros(64, 3, device="cuda")
session.memory.tag(weight, "parameter")
step()
with torch.no_grad():
    average.add_(0.1 * (weight - average))
    copied = torch.zeros(8).to("cuda")
    average.mul_(0.9)
result = [phases()]
step()
with torch.no_grad():
    torch.zeros(8, device="cuda").neg_()
result.append(phases())
step()
average.neg_()
result.append(phases())
step()
with torch.no_grad():
    average.mul_(0.9)
    images[:8].sub(0.5)
    average.mul_(0.9)
result.append(phases())
teacher, held = torch.nn.Linear(8, 8, device="cuda").requires_grad_(False), torch.zeros(4, 8, device="cuda")
import importlib
payload = type(session).__module__.rpartition(".")[0]
importlib.import_module(payload + ".recording.iteration").Iterations(session, lambda _: None).install()
step()
with torch.no_grad():
    average.mul_(0.9)
    teacher(held)
result.append(phases())
""",
    "graph breaks": """
session.recorder.start_span()
session.compiled.start_span()
def forward(x, indices):
    y = x * 2
    if y.sum() > 0:
        y = y + 1
    y = y[indices]
    masked = y[y > 0].sum() + torch.masked_select(y, y > 0).sum()
    y[y > 1] = 1.0
    return y.nonzero(), masked * y.mean().item(), torch.where(y > 0, y, 0), y.to("cpu")
x = torch.zeros(4, 4, device="cuda")
indices = torch.zeros(2, device="cuda", dtype=torch.long)
torch.compile(forward)(x, indices)
forward(x, indices)
result = sorted(session.compiled.breaks().items())
""",
    "grouped heads": """
session.recorder.start_span()
query = torch.zeros(2, 8, 16, 8, device="cuda", dtype=torch.float16, requires_grad=True)
key = torch.zeros(2, 2, 16, 8, device="cuda", dtype=torch.float16, requires_grad=True)
F.scaled_dot_product_attention(query, key, key, enable_gqa=True).sum().backward()
mask = torch.zeros(16, 16, device="cuda", dtype=torch.float16)
F.scaled_dot_product_attention(query, key, key, attn_mask=mask, enable_gqa=True)
shapes = {entry["name"].removeprefix("aten::_scaled_dot_product_"): [t["shape"] for t in entry["inputs"]]
          for entry in session.recorder.operators() if "attention" in entry["name"]}
result = [shapes["flash_attention"][1][1], shapes["flash_attention_backward"][2][1],
          shapes["efficient_attention"][1][1], key.grad.shape[1]]
""",
    "empty batches": """
def collate(samples):
    return torch.empty(len(samples), 3, device="cuda")
loader = torch.utils.data.DataLoader(range(6), 2, collate_fn=collate)
result = [str(batch.device) for batch in loader]
""",
    "sparse tensors": """
def facts(tensor):
    entries = [tensor._nnz(), list(tensor._values().shape)] if tensor.is_sparse else []
    return [str(tensor.layout), list(tensor.shape), str(tensor.dtype), *entries]
def results(device):
    made = torch.sparse_coo_tensor([[0, 1, 3], [2, 0, 1]], [1.0, 2.0, 3.0], (4, 3), check_invariants=True)
    matrix, moved = made.to(device), made.cuda() if device == "cuda" else made
    dense, right, left = (torch.ones(*shape, device=device) for shape in ((4, 3), (3, 5), (5, 4)))
    weight = torch.ones(3, 5, device=device, requires_grad=True)
    torch.sparse.mm(matrix, weight).sum().backward()
    there = torch.sparse_coo_tensor([[0, 1], [2, 0]], [1.0, 2.0], (4, 3), device=device, requires_grad=True)
    hybrid = torch.sparse_coo_tensor(matrix._indices()[:1], torch.ones(3, 3, device=device), (4, 3))
    scale = torch.tensor(2.0, device=device)
    lists = torch.sparse_coo_tensor([[0, 1], [2, 0]], [1.0, 2.0], (4, 3), device=device)
    of_values = torch.sparse_coo_tensor([[0, 1], [2, 0]], torch.ones(2, device=device), dtype=torch.float64)
    moved_parts = torch.sparse_coo_tensor(torch.tensor([[1], [2]]), torch.ones(1), device=device)
    empty = torch.sparse_coo_tensor((2, 3), device=device)
    return {
        "made there": there,
        "of lists": lists, "of values": of_values, "of moved parts": moved_parts, "of nothing": empty,
        "norm": matrix.norm(), "in half": made.to(device, torch.float16), "cast": matrix.double(),
        "back": matrix.cpu(), "back in half": matrix.to("cpu", torch.float16),
        "there again": matrix.cpu().to(device), "detach": matrix.detach(), "factor": matrix * scale,
        "left factor": scale * matrix, "power": matrix**2,
        "scaled in place": matrix.clone().mul_(2.0),
        "divided in place": matrix.clone().div_(2.0), "vector": matrix @ dense[0],
        "vector by mv": torch.mv(matrix, dense[0]),
        "moved": moved, "clone": matrix.clone(), "coalesce": matrix.coalesce(), "t": matrix.t(),
        "transpose": matrix.transpose(0, 1), "mul": matrix * 2.0, "div": matrix / 2.0, "neg": -matrix,
        "sum": hybrid + hybrid, "onto dense": dense + matrix, "in place": dense.clone().add_(hybrid),
        "difference": dense.clone().sub_(hybrid), "mask": dense.sparse_mask(matrix),
        "hybrid mask": dense.sparse_mask(hybrid.coalesce()), "dense": matrix.to_dense(),
        "product": torch.sparse.mm(matrix, right), "operator": matrix @ right, "from left": left @ matrix,
        "addmm": torch.sparse.addmm(torch.ones(4, 5, device=device), matrix, right), "gradient": weight.grad,
    }
real = {name: facts(tensor) for name, tensor in results("cpu").items()}
fake = {name: facts(tensor) for name, tensor in results("cuda").items()}
result = [real, fake]
""",
    "compressed layouts": """
rows, columns, entries = torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2)
ways = [
    lambda: torch.eye(4).to_sparse_csr().to("cuda"), lambda: torch.eye(4).to_sparse_bsc((2, 2)).cuda(),
    lambda: torch.eye(4, device="cuda").to_sparse_csr(),
    lambda: torch.eye(4).to_sparse().cuda().to_sparse_csc(),
    lambda: torch.eye(4, device="cuda").to_sparse(layout=torch.sparse_csr),
    lambda: torch.sparse_csr_tensor(rows, columns, entries, (2, 2), device="cuda"),
    lambda: torch.sparse_csr_tensor(rows.cuda(), columns.cuda(), entries.cuda(), (2, 2)),
    lambda: torch.empty(2, 2, layout=torch.sparse_csr, device="cuda"),
]
result = [str(torch.eye(4).to_sparse_csr().layout)]
for way in ways:
    try:
        result.append(str(way().layout))
    except NotImplementedError as error:
        result.append(type(error).__name__)
""",
    "sparse gradients": """
import math
def train(make, look_up):
    weight = nn.Parameter(torch.zeros(1000, 16, device="cuda"))
    optimizer = make([weight])
    for _ in range(2):
        session.recorder.start_span()
        look_up(weight).sum().backward()
        gradient = [weight.grad._nnz(), list(weight.grad._values().shape)]
        optimizer.step()
        optimizer.zero_grad()
    names = {entry["name"].removeprefix("aten::") for entry in session.recorder.operators()}
    largest = max(math.prod(tensor["shape"]) for entry in session.recorder.operators()
                  for tensor in entry["outputs"] if entry["name"] != "aten::index_add_")
    return [gradient, sorted(names & {"index_add_", "_coalesce", "sparse_mask"}), largest]
indices, bags = torch.arange(64).cuda(), torch.arange(0, 64, 4).cuda()
embedding = lambda weight: F.embedding(indices, weight, sparse=True)
bag = lambda weight: F.embedding_bag(indices, weight, bags, mode="sum", sparse=True)
result = [train(optimizer, look_up) for look_up in (embedding, bag) for optimizer in (
    lambda weights: torch.optim.SGD(weights, 0.1), torch.optim.SparseAdam, torch.optim.Adagrad)]
""",
    "sparse gradients of several passes": """
def entries(device):
    weight = nn.Parameter(torch.zeros(1000, 16, device=device))
    found = []
    for first in (0, 64, None, 128):
        if first is None:
            weight.grad.zero_()
        else:
            F.embedding(torch.arange(first, first + 64, device=device), weight, sparse=True).sum().backward()
        found.append([weight.grad._nnz(), list(weight.grad._values().shape)])
    return found
result = [entries("cpu"), entries("cuda")]
""",
    "sparse and unknown": """
matrix = torch.sparse_coo_tensor([[0, 1, 3], [2, 0, 1]], [1.0, 2.0, 3.0], (4, 3)).cuda()
dense = torch.ones(4, 3, device="cuda")
def failure(run):
    try:
        return str(run())
    except NotImplementedError as error:
        return str(error)
result = [failure(run) for run in (
    lambda: torch.sparse.softmax(matrix, 1),
    lambda: dense.to_sparse(), lambda: torch.mm(matrix, matrix.t()), lambda: torch.sparse.sum(matrix, 1),
    lambda: torch.sparse_coo_tensor(torch.randint(3, (2, 3), device="cuda"), dense[0]),
    lambda: torch.sqrt(matrix).layout)]
""",
    "products with sparse tensors": """
matrix = torch.sparse_coo_tensor([[0, 1, 3], [2, 0, 1]], [1.0, 2.0, 3.0], (4, 3)).cuda()
left, right = torch.ones(4, 3, device="cuda"), torch.ones(3, 5, device="cuda")
def names(run):
    session.recorder.start_span()
    run()
    return sorted(ops() - {"aten::zeros", "aten::ones", "aten::add"})
result = [names(run) for run in (
    lambda: matrix @ right, lambda: matrix @ right[:, 0], lambda: torch.sparse.mm(matrix, right),
    lambda: torch.sparse.mm(left, right), lambda: matrix._nnz())]
""",
    "values after stranger writes": """
made = torch.tensor([6, 2]).cuda()
torch.ones(2, 2).to_sparse().to("cuda").mul_(2)
by_out, moved = made.clone(), made.clone()
torch.add(made, 1, out=by_out.data)
moved.data = made * nn.Parameter(torch.ones(2).cuda()).long()
with torch.inference_mode():
    there = made.clone()
    inferred = [there[0].item(), there.add_(1)[0].item()]
result = [by_out[0].item(), moved[0].item(), inferred, made[0].item()]
""",
    "frozen parameters that move": """
layer = nn.Linear(3, 2).cuda()
layer(torch.zeros(4, 3, device="cuda")).sum().backward()
weight = layer.weight.requires_grad_(False)
layer.cpu()
places = [str(layer.weight.device)]
layer.cuda()
result = [*places, str(layer.weight.device), layer.weight is weight, weight.requires_grad,
          layer.bias.requires_grad, list(weight.grad.shape)]
""",
    "texts that grow until all have ended": """
def grown(choose, most):
    text, unfinished = (torch.ones(shape, dtype=torch.int64, device="cuda") for shape in ((3, 1), 3))
    while text.shape[1] < 50:
        scores = head(torch.zeros(3, 8, device="cuda")).softmax(-1)
        text = torch.cat([text, choose(scores)], -1)
        is_long = torch.full((3,), text.shape[1] >= most, device="cuda")
        unfinished = unfinished & ~(is_long | torch.isin(text[:, -1], torch.tensor([2], device="cuda")))
        if unfinished.max() == 0:
            break
    return text.shape[1]
head = nn.Linear(8, 20).cuda()
result = [grown(choose, 7) for choose in (lambda scores: scores.multinomial(1),
                                          lambda scores: scores.argmax(-1, keepdim=True))]
""",
    "tokens of a router's experts": """
def rows_of(way):
    def run(expert):
        if way == "where":
            return tokens[torch.where(one_hot[expert])[1]]
        if way == "any":
            return tokens[(chosen == expert).any(-1)]
        slots = chosen.flatten()
        return tokens[slots.argsort() // 2].split(slots.bincount(minlength=4).tolist())[expert]
    return [run(expert).shape[0] for expert in range(4)]
mode = session.mode
kept = dict(mode.assumptions)
mode.assumptions.clear()
mode.has_made_up = False
tokens = torch.zeros(30, 8, device="cuda")
router = nn.Linear(8, 4).cuda()
found = []
for _ in range(2):  # the second time by known forms
    chosen = router(tokens).softmax(-1).topk(2)[1]
    one_hot = torch.nn.functional.one_hot(chosen, 4).permute(2, 1, 0)
    first_of_four = router(tokens).argmax(-1).eq(0).sum()
    # How many predictions a known mask keeps does not depend on them.
    router(tokens).argmax(-1)[torch.arange(30, device="cuda") < 9]
    before = list(mode.assumptions) if not found else before
    found.append([rows_of(way) for way in ("where", "any", "sort")])
result = [found, before, list(mode.assumptions), mode.has_made_up, first_of_four.item(), mode.has_made_up]
mode.assumptions.update(kept)
""",
    "masks of what is not computed": """
mode = session.mode
kept = dict(mode.assumptions)
def found(use):
    mode.assumptions.clear()
    mode.has_made_up = False
    size = use()
    return [size, list(mode.assumptions), mode.has_made_up]
large, boxes = torch.rand(100, 100).cuda(), torch.rand(10000, 2).cuda()
small = torch.tensor([1.0, float("nan")]).cuda()
loss = nn.Linear(2, 2).cuda()(torch.zeros(2, 2, device="cuda")).mean()
def checked():
    if not torch.isfinite(loss) or torch.isnan(loss):
        raise ValueError("not finite")
result = [found(use) for use in (
    lambda: large[~torch.isnan(large)].numel(),
    lambda: large[large == large].numel(),
    lambda: torch.masked_select(large, torch.isfinite(large)).numel(),
    lambda: torch.isfinite(large).nonzero().shape[0],
    lambda: boxes[(boxes > 0).all(1)].shape[0],
    lambda: small[~torch.isnan(small)].numel(),
    lambda: large[:5, 0].sub(0.5).gt(loss).cpu().nonzero().shape[0],
    lambda: nn.Linear(2, 4).cuda()(boxes).argmax(1).eq(0).cpu().nonzero().shape[0],
    checked)]
huge = torch.empty(2**21, device="cuda")
result.append([bool(mask.cpu().any()) for mask in (torch.isnan(huge), ~torch.isfinite(huge), huge > 0)])
result.append(bool(torch.isfinite(huge).cpu().all()))
mode.assumptions.clear()
mode.assumptions.update(kept)
""",
    "what is made for a copy": """
from types import SimpleNamespace
events = []
kept, session.recorder.making = session.recorder.making, SimpleNamespace(
    copied=lambda: events.append("copied"), resume=lambda: events.append("resume"),
    add_operator=lambda: events.append("cpu"), seconds=lambda: 2.5)
def seen(act):
    events.clear()
    act()
    return list(events)
on_cpu, on_gpu = torch.zeros(3), torch.zeros(3, device="cuda")
result = [seen(lambda: on_cpu + 1), seen(on_cpu.cuda), seen(lambda: on_gpu.copy_(on_cpu)),
          seen(lambda: on_gpu + 1), seen(on_gpu.cpu), session.making_s]
session.num_processes, session.loading.is_timed = 1, True
result.append(session.making_s)
session.num_processes, session.loading.is_timed = 0, False
result.append(session.making_s)
session.recorder.making, session.loading.is_timed = kept, True
""",
    "workers of a loader made again": """
data = torch.utils.data.TensorDataset(torch.zeros(8, 3))
first = torch.utils.data.DataLoader(data, 4, num_workers=3)
next(iter(torch.utils.data.DataLoader(data, 2, num_workers=first.num_workers)))
result = [first.num_workers, session.loading.usage()["num_workers"]]
""",
    "loader signature": """
import inspect
names = list(inspect.signature(torch.utils.data.DataLoader.__init__).parameters)
result = names[:4]
""",
}
