"""The kernels that a GPU would use, where a CPU build of torch chooses others."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ...composite import ONE_KERNEL
from ...protocol import Warned
from ...replacing import Original, replace, when_imported, wrap
from ...session import Session
from ..untouched import leave_unwritten
from .autocast import to_autocast


def install_dropout(session: Session) -> None:
    """Dropout by its fused kernel, as on CUDA.

    C++ chooses ``native_dropout`` for CUDA tensors only; ours would get three kernels and a mask of floats in
    place of bytes, so more memory.

    Wrap ``torch.nn.functional.dropout`` and ``torch.dropout``.
    """

    def dropout(
        original: Original, input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False  # noqa: A002
    ) -> object:  # fmt: skip
        if session.is_fake(input) and training and not inplace and 0 < p < 1:
            return torch.native_dropout(input, p, True)[0]
        return original(input, p, training, inplace)

    def torch_dropout(original: Original, input: torch.Tensor, p: float, train: bool) -> object:  # noqa: A002
        if session.is_fake(input) and train and 0 < p < 1:
            return torch.native_dropout(input, p, True)[0]
        return original(input, p, train)

    wrap(torch.nn.functional, "dropout", dropout)
    wrap(torch, "dropout", torch_dropout)


def install_single_kernels(session: Session) -> None:
    """Operators with one kernel on CUDA that other devices take apart: RMS norm, gradients of SiLU and Mish.

    A build of torch without CUDA takes them apart above the dispatch mode, since it knows no kernel of theirs
    for CUDA tensors: seven kernels and six temporary tensors in place of one for an RMS norm.

    Tell torch of the kernels, which the mode never lets it call; the library object outlives the process.

    Where there is a kernel, torch's formula of its gradient holds in place of that of the parts.
    """
    session.single_kernels_library = library = torch.library.Library("aten", "IMPL")
    for name in sorted(ONE_KERNEL):
        if not torch._C._dispatch_has_kernel_for_dispatch_key(name, "CUDA"):
            library.impl(name, _unreachable, "CUDA")


def _unreachable(*_: object, **__: object) -> object:
    raise AssertionError("a CUDA kernel was called on the pretended GPU")


aten = torch.ops.aten
_HALF = (torch.float16, torch.bfloat16)
_CUDNN_FIRST_MAJORS = (9, 10)
_CUDNN_MOST = 128


def install_attention(session: Session) -> None:
    """Scaled dot-product attention by the kernel that CUDA would choose.

    C++ chooses by the device it knows, which is meta, and takes the plain mathematics: that stores the
    attention matrix and doubles the memory of a GPT. On CUDA: flash attention for FP16 and BF16 without a
    mask, else the memory-efficient kernel. Where the script allows neither but forbids the mathematics as
    well, or cuDNN's kernel comes before it, the memory-efficient one stands in: all fused kernels take as
    much memory. Which one another GPU takes follows from what the script allows
    (``recording/attention_choice.py``).

    Wrap ``torch.nn.functional.scaled_dot_product_attention``.
    """
    functional = torch.nn.functional

    def attention(
        original: Original, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
        attn_mask: torch.Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
        scale: float | None = None, enable_gqa: bool = False,
    ) -> object:  # fmt: skip
        # C++ asks a DTensor for its device, too, and its mathematics would mix plain tensors with it.
        if not session.is_fake(getattr(query, "_local_tensor", query)) or query.dim() != 4:
            return original(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            )
        query, key, value = to_autocast(query, key, value)
        if attn_mask is None and _flash_can(session, query, key, value):
            # It reads a head of the keys for several of the query; the other kernels want copies.
            return aten._scaled_dot_product_flash_attention(
                query, key, value, dropout_p, is_causal, False, scale=scale
            )[0]
        if enable_gqa:
            key, value = _repeat_heads(query, key), _repeat_heads(query, value)
        if _fused_can(session, query, value):
            if attn_mask is not None:
                attn_mask = _additive(attn_mask, query.dtype).expand(*query.shape[:3], key.size(2))
            keeps_sums = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
            return aten._scaled_dot_product_efficient_attention(
                query, key, value, attn_mask, keeps_sums, dropout_p, is_causal, scale=scale
            )[0]
        # The plain mathematics, which C++ takes for ours anyway.
        return original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)

    wrap(functional, "scaled_dot_product_attention", attention)


_GRID = 64
"""Places of a mask that are looked at, along each side."""


def install_flex_attention(session: Session) -> None:
    """FlexAttention as a fused kernel, as it compiles to one: causal where its mask is as sparse as that.

    Its own way without a GPU stores the attention matrix.

    Wrap ``flex_attention`` once it is imported.
    """

    def flex(original: Original, *args: Any, **kwargs: Any) -> object:
        given = inspect.signature(original).bind(*args, **kwargs).arguments
        query, mask = given["query"], given.get("block_mask")
        if not session.is_fake(getattr(query, "_local_tensor", query)) or given.get("return_aux"):
            return original(*args, **kwargs)
        session.pretending.assumptions["a mask of flex_attention leaves out half or nothing"] = None
        options = {name: given[name] for name in ("scale", "enable_gqa") if name in given}
        out = torch.nn.functional.scaled_dot_product_attention(
            query, given["key"], given["value"], is_causal=_is_half_empty(mask), **options
        )
        return (out, query.new_empty(query.shape[:-1])) if given.get("return_lse") else out

    name = "torch.nn.attention.flex_attention"
    when_imported(name, lambda module: wrap(module, "flex_attention", flex))


def _is_half_empty(block_mask: Any) -> bool:
    """Whether a sample of the mask's places says so; no where its rule cannot be asked here."""
    if block_mask is None:
        return False
    # The script's default device may be the GPU, where nothing is computed.
    rows, columns = (
        torch.arange(min(_GRID, size), device="cpu") * max(size // _GRID, 1)
        for size in block_mask.seq_lengths
    )
    first = torch.zeros((), dtype=torch.int64, device="cpu")
    try:
        kept = block_mask.mask_mod(first, first, rows[:, None], columns[None])
        return not isinstance(kept, FakeTensor) and float(kept.float().mean()) < 0.6
    except Exception:  # noqa: BLE001 - it is the script's, and may look into tensors of the GPU
        return False


def _repeat_heads(query: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    repeats = query.size(-3) // tensor.size(-3)
    return tensor if repeats == 1 else tensor.repeat_interleave(repeats, -3)


def _flash_can(session: Session, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    head = query.size(-1)
    return (
        session.gpu.major >= 8
        and torch.backends.cuda.flash_sdp_enabled()
        and query.dtype in _HALF
        and head == key.size(-1) == value.size(-1)
        and head <= 256
        and head % 8 == 0
    )


def _fused_can(session: Session, query: torch.Tensor, value: torch.Tensor) -> bool:
    if query.dtype is torch.float64:
        return False
    cuda = torch.backends.cuda
    if cuda.mem_efficient_sdp_enabled() or not cuda.math_sdp_enabled():
        return True
    sizes = query.size(-1), value.size(-1)
    return (
        session.gpu.major in _CUDNN_FIRST_MAJORS
        and cuda.cudnn_sdp_enabled()
        and query.dtype in _HALF
        and max(sizes) <= _CUDNN_MOST
        and not any(size % 8 for size in sizes)
    )


def _additive(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if mask.dtype is not torch.bool:
        return mask.to(dtype)
    zeros = torch.zeros_like(mask, dtype=dtype)
    return zeros.masked_fill(mask.logical_not(), float("-inf"))


def install_ctc_loss(session: Session) -> None:
    """CTC loss whose lengths are on the CPU, as most scripts have them.

    C++ makes a tensor on the GPU of them to take the mean, but of a subclass of Tensor, as ours are, it takes
    the lengths as they are: losses on the GPU would be divided by lengths on the CPU.

    Wrap ``torch.ctc_loss``, which ``torch.nn.functional.ctc_loss`` and ``torch.nn.CTCLoss`` call.
    """

    def ctc_loss(
        original: Original, log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: object,
        target_lengths: object, *args: object, **kwargs: object,
    ) -> object:  # fmt: skip
        if session.is_fake(log_probs) and isinstance(target_lengths, torch.Tensor):
            target_lengths = target_lengths.to(log_probs.device)
        return original(log_probs, targets, input_lengths, target_lengths, *args, **kwargs)

    wrap(torch, "ctc_loss", ctc_loss)


_MIN_EPSILON = 1e-5
_MOST_SAMPLES = {True: 880_801, False: 65_535}  # by training
_MOST_ELEMENTS = 2**31 - 1


def install_batch_norm(session: Session) -> None:
    """Batch normalisation by cuDNN's kernel.

    C++ chooses cuDNN for CUDA tensors only and takes ours for others, so a trace would name an operator that
    a GPU does not run. The conditions are those of ``aten/src/ATen/native/Normalization.cpp``.

    Wrap ``torch.batch_norm``.
    """

    def batch_norm(
        original: Original, input: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,  # noqa: A002
        running_mean: torch.Tensor | None, running_var: torch.Tensor | None, training: bool, momentum: float,
        eps: float, cudnn_enabled: bool,
    ) -> object:  # fmt: skip
        given = (input, weight, bias, running_mean, running_var, training, momentum, eps)
        has_statistics = (running_mean is None) == (running_var is None) and (
            training or running_mean is not None
        )
        is_cudnns = cudnn_enabled and has_statistics and eps >= _MIN_EPSILON and session.is_fake(input)
        if is_cudnns and _cudnn_takes(input, weight, bias, training):
            return torch.ops.aten.cudnn_batch_norm(*given)[0]
        return original(*given, cudnn_enabled)

    wrap(torch, "batch_norm", batch_norm)


def _cudnn_takes(
    source: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, training: bool
) -> bool:
    if weight is None or bias is None or torch.bfloat16 in (source.dtype, weight.dtype):
        return False
    if source.dtype is torch.float16 and weight.dtype is not torch.float32:
        return False
    fits = source.size(0) <= _MOST_SAMPLES[training] and source.numel() < _MOST_ELEMENTS
    return bool(source.dim() >= 3 and fits)


def install_memory_format(session: Session) -> None:
    """Convolutions keep ``channels_last``, as cuDNN does.

    FakeTensor asks C++ which library computes a convolution and in which memory format that library answers.
    A build of torch without CUDA knows no cuDNN and answers that all is contiguous, so after the first
    convolution nothing of a script's ``channels_last`` would be left. The conditions are those of
    ``cudnn_conv_suggest_memory_format`` in ``aten/src/ATen/native/ConvUtils.h``.

    Replace what FakeTensor asks.
    """
    from torch._prims_common import suggest_memory_format

    def memory_format(
        original: Original, source: torch.Tensor, weight: torch.Tensor, *backend: Any
    ) -> object:
        if not session.is_fake(source):
            return original(source, weight, *backend)
        asked = {suggest_memory_format(source), suggest_memory_format(weight)} - {torch.contiguous_format}
        # cuDNN has no such kernels in float64.
        if torch.float64 in (source.dtype, weight.dtype) or not asked:
            return torch.contiguous_format
        return asked.pop()

    wrap(torch._C, "_conv_determine_backend_memory_format", memory_format)


# cuDNN's numbers for the kinds of cell.
_RELU, _TANH, _LSTM, _GRU = 0, 1, 2, 3


def install_rnn(session: Session) -> None:
    """LSTM and GRU by cuDNN's kernel.

    C++ chooses cuDNN for CUDA tensors only; ours would be unrolled into thousands of small operators.

    Wrap the functions that ``torch.nn.modules.rnn`` calls.
    """
    functions = vars(torch.nn.modules.rnn)["_VF"]
    kinds = (("rnn_relu", _RELU), ("rnn_tanh", _TANH), ("lstm", _LSTM), ("gru", _GRU))
    for name, kind in kinds:
        wrap(functions, name, functools.partial(_run, session, kind))


def _run(session: Session, kind: int, original: Original, *args: Any) -> object:
    if not session.is_fake(args[0]):
        return original(*args)
    # Packed: data, batch_sizes, hidden, weights, ...; else: data, hidden, weights, ..., batch_first.
    if isinstance(args[3], bool):
        data, hidden, weights, _, layers, dropout, train, bidirectional, batch_first = args
        sizes: list[int] = []
    else:
        data, batch_sizes, hidden, weights, _, layers, dropout, train, bidirectional = args
        sizes, batch_first = batch_sizes.tolist(), False
    state, cell = hidden if kind == _LSTM else (hidden, None)
    per_layer = len(weights) // (layers * (2 if bidirectional else 1))
    if train:
        session.warn(Warned.PROFILE_LACKS, what="recurrent-memory")
    result = _call(
        data, list(weights), per_layer, state, cell, kind, layers, batch_first,
        dropout, train, bidirectional, sizes,
    )  # fmt: skip
    return result[:3] if kind == _LSTM else result[:2]


def _call(
    data: Any, weights: list[Any], per_layer: int, state: Any, cell: Any, kind: int, layers: int,
    batch_first: bool, dropout: float, train: bool, bidirectional: bool, sizes: list[int],
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    data, state, cell, *weights = to_autocast(data, state, cell, *weights)
    # On CUDA the weights are views of one flat buffer, so this one takes no memory.
    buffer = torch.empty(0, dtype=data.dtype, device=data.device)
    hidden_size = (state if cell is None else cell).shape[-1]
    return torch._cudnn_rnn(
        data, weights, per_layer, buffer, state, cell, kind, hidden_size, 0, layers, batch_first,
        float(dropout), bool(train), bool(bidirectional), sizes, None,
    )  # fmt: skip


def install_rnn_cells(session: Session) -> None:
    """LSTMCell and GRUCell by CUDA's fused kernels.

    C++ chooses them for CUDA tensors only; ours would run each gate's arithmetic by kernels of its own, ten
    times as many, and loops over cells are made of little else.

    Wrap the functions that ``nn.LSTMCell`` and ``nn.GRUCell`` call.
    """
    functions = vars(torch.nn.modules.rnn)["_VF"]
    lstm, gru = functions.lstm_cell, functions.gru_cell

    def lstm_cell(data: torch.Tensor, state: Iterable[object], *weights: Any) -> object:
        if not session.is_fake(data) or None in _biases(weights):
            return lstm(data, state, *weights)
        (data, hidden, cell), weights = to_autocast(data, *state), to_autocast(*weights)
        gates = _gates(data, hidden, weights)
        return aten._thnn_fused_lstm_cell(*gates, cell, *_biases(weights))[:2]

    def gru_cell(data: torch.Tensor, hidden: torch.Tensor, *weights: Any) -> object:
        if not session.is_fake(data) or None in _biases(weights):
            return gru(data, hidden, *weights)
        (data, hidden), weights = to_autocast(data, hidden), to_autocast(*weights)
        return aten._thnn_fused_gru_cell(*_gates(data, hidden, weights), hidden, *_biases(weights))[0]

    replace(functions, lstm_cell=lstm_cell, gru_cell=gru_cell)


def _biases(weights: Any) -> list[object]:
    # Without biases the kernels exist, too, but have no shape rules.
    return [*weights[2:4]] if len(weights) == 4 else [None]


def _gates(data: torch.Tensor, hidden: torch.Tensor, weights: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.matmul(data, weights[0].t()), torch.matmul(hidden, weights[1].t())


def install_optimizers(session: Session) -> None:  # noqa: ARG001
    """Optimizers work on lists of tensors, as they do on CUDA.

    The foreach kernels are taken only if every parameter's type is on a list; fake ones are not on it, and
    each parameter would be updated by its own kernels. Lists are also grouped by the device that C++ sees,
    which is meta, where gradient clipping finds no foreach kernels.

    Put FakeTensor on both copies of the list, and CUDA into the groups.
    """
    # torch.optim hides its submodules, so they are not reached as attributes.
    for name in ("torch.optim.optimizer", "torch.utils._foreach_utils"):
        supported = sys.modules[name]._foreach_supported_types
        if FakeTensor not in supported:
            supported.append(FakeTensor)

    def group(original: Original, *args: Any, **kwargs: Any) -> object:
        groups = original(*args, **kwargs)
        return {
            ((torch.device("cuda", 0) if device.type == "meta" else device), dtype): group
            for (device, dtype), group in groups.items()
        }

    wrap(torch._C, "_group_tensors_by_device_and_dtype", group)


_RANDOM = (
    "uniform_", "normal_", "trunc_normal_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_",
    "xavier_normal_", "orthogonal_", "_no_grad_uniform_", "_no_grad_normal_",
    "_no_grad_trunc_normal_",
)  # fmt: skip


def install_initialisation(session: Session) -> None:
    """Random initial weights are not drawn where they are many.

    The values do not matter and drawing them takes seconds. Few are drawn, since a script may compute with
    them on the CPU. Many, in memory that was not written to, stay zeros.

    Wrap the random fillers of ``torch.nn.init``.
    """

    def fill(original: Original, tensor: Any, *args: object, **kwargs: object) -> object:
        if session.is_fake(tensor) or tensor.device.type != "cpu":
            return tensor
        return tensor if leave_unwritten(tensor) else original(tensor, *args, **kwargs)

    for name in _RANDOM:
        if hasattr(torch.nn.init, name):
            wrap(torch.nn.init, name, fill)
