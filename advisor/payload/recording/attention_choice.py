"""Which kernels of attention a script allows, where it does not leave the choice to PyTorch.

``sdpa_kernel``, ``enable_flash_sdp`` and the like set switches of the process. Which kernel runs follows
from them and from the GPU, so a trace that is to tell of other GPUs keeps the switches beside the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .recorder import TensorKey

Choice = tuple[tuple[str, object], ...]
_FUSED = "aten::_scaled_dot_product_"
_BACKENDS = torch.backends.cuda
# By their number in torch.nn.attention.SDPBackend.
_SWITCHES: dict[int, tuple[str, Callable[[], bool]]] = {
    0: ("math", _BACKENDS.math_sdp_enabled),
    1: ("flash", _BACKENDS.flash_sdp_enabled),
    2: ("efficient", _BACKENDS.mem_efficient_sdp_enabled),
    3: ("cudnn", _BACKENDS.cudnn_sdp_enabled),
}
# PyTorch itself puts this one in place on GPUs of compute capability 9.0 and 10.0.
_CUDNN_FIRST = (3, 1, 2, 0)


class AttentionChoice:
    """Attributes of calls of fused attention; none where all kernels are allowed in PyTorch's order.

    A backward pass runs after the script's ``with`` block has ended, so it has the choice of the last forward
    pass over tensors of the same sizes.
    """

    def __init__(self) -> None:
        self._usual_order = _order()
        self._of_forward: dict[object, Choice] = {}

    def of(self, name: str, inputs: Sequence[TensorKey]) -> Choice:
        """``backends`` that a call allows; ``prefers_backends`` if they are in the script's own order."""
        if not name.startswith(_FUSED):
            return ()
        is_backward = name.endswith("_backward")
        sizes = tuple((shape, dtype) for shape, dtype, _ in inputs[is_backward : is_backward + 3])
        if is_backward:
            return self._of_forward.get(sizes, ())
        choice = self._of_forward[sizes] = self._now()
        return choice

    def _now(self) -> Choice:
        order = _order()
        switches = [_SWITCHES[number] for number in order]
        allowed = tuple(name for name, is_enabled in switches if is_enabled())
        is_whole = len(allowed) == len(order)
        if order == self._usual_order or (is_whole and order == _CUDNN_FIRST):
            return () if is_whole else (("backends", allowed),)
        return ("backends", allowed), ("prefers_backends", True)


def _order() -> tuple[int, ...]:
    return tuple(number for number in torch._C._get_sdp_priority_order() if number in _SWITCHES)
