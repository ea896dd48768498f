"""torchvision, transformers, bitsandbytes and DeepSpeed beside the fake GPU."""

from __future__ import annotations

import functools
import importlib.util
import inspect
from collections.abc import Callable, Iterable
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from ...composite import PARTS
from ...protocol import Warned
from ...replacing import Original, attribute, replace, when_imported, wrap
from ...session import Session
from ..mode import HybridMode
from ..rescue import SHAPE_RULES

_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_POOLED = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_CONVOLUTION = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w,"
    " SymInt groups, SymInt offset_groups, bool use_mask"
)
_SCHEMAS = f"""box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor;
    nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor;
    qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor;
    roi_align(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor;
    qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale,
        int rois_zero_point, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor;
    _roi_align_backward(Tensor grad, Tensor rois, {_POOLED}, {_SIZES}, int sampling_ratio, bool aligned)
        -> Tensor;
    roi_pool(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor);
    _roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_POOLED}, {_SIZES}) -> Tensor;
    ps_roi_align(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio) -> (Tensor, Tensor);
    _ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, int sampling_ratio,
        {_SIZES}) -> Tensor;
    ps_roi_pool(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor);
    _ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, {_SIZES}) -> Tensor;
    deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_CONVOLUTION})
        -> Tensor;
    _deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias,
        {_CONVOLUTION}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"""


def install_torchvision_ops(session: Session) -> None:
    """Torchvision can be imported although its C++ operators cannot be loaded.

    Its wheels are built for one build of torch; beside another (a CUDA wheel and a CPU torch, as on most
    machines without a GPU) the extension fails to load and the import breaks at the first operator's shape
    rule. The rules need only the operators' schemas, so those are declared when that has happened.

    Look at torchvision's extension when it is imported.
    """

    def declare_if_missing(extension: ModuleType) -> None:
        if not extension._has_ops():
            # The library object must outlive the process.
            session.torchvision_library = library = torch.library.Library("torchvision", "FRAGMENT")
            for schema in _SCHEMAS.split(";"):
                library.define(" ".join(schema.split()))
            # Older versions have no gradients in Python: their operators must go on refusing.
            if importlib.util.find_spec("torchvision._autograd_registrations") is not None:
                extension.__dict__.update(_has_ops=lambda: True, _check_cuda_version=lambda: -1)

    when_imported("torchvision.extension", declare_if_missing)


def install_transformers_tracing(session: Session) -> None:  # noqa: ARG001
    """Transformers does not take the pretended GPU for the tracing of a graph, nor for one that runs Triton.

    It asks whether a mask is a FakeTensor, and if so does what suits ``torch.export``: masks are kept
    although they hide nothing, and attention takes the kernel for arbitrary masks where a real run takes
    flash attention. It asks for Triton, as trl does, to start kernels in place of torch's operators.

    Replace the questions in the versions that ask them.
    """

    def never_tracing(module: ModuleType) -> None:
        if hasattr(module, "is_fake_tensor"):
            module.__dict__["is_fake_tensor"] = lambda x: False  # noqa: ARG005
        module.__dict__["is_triton_available"] = lambda *_, **__: False

    when_imported("transformers.utils.import_utils", never_tracing)


def install_bitsandbytes(session: Session) -> None:
    """Products with weights of four and eight bits count as the products that they are.

    For as many rows as a training step has, the kernel of four bits makes weights of 16 bits and multiplies
    by those, and that of eight bits multiplies integers and scales the result; how many columns it takes out
    as too large follows from values, so none are. State that is paged is on the GPU while it has room.

    Take its operators apart once the script imports it.
    """

    def no_outliers(mode: HybridMode, source: torch.Tensor, threshold: float = 0.0) -> object:
        if threshold:
            mode.assumptions["no column of a product of 8 bits is an outlier"] = None
        outliers = mode.empty((0,), torch.int64) if threshold else None
        rows = source.numel() // source.shape[-1]
        return mode.empty(source.shape, torch.int8), mode.empty((rows,), torch.float32), outliers

    def install(_: ModuleType) -> None:
        operators = torch.ops.bitsandbytes
        for name, parts in (("gemm_4bit", _product_of_4_bits), ("int8_mixed_scaled_mm", _product_of_8_bits)):
            if hasattr(operators, name):
                PARTS[getattr(operators, name).default] = parts
        if hasattr(operators, "int8_vectorwise_quant"):
            SHAPE_RULES[operators.int8_vectorwise_quant.default] = no_outliers

    def state(
        original: Original, optimizer: Any, weight: torch.Tensor, dtype: torch.dtype = torch.float32
    ) -> object:
        if not optimizer.is_paged:
            return original(optimizer, weight, dtype)
        session.mode.assumptions["the paged state of an optimizer stays on the GPU"] = None
        return torch.zeros_like(weight, dtype=dtype)

    def install_optimizers(module: ModuleType) -> None:
        wrap(module.Optimizer8bit, "get_state_buffer", state)

    when_imported("bitsandbytes._ops", install)
    when_imported("bitsandbytes.optim.optimizer", install_optimizers)


def _product_of_4_bits(
    rows: torch.Tensor, packed: torch.Tensor, shape: list[int], scales: torch.Tensor, block: int, kind: str,
    bias: torch.Tensor | None = None, packed_scales: torch.Tensor | None = None,
    code: torch.Tensor | None = None, offset: torch.Tensor | None = None,
) -> object:  # fmt: skip
    operators = torch.ops.bitsandbytes
    if packed_scales is not None:
        scales = operators.dequantize_blockwise(packed_scales, scales, code, 256, torch.float32) + offset
    weight = operators.dequantize_4bit(packed, scales, block, kind, shape, rows.dtype)
    return torch.nn.functional.linear(rows, weight, bias)


def _product_of_8_bits(
    rows: torch.Tensor, quantised: torch.Tensor, weight: torch.Tensor, row_scales: torch.Tensor,
    scales: torch.Tensor, outliers: torch.Tensor | None = None, bias: torch.Tensor | None = None,
) -> object:  # fmt: skip
    integers = torch._int_mm(quantised.reshape(-1, quantised.shape[-1]), weight.t())
    dequantise = torch.ops.bitsandbytes.int8_mm_dequant
    product = dequantise(integers, row_scales, scales, dtype=rows.dtype, bias=bias)
    return product.view(*quantised.shape[:-1], weight.shape[0]), outliers


def install_extensions(session: Session) -> None:  # noqa: ARG001 - all patches have one signature
    """Extensions with CUDA sources are refused before they are compiled.

    Where there is a compiler it runs for a minute or two, and what it makes cannot run without a GPU.

    Wrap the functions of ``torch.utils.cpp_extension`` that compile while a script runs.
    """

    def compile_others(original: Original, *args: object, **kwargs: object) -> object:
        given = inspect.signature(original).bind(*args, **kwargs).arguments
        sources: Any = given.get("sources", ())
        files = [sources] if isinstance(sources, str) else list(sources)
        is_cuda = given.get("with_cuda") or given.get("cuda_sources")
        if is_cuda or any(str(file).endswith((".cu", ".cuh")) for file in files):
            raise RuntimeError(f"Error building extension {given.get('name')!r}: it has CUDA sources")
        return original(*args, **kwargs)

    def watch(module: ModuleType) -> None:
        wrap(module, "load", compile_others)
        wrap(module, "load_inline", compile_others)

    when_imported("torch.utils.cpp_extension", watch)


Tensors = list[torch.Tensor]


def install_deepspeed(session: Session) -> None:
    """DeepSpeed without its CUDA kernels, without MPI, and with its buffers called by their names.

    It compiles kernels of its own when an optimizer is made, and looks for MPI where torchrun gave it
    nothing. What it keeps of a model lies in buffers that no optimizer knows: they would count as
    activations, which grow with the batch.

    Change its modules once the script imports them.
    """

    def each_call(module: str, dotted: str, then: Callable[[Session, Any], None]) -> None:
        when_imported(module, lambda loaded: _after(loaded, dotted, functools.partial(then, session)))

    def look_for_mpi(*_: object, **__: object) -> None:
        raise KeyError("RANK")

    when_imported("deepspeed.ops.op_builder.builder", _stand_in)
    when_imported("deepspeed.comm.comm", lambda module: replace(module, mpi_discovery=look_for_mpi))
    zero = "deepspeed.runtime.zero"
    first = f"{zero}.stage_1_and_2"
    each_call(first, "DeepSpeedZeroOptimizer.__init__", _tell_shared)
    each_call(first, "DeepSpeedZeroOptimizer.setup_buckets", _name_staging)
    when_imported(first, lambda module: _count_as_backward(session, module.DeepSpeedZeroOptimizer))
    each_call(f"{zero}.stage3", "DeepSpeedZeroOptimizer_Stage3.__init__", _name_buffers)
    engine = "deepspeed.runtime.engine"
    each_call(engine, "DeepSpeedEngine.__init__", _tell_offload)
    when_imported(engine, lambda module: _count_as_step(session, module.DeepSpeedEngine))


def _after(module: ModuleType, dotted: str, then: Callable[[Any], None]) -> None:
    def run(method: Original, self: object, *args: object, **kwargs: object) -> object:
        result = method(self, *args, **kwargs)
        then(self)
        return result

    owner, name, method = attribute(module, dotted)
    if method is not None:
        wrap(owner, name, run)


def _stand_in(module: ModuleType) -> None:
    builder: Any = module.OpBuilder

    def load_or_stand_in(load: Original, self: Any, *args: object, **kwargs: object) -> object:
        if self.name in _STAND_INS:
            return _STAND_INS[self.name]
        if isinstance(self, module.CUDAOpBuilder):
            # Where there is a compiler it would run for minutes, to no end.
            raise RuntimeError(f"Error building extension {self.name!r}: DeepSpeed compiles it for a GPU")
        return load(self, *args, **kwargs)

    wrap(builder, "load", load_or_stand_in)


def _multi_tensor_adam(_chunk: int, _overflow: object, lists: list[Tensors], *numbers: float) -> None:
    """What torch's fused Adam does: it reads and writes as much."""
    gradients, weights, means, variances = lists
    lr, beta1, beta2, eps, _step, is_decoupled, _is_corrected, weight_decay = numbers
    # torch counts steps on the GPU, DeepSpeed does not.
    steps = [torch.empty(0, device=weight.device) for weight in weights]
    update: Any = torch._fused_adamw_ if is_decoupled else torch._fused_adam_
    update(
        weights, gradients, means, variances, [], steps,
        lr=lr, beta1=beta1, beta2=beta2, weight_decay=weight_decay, eps=eps, amsgrad=False, maximize=False,
    )  # fmt: skip


def _nothing(*_: object) -> None:
    """Work of the CPU, whose time is not measured here."""


_STAND_INS = {
    "fused_adam": SimpleNamespace(multi_tensor_adam=_multi_tensor_adam),
    "cpu_adam": SimpleNamespace(create_adam=_nothing, adam_update=_nothing, destroy_adam=_nothing),
}


def _tell_shared(session: Session, optimizer: object) -> None:  # noqa: ARG001
    """Alone it exchanges nothing that shows what others would keep of the state."""
    if session.world.used == 1:
        session.world.is_sharded = True


def _name_staging(session: Session, optimizer: Any) -> None:
    for bucket in getattr(optimizer, "ipg_buckets", {}).values():
        _name(session, bucket.buffer, "kept")


def _name_buffers(session: Session, optimizer: Any) -> None:
    buckets = getattr(optimizer, "ipg_buckets", {})
    _name(session, [bucket.buffer for bucket in buckets.values()], "kept")
    _name(session, [optimizer.grad_partitions_flat_buffer], "gradient")


def _name(session: Session, tensors: Iterable[torch.Tensor | None], kind: str) -> None:
    for tensor in tensors:
        if tensor is not None and session.is_fake(tensor):
            session.memory.tag(tensor, kind)


def _count_as_backward(session: Session, cls: Any) -> None:
    """It reads gradients after the pass, as an update of weights by hand does, but all on each rank."""

    def in_backward(original: Original, *args: object, **kwargs: object) -> object:
        recorder = session.recorder
        before, recorder.phase = recorder.phase, "backward"
        try:
            return original(*args, **kwargs)
        finally:
            recorder.phase = before

    for name in ("reduce_gradients", "independent_gradient_partition_epilogue"):
        wrap(cls, name, in_backward)


def _count_as_step(session: Session, engine: Any) -> None:
    """Around the optimizer's own step it clips, casts and gathers."""

    def take_model_step(take: Original, *args: object, **kwargs: object) -> object:
        session.recorder.begin_step()
        session.memory.begin_step()
        try:
            return take(*args, **kwargs)
        finally:
            session.memory.end_step()
            session.recorder.end_step()

    wrap(engine, "_take_model_step", take_model_step)


def _tell_offload(session: Session, engine: Any) -> None:
    zero = engine._config.zero_config
    parts = {"optimizer": zero.offload_optimizer, "parameters": zero.offload_param}
    names = [name for name, given in parts.items() if given is not None and given.device != "none"]
    if names:
        session.warn(Warned.OFFLOAD_UNCOUNTED, parts=names)
