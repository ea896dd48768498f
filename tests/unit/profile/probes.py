"""Pieces of a script, one for each patch: what it gives with the patch, and not without it."""

from tests.unit.profile import framework_probes
from tests.unit.profile.distributed_probes import COLLECTIVE_PROBES, DISTRIBUTED_PROBES
from tests.unit.profile.file_probes import FILE_PROBES
from tests.unit.profile.flow_probes import FLOW_PROBES
from tests.unit.profile.semantics_probes import SEMANTICS_PROBES

PATCH_PROBES = {
    **framework_probes.PATCH_PROBES,
    "subclass": (
        """
weight = torch.ones(3, device="cuda", requires_grad=True)
(weight * 2).sum().backward()
result = [str(weight.grad.device), weight.is_cuda, weight.is_meta]
""",
        ["cuda:0", True, False],
    ),
    "device_type": (
        """
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel
dist.init_process_group("nccl")
layer = nn.Linear(100, 4, bias=False)
# The device by its place, and an outer wrapper with no parameters of its own.
inner = FullyShardedDataParallel(layer, *[None] * 8, torch.cuda.current_device())
model = FullyShardedDataParallel(nn.Sequential(inner))
session.collectives.start_span()
model(torch.zeros(2, 100, device="cuda")).sum().backward()
first = torch.device(0)
assert torch.jit._builtins._find_builtin(torch.device) == "aten::device"
assert isinstance(first, torch.device) and {torch.device: 1}[type(first)] and first == torch.device("cuda:0")
result = [[entry["kind"], entry["num_bytes"]] for entry in session.collectives.entries()]
""",
        [["all_gather", 1600], ["reduce_scatter", 1600]],
    ),
    "device": (
        """
device = "cuda" if torch.cuda.is_available() else "cpu"
properties = torch.cuda.get_device_properties(0) if device == "cuda" else None
result = [device, properties and properties.name, torch.cuda.device_count()]
torch.cuda.manual_seed_all(0)
""",
        ["cuda", "Pretended GPU", 4],
    ),
    "streams": (
        """
stream = torch.cuda.Stream()
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
with torch.cuda.stream(stream):
    torch.zeros(3, device="cuda").record_stream(stream)
torch.cuda.current_stream().wait_stream(stream)
end.record()
result = begin.elapsed_time(end) > 0
""",
        True,
    ),
    "accelerator": (
        """
result = [torch.accelerator.is_available(), torch.accelerator.current_accelerator().type]
torch.accelerator.synchronize()
""",
        [True, "cuda"],
    ),
    "factories": (
        """
numbers = torch.tensor([1.0, 2.0], device="cuda")
with torch.device("cuda"):
    scalar = torch.tensor(3)
    sparse = torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.ones(1))
generator = torch.Generator(device="cuda").manual_seed(1)
result = [str(tensor.device) for tensor in (
    numbers, torch.as_tensor([1], device="cuda"), numbers.new_tensor([4]), torch.zeros(2, device=0),
    torch.randn(2, device="cuda", generator=generator), scalar, generator,
    sparse)]
""",
        ["cuda:0"] * 8,
    ),
    "tensor_device": (
        """
moved = torch.zeros(3).cuda()
result = [str(moved.device), moved.to("cuda") is moved, moved.cuda(0) is moved,
          moved.to(moved) is moved, str(moved.to(torch.float16).dtype), moved.is_pinned(),
          str(torch.zeros(3).pin_memory().to(0, non_blocking=True).device),
          moved.to("cuda", copy=True) is moved]
""",
        ["cuda:0", True, True, True, "torch.float16", False, "cuda:0", False],
    ),
    "tensor_values": (
        """
tensor = torch.ones(2, device="cuda")
try:
    tensor.numpy()
    refused = False
except TypeError:
    refused = True
result = [tensor.tolist(), f"{tensor.sum():.1f}", repr(tensor), tensor.cpu().numpy().tolist(), refused]
""",
        [[0.0, 0.0], "0.0", "tensor([0., 0.])", [0.0, 0.0], True],
    ),
    "conversion": (
        """
first, second = nn.Linear(4, 4), nn.Linear(4, 4)
second.weight = first.weight
model = nn.Sequential(first, second)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
kept = first.weight
model.to("cuda")
plain = nn.Linear(4, 4)
plain.weight.data = plain.weight.data.to("cuda")
noted = nn.Linear(4, 4)
noted.weight.no_decay, noted.bias.no_decay = True, False
noted.to("cuda")
result = [first.weight is second.weight, first.weight is kept, str(kept.device),
          optimizer.param_groups[0]["params"][0] is kept, str(plain.weight.device),
          str(nn.Linear(4, 4).to(0).weight.device), [p.no_decay for p in noted.parameters()]]
""",
        [True, True, "cuda:0", True, "cuda:0", "cuda:0", [True, False]],
    ),
    "autocast": (
        """
layer, norm = nn.Linear(8, 8).to("cuda"), nn.LayerNorm(8).to("cuda")
with torch.autocast("cuda", dtype=torch.bfloat16):
    hidden = layer(torch.zeros(2, 8, device="cuda"))
    again = layer(hidden)
    normed, total = norm(hidden), hidden.sum()
    both = torch.cat([hidden, normed])
casts = sum(entry["count"] for entry in session.recorder.operators() if "_to_copy" in entry["name"])
result = [str(tensor.dtype) for tensor in (hidden, normed, total, both)] + [session.amp_dtype, casts]
""",
        # Input, weight and bias are cast once, and what layer norm reads; cat takes what it is given.
        ["torch.bfloat16", "torch.float32", "torch.float32", "torch.float32", "bfloat16", 4],
    ),
    "scaler": (
        """
layer = nn.Linear(4, 4).to("cuda")
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
steps = []
optimizer.register_step_post_hook(lambda *_: steps.append(1))
scaler = torch.amp.GradScaler("cuda")
for _ in range(3):
    scaler.scale(layer(torch.zeros(2, 4, device="cuda")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
result = len(steps)
""",
        3,
    ),
    "batch_norm": (
        """
plain, without_weight = nn.BatchNorm2d(8).to("cuda"), nn.BatchNorm2d(8, affine=False).to("cuda")
image = torch.zeros(4, 8, 6, 6, device="cuda", requires_grad=True)
names = []
for layer, dtype in ((plain, torch.float32), (plain, torch.float16), (plain, torch.bfloat16),
                     (without_weight, torch.float32)):
    session.recorder.start_span()
    layer(image.to(dtype)).sum().backward()
    names.append(sorted(name[6:] for name in ops() if "batch_norm" in name))
plain.eval()
session.recorder.start_span()
plain(image)
nn.BatchNorm1d(8).to("cuda")(torch.zeros(4, 8, device="cuda"))
result = [*names, sorted(name[6:] for name in ops() if "batch_norm" in name)]
""",
        # cuDNN normalises images of FP32 and FP16 with weights; the rest is torch's own kernel.
        [["cudnn_batch_norm", "cudnn_batch_norm_backward"]] * 2
        + [["native_batch_norm", "native_batch_norm_backward"]] * 2
        + [["cudnn_batch_norm", "native_batch_norm"]],
    ),
    "memory_format": (
        """
image = torch.zeros(2, 3, 8, 8, device="cuda")
result = []
for dtype, layout in ((torch.float32, torch.channels_last), (torch.float16, torch.channels_last),
                      (torch.float64, torch.channels_last), (torch.float32, torch.contiguous_format)):
    layer = nn.Conv2d(3, 4, 3).to("cuda", dtype, memory_format=layout)
    for data in (image.to(dtype), image.to(dtype, memory_format=layout)):
        result.append(layer(data).is_contiguous(memory_format=torch.channels_last))
moved = torch.zeros(2, 3, 8, 8).cuda(None, False, torch.channels_last)
result.append(moved.is_contiguous(memory_format=torch.channels_last))
with torch.cuda.device(0) as nothing:
    result.append(nothing)
""",
        # Either tensor in channels_last is enough; cuDNN has no such kernels in float64.
        [True] * 4 + [False] * 4 + [True, None],
    ),
    "dropout": (
        """
F.dropout(torch.zeros(8, device="cuda"), 0.5)
nn.Dropout(0.1)(torch.zeros(8, device="cuda"))
torch.dropout(torch.zeros(8, device="cuda"), 0.1, True)
result = sorted(ops() - {"aten::zeros"})
""",
        ["aten::native_dropout"],
    ),
    "single_kernels": (
        """
for function in (F.silu, F.mish, nn.RMSNorm(8).to("cuda")):
    function(torch.zeros(4, 8, device="cuda", requires_grad=True)).sum().backward()
parts = ("aten::mul", "aten::sigmoid", "aten::rsqrt", "aten::pow")
result = sorted(name for name in ops() if "backward" in name or "norm" in name or name in parts)
""",
        [
            "aten::_fused_rms_norm",
            "aten::_fused_rms_norm_backward",
            "aten::mish_backward",
            "aten::silu_backward",
        ],
    ),
    "ctc_loss": (
        """
scores = torch.zeros(50, 4, 20, device="cuda", requires_grad=True)
labels, ends, lengths = torch.ones(4, 12).long().cuda(), torch.full((4,), 50), torch.tensor([10, 7, 6, 5])
result = []
for of_input, of_target in ((ends, lengths), (ends.cuda(), lengths), (ends.cuda(), lengths.cuda()),
                            (ends.tolist(), lengths.tolist())):
    session.recorder.start_span()
    nn.CTCLoss()(scores.log_softmax(2), labels, of_input, of_target).backward()
    alphas = [entry["outputs"][1]["shape"] for entry in session.recorder.operators()
              if entry["name"] == "aten::_ctc_loss"]
    result.append(alphas)
""",
        4 * [[[4, 50, 21]]],
    ),
    "attention": (
        """
query = torch.zeros(2, 4, 16, 32, device="cuda", dtype=torch.bfloat16, requires_grad=True)
F.scaled_dot_product_attention(query, query, query, is_causal=True).sum().backward()
single = query.detach().float()
mask = torch.ones(16, 16, device="cuda", dtype=torch.bool)
F.scaled_dot_product_attention(single, single, single, attn_mask=mask)
result = sorted(name for name in ops() if "attention" in name or "softmax" in name)
""",
        [
            "aten::_scaled_dot_product_efficient_attention",
            "aten::_scaled_dot_product_flash_attention",
            "aten::_scaled_dot_product_flash_attention_backward",
        ],
    ),
    "rnn": (
        """
for kind in (nn.LSTM, nn.GRU, nn.RNN):
    layer = kind(8, 16, num_layers=2, batch_first=True, bidirectional=True).to("cuda")
    output = layer(torch.zeros(4, 3, 8, device="cuda"))[0]
    output.sum().backward()
packed = nn.utils.rnn.pack_padded_sequence(
    torch.zeros(4, 3, 8, device="cuda"), torch.tensor([3, 2, 2, 1]), batch_first=True)
unpacked = nn.LSTM(8, 16).to("cuda")(packed)[0]
entries = session.recorder.operators()
calls = [sum(e["count"] for e in entries if e["name"] == "aten::" + name)
         for name in ("_cudnn_rnn", "_cudnn_rnn_backward")]
result = [calls, list(output.shape), unpacked.data.shape[0]]
""",
        [[4, 3], [4, 3, 32], 8],
    ),
    "optimizers": (
        """
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).to("cuda")
model(torch.zeros(2, 4, device="cuda")).sum().backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
torch.optim.AdamW(model.parameters()).step()
result = sorted(name for name in ops() if name in ("aten::_foreach_norm", "aten::_foreach_addcdiv_"))
""",
        ["aten::_foreach_addcdiv_", "aten::_foreach_norm"],
    ),
    "initialisation": (
        """
many, few, bias = torch.zeros(1024, 1024), torch.full((64, 64), 9.0), torch.zeros(64)
for fill in (nn.init.normal_, nn.init.kaiming_uniform_):
    for weight in (many, few):
        fill(weight)
nn.init.ones_(bias)
result = [many.abs().max().item(), 0 < few.abs().max().item() < 1, bias.sum().item()]
""",
        [0.0, True, 64.0],
    ),
    "compiling": (
        """
layer = nn.Linear(2, 2)
double = torch.compile(lambda x: x + x)
helper = torch.compile(lambda x: x)
asked = [session.compiled.is_asked, helper(2), session.compiled.is_asked]
result = [asked, torch.compile(layer, mode="max-autotune") is layer, session.compiled.mode_of(layer),
          double(2), torch.compile(layer.forward, disable=True) == layer.forward]
""",
        [[False, 2, True], True, "max-autotune", 4, True],
    ),
    "exporting": (
        """
layer = nn.Linear(2, 3).cuda()
program = torch.export.export(layer, (torch.ones(4, 2, device="cuda"),))
torch.export.save(program, "layer.pt2")
traced = torch.jit.trace(layer, torch.ones(4, 2, device="cuda"))
traced.save("layer.pt")
result = ["linear" in str(program.graph), list(program.module()(torch.ones(4, 2, device="cuda")).shape),
          torch.export.load("layer.pt2") is program, traced is layer]
""",
        [True, [4, 3], True, True],
    ),
    "fake_data": (
        """
session.use_fake_data([{"name": None, "shape": [3, 8], "kind": "float32"},
                       {"name": None, "shape": [10], "kind": "class"}], 30)
class Photos(torch.utils.data.Dataset):
    def __init__(self, root):
        self.names = open(root + "/names.txt").read().split()
    def __len__(self):
        return len(self.names)
try:
    batches = list(torch.utils.data.DataLoader(Photos("/nowhere"), 16))
except OSError:
    batches = []
result = [[list(images.shape), labels.tolist()[-1]] for images, labels in batches]
""",
        [[[16, 3, 8], 5], [[14, 3, 8], 9]],
    ),
    "data_loader": (
        """
data = torch.utils.data.TensorDataset(torch.zeros(10, 3))
begun = []
loader = torch.utils.data.DataLoader(data, 4, num_workers=3, pin_memory=True, prefetch_factor=4,
                                     persistent_workers=True, worker_init_fn=begun.append)
batches = list(loader)
usage = session.loading.usage()
result = [loader.num_workers, len(batches), usage["num_workers"], usage["samples"],
          usage["num_batches"], usage["num_samples"], begun]
""",
        [0, 3, 3, 10, 3, 10, [0]],
    ),
    "data_parallel": (
        """
model = nn.DataParallel(nn.Linear(4, 2).to("cuda"))
result = list(model(torch.zeros(3, 4, device="cuda")).shape)
""",
        [3, 2],
    ),
    **DISTRIBUTED_PROBES,
    "legacy_types": (
        """
import numpy
Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
made = [Tensor(2, 3), Tensor(), Tensor([1.0, 2.0]), Tensor(numpy.zeros((4, 1))), torch.zeros(5).type(Tensor),
        torch.zeros(6).type("torch.cuda.LongTensor"), torch.zeros(7).cuda().type(torch.float64)]
torch.set_default_tensor_type("torch.cuda.DoubleTensor")
made.append(torch.zeros(8))
result = [[list(t.shape), str(t.dtype), t.device.type] for t in made]
result.append([isinstance(made[0], Tensor), isinstance(made[5], Tensor), torch.zeros(1, device="cpu").type()])
""",
        [
            [[2, 3], "torch.float32", "cuda"],
            [[0], "torch.float32", "cuda"],
            [[2], "torch.float32", "cuda"],
            [[4, 1], "torch.float32", "cuda"],
            [[5], "torch.float32", "cuda"],
            [[6], "torch.int64", "cuda"],
            [[7], "torch.float64", "cuda"],
            [[8], "torch.float64", "cuda"],
            [True, False, "torch.DoubleTensor"],
        ],
    ),
    "threads": (
        """
import threading
found = []
def work():
    found.append(str(torch.zeros(3, device="cuda").device))
for _ in range(2):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
result = [found, str(torch.ones(2, device="cuda").device), "aten::zeros" in ops() or "aten::fill_" in ops()]
""",
        [["cuda:0", "cuda:0"], "cuda:0", True],
    ),
    **FILE_PROBES,
}

_COUNTED = """
from torch.utils.flop_counter import FlopCounterMode
model = {model}
data = {data}
session.recorder.start_span()
with FlopCounterMode(display=False) as counter:
    model(data).float().sum().backward()
result = [counter.get_total_flops(), session.recorder.operators()]
"""
FLOP_MODELS = {
    "matmul": (
        "nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()",
        'torch.zeros(16, 32, device="cuda", requires_grad=True)',
    ),
    "batched matmul": (
        "lambda x: torch.baddbmm(x.new_zeros(1), x, x.transpose(1, 2))",
        'torch.zeros(4, 8, 16, device="cuda", requires_grad=True)',
    ),
    "convolution": (
        "nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv2d(8, 4, (1, 5))).cuda()",
        'torch.zeros(2, 3, 32, 40, device="cuda")',
    ),
    "transposed convolution": (
        "nn.Sequential(nn.ConvTranspose2d(6, 8, 4, 2, 1), nn.Conv3d(1, 1, 1)).cuda()[0]",
        'torch.zeros(2, 6, 9, 7, device="cuda", requires_grad=True)',
    ),
    "attention": (
        "lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)",
        'torch.zeros(2, 4, 64, 32, device="cuda", dtype=torch.bfloat16, requires_grad=True)',
    ),
    "attention with a mask": (
        "lambda x: F.scaled_dot_product_attention(x, x, x, torch.zeros(64, 64, device='cuda'))",
        'torch.zeros(2, 4, 64, 32, device="cuda", requires_grad=True)',
    ),
    "transformer": (
        "nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).cuda()",
        'torch.zeros(2, 16, 32, device="cuda", requires_grad=True)',
    ),
}

OTHER_PROBES = {
    "inference mode": """
norm, flat = nn.BatchNorm2d(8).cuda().bfloat16(), torch.ones(4, 6, 6, device="cuda")
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding="same"), nn.Flatten(), nn.Linear(8 * 256, 10)).cuda()
result = []
for mode in (torch.inference_mode, torch.no_grad):
    session.recorder.start_span()
    with mode():
        model(torch.ones(4, 3, 16, 16, device="cuda"))
        norm(torch.ones(4, 8, 6, 6, device="cuda", dtype=torch.bfloat16))
        nn.RMSNorm(6).cuda()(flat)
        torch.matmul(flat, flat), torch.einsum("bij,bkj->bik", flat, flat)
        flat.sum().item(), flat.to("cpu"), flat.cpu().to("cuda")
    result.append(sorted([entry["name"], entry["count"]] for entry in session.recorder.operators()))
""",
    **framework_probes.VALUE_PROBES,
    **FLOW_PROBES,
    "memory of a model": """
session.memory.start_span()
model = nn.Linear(256, 256).to("cuda")
inputs = torch.zeros(100, 256, device="cuda")
loss = model(inputs).sum()
loss.backward()
for tensor in model.parameters():
    session.memory.tag(tensor, "parameter")
    session.memory.tag(tensor.grad, "gradient")
result = session.memory.usage()
""",
    "memory is freed": """
before = session.memory.current_bytes
tensor = torch.zeros(1000, device="cuda")
during = session.memory.current_bytes
view = tensor[10:]
with_view = session.memory.current_bytes
del tensor
kept_by_view = session.memory.current_bytes
del view
result = [before, during, with_view, kept_by_view, session.memory.current_bytes]
""",
    "phases": """
model = nn.Linear(8, 8, bias=False).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
model(torch.zeros(4, 8, device="cuda")).sum().backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
optimizer.step()
result = [[e["name"], e["phase"]] for e in session.recorder.operators()]
""",
    "reserve space": """
data = torch.zeros(7, 4, 8, device="cuda")  # length, batch, width
result = []
for kind in (nn.LSTM, nn.GRU, nn.RNN):
    for training in (True, False):
        layer = kind(8, 16, num_layers=3, bidirectional=True).to("cuda").train(training)
        session.recorder.start_span()
        layer(data)
        (entry,) = [e for e in session.recorder.operators() if e["name"] == "aten::_cudnn_rnn"]
        result.append(entry["outputs"][3]["shape"][0])
""",
    "views": """
tensor = torch.empty(4, 4, device="cuda")
tensor.view(16).t().expand(2, 16).detach().unsqueeze(0)
tensor.transpose_(0, 1)
tensor[0:2].fill_(1.0)
result = [[e["name"], e["inputs"][0]["shape"]] for e in session.recorder.operators()]
""",
    "equal calls": """
tensor = torch.empty(4, device="cuda")
for _ in range(5):
    tensor.add_(tensor, alpha=2)
tensor.add_(tensor, alpha=3)
result = [[e["count"], e["attributes"]] for e in session.recorder.operators()]
""",
    "attributes": """
weight = torch.empty(8, 4, 3, 3, device="cuda")
torch.conv2d(torch.empty(2, 4, 9, 9, device="cuda"), weight, stride=2, padding=1)
torch.empty(3, device="cuda").masked_fill_(torch.empty(3, device="cuda", dtype=torch.bool), -float("inf"))
result = [e["attributes"] for e in session.recorder.operators()]
""",
    "copies": """
host = torch.zeros(100)
device = host.to("cuda")
device.copy_(host)
host.copy_(device)
device.cpu()
value = device[0].item()
result = [[[e["name"], e["count"]] for e in session.recorder.operators()], value]
""",
    "large copies to main memory": """
import resource
def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak_bytes()
whole = [torch.zeros(2**28, 4, device="cuda").cpu(),
         torch.empty(2**29, 4, device="cuda", dtype=torch.bfloat16).to("cpu")]
values = [whole[0][5, 2].item(), whole[1][2**28].sum().item(), bool(whole[0][:1000].any())]
whole[0][0, 1] = 3
result = [values, whole[0][0].tolist(), [str(t.dtype) for t in whole], list(whole[1].shape),
          whole[0].is_contiguous(), (peak_bytes() - before) < 200e6]
""",
    "values": """
tensor = torch.zeros(3, device="cuda")
result = [bool((tensor > 0).all()), tensor.argmax().item(), float(tensor.sum()),
          torch.equal(tensor, tensor), list(tensor.nonzero().shape), list(tensor[tensor > 0].shape),
          list(torch.masked_select(tensor, tensor > 0).shape), list(tensor.unique().shape)]
""",
    "real dynamo on demand": """
import sys
torch.distributed.init_process_group("nccl")
light = len([name for name in sys.modules if name.startswith("torch._dynamo")])
rules = torch._dynamo.trace_rules.lookup.__module__
result = [light < 5, rules, type(torch._dynamo).__name__, "torch._dynamo.eval_frame" in sys.modules]
""",
    "real dynamo for a function": """
import sys
from torch._dynamo.utils import is_compile_supported
light = len([name for name in sys.modules if name.startswith("torch._dynamo")])
answer = is_compile_supported("cpu")
from torch._dynamo.utils import counters, is_compile_supported
same = answer == is_compile_supported("cpu")
result = [light < 5, same, type(counters).__name__, type(torch._dynamo).__name__]
""",
    "no real dynamo for what models ask": """
import sys
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
same = torch._dynamo.assume_constant_result(len) is len
placed = nn.Linear(1, 1, device="meta").to_empty(device="cuda").weight.device.type
compiled = isinstance(nn.Linear(1, 1), torch._dynamo.eval_frame.OptimizedModule)
reduces = torch._dynamo.utils.get_optimize_ddp_mode()
light = len([name for name in sys.modules if name.startswith("torch._dynamo")])
rules = torch._dynamo.trace_rules.lookup.__module__
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex as again
agrees = torch._dynamo.utils.get_optimize_ddp_mode() == reduces
result = [same, placed, compiled, light < 7, rules, again is TransformGetItemToIndex, agrees]
""",
    "real dynamo for a name of its tools": """
from torch._dynamo.utils import counters
result = [type(counters).__name__, type(torch._dynamo).__name__, type(torch._dynamo.utils).__name__]
""",
}


def shards():
    """What probe_server.py is to run, by what asks for it together: each is one process."""
    patched = {"with " + name: code for name, (code, _) in PATCH_PROBES.items()}
    without = [
        {"skip": [name], "probes": {"without " + name: code}} for name, (code, _) in PATCH_PROBES.items()
    ]
    flops = {
        "flops of " + name: _COUNTED.format(model=model, data=data)
        for name, (model, data) in FLOP_MODELS.items()
    }
    return {
        "patches": [_with_all_patches(patched), *without],
        "flops": [_with_all_patches(flops)],
        "collectives": [_with_all_patches(COLLECTIVE_PROBES)],
        "semantics": [_with_all_patches(SEMANTICS_PROBES)],
        "others": [_with_all_patches(OTHER_PROBES)],
    }


def _with_all_patches(probes):
    return {"skip": [], "probes": probes}
