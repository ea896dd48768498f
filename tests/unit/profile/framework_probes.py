"""More pieces of a script: frameworks, and values that the script put on the GPU itself."""

PATCH_PROBES = {
    "torchvision_ops": (
        """
import torchvision
from torchvision.ops import RoIAlign, nms
features = torch.zeros(1, 8, 16, 16, device="cuda", requires_grad=True)
boxes = torch.tensor([[0.0, 0, 0, 8, 8], [0, 4, 4, 16, 16], [0, 2, 2, 9, 9]], device="cuda")
pooled = RoIAlign(7, 1.0, 2)(features, boxes)
pooled.sum().backward()
result = [list(pooled.shape), list(features.grad.shape), list(nms(boxes[:, 1:], boxes[:, 0], 0.5).shape),
          sorted(name for name in ops() if name.startswith("torchvision"))]
""",
        [
            [3, 8, 7, 7],
            [1, 8, 16, 16],
            [2],
            ["torchvision::_roi_align_backward", "torchvision::nms", "torchvision::roi_align"],
        ],
    ),
    "transformers_tracing": (
        """
from transformers import LlamaConfig, LlamaModel
config = LlamaConfig(vocab_size=8, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
                     num_attention_heads=4)
model = LlamaModel(config).to("cuda", torch.bfloat16)
tokens = torch.zeros(2, 16, dtype=torch.long, device="cuda")
model(tokens, attention_mask=torch.ones(2, 16, dtype=torch.long).to("cuda"))
from transformers.utils import is_triton_available
result = [*sorted(name for name in ops() if "attention" in name), is_triton_available()]
""",
        ["aten::_scaled_dot_product_flash_attention", False],
    ),
    "extensions": (
        """
from torch.utils import cpp_extension
try:
    cpp_extension.load_inline("mine", ["int one() { return 1; }"], cuda_sources=["__global__ void two() {}"])
except Exception as error:
    result = str(error)
""",
        "Error building extension 'mine': it has CUDA sources",
    ),
    # The operators as the library declares them, which is in tests/compatibility.
    "bitsandbytes": (
        """
import importlib, pathlib, sys, tempfile
folder = pathlib.Path(tempfile.mkdtemp(), "bitsandbytes")
folder.mkdir()
sys.path.insert(0, str(folder.parent))
(folder / "__init__.py").touch()
(folder / "_ops.py").write_text('''
import torch
def define(name, schema, rule):
    torch.library.define("bitsandbytes::" + name, schema)
    torch.library.register_fake("bitsandbytes::" + name)(rule)
define("gemm_4bit", "(Tensor A, Tensor B, int[] shapeB, Tensor absmax, int blocksize, str quant_type,"
       "Tensor? bias=None, Tensor? absmax_8bit=None, Tensor? absmax_code=None, Tensor? absmax_offset=None)"
       " -> Tensor", lambda A, B, shape, *_, **__: A.new_empty(A.shape[0], shape[0]))
define("dequantize_4bit", "(Tensor A, Tensor s, int block, str kind, int[] shape, ScalarType dtype)"
       " -> Tensor", lambda A, s, block, kind, shape, dtype: A.new_empty(shape, dtype=dtype))
define("int8_vectorwise_quant", "(Tensor A, float threshold=0.0) -> (Tensor, Tensor, Tensor?)",
       lambda A, threshold=0.0: (A, A, A.new_empty(torch.library.get_ctx().new_dynamic_size())))
''')
(folder / "optim").mkdir()
(folder / "optim" / "optimizer.py").write_text('''
class Optimizer8bit:
    is_paged = True
    def get_state_buffer(self, p, dtype):
        raise RuntimeError("it is in a library of CUDA")
''')
importlib.import_module("bitsandbytes._ops")
paging = importlib.import_module("bitsandbytes.optim.optimizer").Optimizer8bit()
bits = torch.ops.bitsandbytes
rows, packed, scales = (torch.zeros(size, device="cuda") for size in ((32, 64), (1024, 1), (32,)))
made = bits.gemm_4bit(rows, packed, [32, 64], scales, 64, "nf4")
integers, sums, outliers = bits.int8_vectorwise_quant(rows, 6.0)
result = [list(made.shape), sorted(ops() & {"aten::mm", "bitsandbytes::gemm_4bit"}), str(integers.dtype),
          outliers.numel(), str(paging.get_state_buffer(rows, torch.uint8).dtype),
          list(session.mode.assumptions)]
""",
        [
            [32, 32],
            ["aten::mm"],
            "torch.int8",
            0,
            "torch.uint8",
            [
                "no column of a product of 8 bits is an outlier",
                "the paged state of an optimizer stays on the GPU",
            ],
        ],
    ),
    # What the patch changes of it, and no more: DeepSpeed itself is in tests/end_to_end/test_deepspeed.py.
    "deepspeed": (
        """
import importlib, pathlib, sys, tempfile
sys.path.insert(0, tempfile.mkdtemp())
SOURCES = {
    "ops.op_builder.builder": '''
class OpBuilder:
    name = "utils"
    def load(self):
        return self.name
class CUDAOpBuilder(OpBuilder):
    name = "fused_adam"
''',
    "comm.comm": '''
def mpi_discovery():
    from mpi4py_that_is_not_there import MPI
''',
    "runtime.zero.stage_1_and_2": '''
class DeepSpeedZeroOptimizer:
    def __init__(self):
        self.ipg_buckets = {}
    def setup_buckets(self):
        self.ipg_buckets["fp32"] = types.SimpleNamespace(buffer=[torch.empty(1024, device="cuda")])
    def reduce_gradients(self, session):
        return session.recorder.phase
    independent_gradient_partition_epilogue = reduce_gradients
''',
    "runtime.zero.stage3": '''
class DeepSpeedZeroOptimizer_Stage3:
    def __init__(self):
        self.ipg_buckets = {}
        self.grad_partitions_flat_buffer = torch.empty(1024, device="cuda")
''',
    "runtime.engine": '''
class DeepSpeedEngine:
    def __init__(self):
        there = types.SimpleNamespace(device="cpu")
        zero = types.SimpleNamespace(offload_optimizer=there, offload_param=None)
        self._config = types.SimpleNamespace(zero_config=zero)
    def _take_model_step(self, session):
        return session.recorder.phase
''',
}
modules = {}
for name, source in SOURCES.items():
    path = pathlib.Path(sys.path[0], "deepspeed", *name.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    # A package without such a file would give way to DeepSpeed itself, where that is installed.
    for folder in path.relative_to(sys.path[0]).parents[:-1]:
        (sys.path[0] / folder / "__init__.py").touch()
    path.write_text("import types, torch" + source)
    modules[name.rpartition(".")[2]] = importlib.import_module("deepspeed." + name)
def said(work, *args):
    try:
        return work(*args)
    except Exception as error:
        return repr(error)
session.world.used = 1
builder, zero = modules["builder"].CUDAOpBuilder(), modules["stage_1_and_2"].DeepSpeedZeroOptimizer()
zero_3 = modules["stage3"].DeepSpeedZeroOptimizer_Stage3()
zero.setup_buckets()
lists = [[torch.ones(4, device="cuda")] for _ in range(4)]
said(lambda: builder.load().multi_tensor_adam(2048, None, lists, 1e-3, 0.9, 0.99, 1e-8, 1, 1, 1, 0.0))
builder.name = "evoformer_attn"
result = [said(modules["comm"].mpi_discovery), said(builder.load),
          modules["builder"].OpBuilder().load(),
          sorted(name for name in ops() if "adam" in name),
          session.world.is_sharded, session.memory.kind(zero.ipg_buckets["fp32"].buffer[0]),
          session.memory.kind(zero_3.grad_partitions_flat_buffer),
          zero.reduce_gradients(session), modules["engine"].DeepSpeedEngine()._take_model_step(session),
          session.recorder.phase,
          [warning["facts"] for warning in session.all_warnings() if warning["code"] == "offload-uncounted"]]
""",
        [
            "KeyError('RANK')",
            "RuntimeError(\"Error building extension 'evoformer_attn': DeepSpeed compiles it for a GPU\")",
            "utils",
            ["aten::_fused_adamw_"],
            True,
            "kept",
            "gradient",
            "backward",
            "optimizer",
            "forward",
            [{"parts": ["optimizer"]}],
        ],
    ),
    "lazy_modules": (
        """
import copy
moved = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(3)).to("cuda")
identity = moved[3].weight
moved.half()
moved(torch.zeros(2, 3, 6, 6, device="cuda", dtype=torch.float16)).sum().backward()
made, whole = nn.LazyLinear(5, device="cuda"), copy.deepcopy(nn.LazyLinear(6).cuda())
with torch.device("cuda"):
    inside = nn.LazyLinear(7)
plain = nn.LazyLinear(8)
for layer in (made, whole, inside):
    layer(torch.zeros(1, 2, device="cuda"))
plain(torch.zeros(1, 2))
tensors = (*moved.parameters(), moved[1].running_mean, made.weight, whole.weight, inside.bias, plain.weight)
result = [[list(t.shape), t.device.type] for t in tensors]
result += [moved[3].weight is identity, type(made).__name__, str(identity.dtype), list(identity.grad.shape)]
""",
        [
            [[4, 3, 3, 3], "cuda"],
            [[4], "cuda"],
            [[4], "cuda"],
            [[4], "cuda"],
            [[3, 64], "cuda"],
            [[3], "cuda"],
            [[4], "cuda"],
            [[5, 2], "cuda"],
            [[6, 2], "cuda"],
            [[7], "cuda"],
            [[8, 2], "cpu"],
            True,
            "Linear",
            "torch.float16",
            [3, 64],
        ],
    ),
    "flex_attention": (
        """
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
query = torch.zeros(2, 4, 128, 32, device="cuda", dtype=torch.bfloat16, requires_grad=True)
documents = torch.zeros(128, dtype=torch.int64, device="cuda")
rules = [lambda b, h, q, k: q >= k, lambda b, h, q, k: q >= -k,
         lambda b, h, q, k: documents[q] == documents[k]]
seen, kernel = [], torch.nn.functional.scaled_dot_product_attention
def attention(*args, **given):
    seen.append(given["is_causal"])
    return kernel(*args, **given)
torch.nn.functional.scaled_dot_product_attention = attention
for mask in (None, *(create_block_mask(rule, None, None, 128, 128, device="cuda") for rule in rules)):
    torch.compile(flex_attention)(query, query, query, block_mask=mask).sum().backward()
short = query[:, :, :32]
mask = create_block_mask(lambda b, h, q, k: (q >= k) | (k > 31), None, None, 32, 32, device="cuda")
with torch.device("cuda"):
    flex_attention(short, short, short, block_mask=mask)
torch.nn.functional.scaled_dot_product_attention = kernel
output, lse = flex_attention(query, query[:, :2], query[:, :2], enable_gqa=True, return_lse=True)
result = [seen, list(output.shape), list(lse.shape),
          sorted(name for name in ops() if "attention" in name or "softmax" in name)]
""",
        [
            [False, True, False, False, True],
            [2, 4, 128, 32],
            [2, 4, 128],
            [
                "aten::_scaled_dot_product_flash_attention",
                "aten::_scaled_dot_product_flash_attention_backward",
            ],
        ],
    ),
    "pipelining": (
        """
from torch.distributed.pipelining import PipelineStage
try:
    PipelineStage(nn.Linear(2, 2), 0, 2, torch.device("cuda"))
except RuntimeError as error:
    result = str(error).partition(":")[0]
""",
        "PipelineStage",
    ),
    "rnn_cells": (
        """
data, state = torch.zeros(2, 4, device="cuda"), torch.zeros(2, 8, device="cuda")
lstm, gru, bare = nn.LSTMCell(4, 8).cuda(), nn.GRUCell(4, 8).cuda(), nn.LSTMCell(4, 8, bias=False).cuda()
hidden, cell = lstm(data, (state, state))
with torch.autocast("cuda"):
    half = gru(data, state)
(gru(data, hidden).sum() + half.sum() + cell.sum() + bare(data, (state, state))[0].sum()).backward()
entries = session.recorder.operators()
calls = [sum(e["count"] for e in entries if e["name"] == "aten::_thnn_fused_" + name) for name in
         ("lstm_cell", "lstm_cell_backward_impl", "gru_cell", "gru_cell_backward")]
result = [calls, list(hidden.shape), str(half.dtype), list(gru.weight_ih.grad.shape),
          list(gru.bias_hh.grad.shape)]
""",
        [[1, 1, 2, 2], [2, 8], "torch.float16", [24, 4], [24]],
    ),
}

VALUE_PROBES = {
    "values that follow from the CPU": """
lengths = torch.tensor([3, 5, 2]).cuda()
mask = torch.arange(5, device="cuda")[None, :] < lengths[:, None]
hidden = nn.Linear(4, 4).cuda()(torch.zeros(3, 5, 4, device="cuda"))
kept = torch.zeros(100, dtype=torch.bool, device="cuda")
kept[:10] = True
result = [lengths.max().item(), mask.sum().item(), list(hidden[mask].shape), lengths.tolist(),
          list(mask.nonzero().shape), mask.float().mean().item(), int(kept.sum()),
          lengths.cpu().sum().item(), list(torch.repeat_interleave(hidden, lengths, dim=0).shape)]
""",
    "values that do not": """
layer = nn.Linear(2, 2).cuda()
weight, counts = layer.weight.detach(), torch.tensor([4, 5]).cuda()
known = counts[0].item()
counts.add_(1)
steps = torch.tensor([0.0, 0.0]).cuda()
torch._foreach_add_([steps], 1)
result = [weight.sum().item(), known, counts[0].item(), steps[0].item(),
          bool((weight > 0).all()), bool((weight > 0).any()),
          [bool(torch.isfinite(weight.sum())), bool(torch.isnan(weight.sum())),
           bool(~torch.isnan(weight.sum())), bool(torch.isinf(weight.sum())), bool(weight.sum() == 3)]]
""",
    "a profiler of the script": """
cpu, cuda = torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA
result = []
for kinds in ([cpu, cuda], [cuda], [cpu]):
    with torch.profiler.profile(activities=kinds) as prof:
        nn.Linear(2, 2).cuda()
    result.append([prof.profiler.use_device, len(prof.key_averages()) > 0])
""",
    "memory's statistics": """
layer = nn.Linear(1000, 1000).cuda()
stats = torch.cuda.memory_stats()
result = [stats["allocated_bytes.all.current"] == torch.cuda.memory_allocated(), stats["num_ooms"],
          stats["reserved_bytes.all.peak"] == torch.cuda.max_memory_reserved()]
""",
    "meta": """
before = session.memory.current_bytes
with torch.device("meta"):
    layer = nn.Linear(1000, 1000)
plain = torch.empty(10, device="meta")
result = [layer.weight.is_meta, (plain + 1).is_meta, session.memory.current_bytes - before]
layer.to_empty(device="cuda")
result += [layer.weight.is_cuda, session.memory.current_bytes - before]
""",
}
