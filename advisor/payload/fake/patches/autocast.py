"""Mixed precision: autocast and GradScaler."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeGuard

import torch
from torch._ops import OpOverload

from ...composite import Args, Kwargs
from ...replacing import Original, replace, wrap
from ...session import Session

_LOWER_PRECISION = """_convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d.input conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv
    linalg_vecdot linear addbmm baddbmm bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell
    _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
    _scaled_dot_product_flash_attention scaled_dot_product_attention"""
_FP32 = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan
    pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm rms_norm group_norm
    frobenius_norm.dim nuclear_norm nuclear_norm.dim cosine_similarity poisson_nll_loss
    cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss
    mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss
    binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d
    upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d
    upsample_bicubic2d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d
    _upsample_bilinear2d_aa _upsample_bicubic2d_aa"""
_FP32_BY_DTYPE = """prod prod.dim_int softmax.int log_softmax.int cumprod cumsum sum sum.dim_IntList
    linalg_vector_norm linalg_matrix_norm linalg_matrix_norm.str_ord"""
_WIDEST = """addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add"""
_FLOATING = (torch.float32, torch.float16, torch.bfloat16)
_WITHOUT_AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)

Rule = Callable[["OpOverload", "Args", "Kwargs"], object]


def install_autocast(session: Session) -> None:
    """Autocast kernels that recognise our CUDA tensors.

    The C++ kernels ask ``is_cuda()`` of the C++ tensor, which is meta here, and so cast nothing: an AMP
    script would be profiled in FP32. The same rules in Python (the lists are those of
    ``aten/src/ATen/autocast_mode.h``), registered over them.

    Register all kernels; the library object must outlive the process.
    """
    casts = _Casts(session)
    library = torch.library.Library("aten", "IMPL")
    session.autocast_library = library
    for names, rule in (
        (_LOWER_PRECISION, casts.to_lower),
        (_FP32, casts.to_fp32),
        (_FP32_BY_DTYPE, casts.by_dtype_argument),
        (_WIDEST, casts.to_widest),
    ):
        for name in names.split():
            _register(library, name, rule)
    autocast = torch.amp.autocast_mode.autocast

    def leave(original: Original, context: object, *error: object) -> object:
        result = original(context, *error)
        if not torch.is_autocast_enabled("cuda"):
            casts.cache.clear()
        return result

    wrap(autocast, "__exit__", leave)


def _register(library: torch.library.Library, name: str, rule: Rule) -> None:
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    if operator is None or not has_kernel(operator.name(), "AutocastCUDA"):
        return  # another version of torch

    def kernel(*args: object, **kwargs: object) -> object:
        with torch._C._ExcludeDispatchKeyGuard(_WITHOUT_AUTOCAST):
            return rule(operator, args, kwargs)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # says that a kernel is overridden, which is the point
        library.impl(operator, kernel, "AutocastCUDA", allow_override=True)


class _Casts:
    """The four rules, and the cache of weights that were cast since autocast was entered."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.cache: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def to_lower(self, operator: OpOverload, args: Args, kwargs: Kwargs) -> object:
        dtype = torch.get_autocast_dtype("cuda")
        if any(True for _ in _eligible(args)):
            self._session.amp_dtype = str(dtype).rpartition(".")[2]
        return self._call(operator, args, kwargs, dtype)

    def to_fp32(self, operator: OpOverload, args: Args, kwargs: Kwargs) -> object:
        return self._call(operator, args, kwargs, torch.float32)

    def by_dtype_argument(self, operator: OpOverload, args: Args, kwargs: Kwargs) -> object:
        position = [argument.name for argument in operator._schema.arguments].index("dtype")
        unset = len(args) <= position and kwargs.get("dtype") is None
        if unset and any(tensor.dtype != torch.float32 for tensor in _eligible(args)):
            kwargs = {**kwargs, "dtype": torch.float32}
        return operator(*args, **kwargs)

    def to_widest(self, operator: OpOverload, args: Args, kwargs: Kwargs) -> object:
        dtypes = {tensor.dtype for tensor in _eligible(args)}
        widest = next(iter(dtypes)) if len(dtypes) == 1 else torch.float32
        return self._call(operator, args, kwargs, widest)

    def _call(self, operator: OpOverload, args: Args, kwargs: Kwargs, dtype: torch.dtype) -> object:
        cast = [self._cast(value, dtype) for value in args]
        return operator(*cast, **{name: self._cast(value, dtype) for name, value in kwargs.items()})

    def _cast(self, value: object, dtype: torch.dtype) -> object:
        if isinstance(value, (list, tuple)):
            return type(value)(self._cast(item, dtype) for item in value)
        if not _is_eligible(value) or value.dtype == dtype:
            return value
        is_weight = value.is_leaf and value.requires_grad and dtype != torch.float32
        if not is_weight or not torch.is_autocast_cache_enabled():
            return value.to(dtype)
        entry = self.cache.get(id(value))
        if entry is None:
            # Keeping the weight, too, keeps its id from being used again.
            entry = self.cache[id(value)] = (value, value.to(dtype))
        return entry[1]


def _is_eligible(value: object) -> TypeGuard[torch.Tensor]:
    return isinstance(value, torch.Tensor) and value.is_cuda and value.dtype in _FLOATING


def _eligible(values: Iterable[object]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _eligible(value)
        elif _is_eligible(value):
            yield value


def to_autocast(*tensors: Any) -> tuple[Any, ...]:
    """The tensors in the dtype that autocast is on for, for kernels that other patches call."""
    if not torch.is_autocast_enabled("cuda"):
        return tensors
    dtype = torch.get_autocast_dtype("cuda")
    return tuple(None if tensor is None else tensor.to(dtype) for tensor in tensors)


def install_scaler(session: Session) -> None:  # noqa: ARG001
    """GradScaler always makes the optimizer's step.

    It reads from the GPU whether gradients overflowed and skips the step if so. A made-up value is not zero,
    so every step would be skipped and the script would seem to have no training loop.

    Replace the decision, not the read, which costs time on a GPU.
    """

    def step(
        scaler: object,  # noqa: ARG001
        optimizer: torch.optim.Optimizer,
        state: dict[str, dict[object, torch.Tensor]],
        *args: object,
        **kwargs: object,
    ) -> object:
        for infinite in state["found_inf_per_device"].values():
            infinite.item()
        take: Callable[..., object] = optimizer.step
        return take(*args, **kwargs)

    replace(torch.amp.GradScaler, _maybe_opt_step=step)
