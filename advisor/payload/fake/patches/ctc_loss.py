"""CTC loss whose lengths are on the CPU, as most scripts have them.

C++ makes a tensor on the GPU of them to take the mean, but of a subclass of Tensor, as ours are, it takes the
lengths as they are: losses on the GPU would be divided by lengths on the CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Wrap ``torch.ctc_loss``, which ``torch.nn.functional.ctc_loss`` and ``torch.nn.CTCLoss`` call."""
    original: Callable[..., torch.Tensor] = torch.ctc_loss

    @functools.wraps(original)
    def ctc_loss(
        log_probs: torch.Tensor,
        targets: torch.Tensor,
        input_lengths: object,
        target_lengths: object,
        *args: object,
        **kwargs: object,
    ) -> torch.Tensor:
        if session.is_fake(log_probs) and isinstance(target_lengths, torch.Tensor):
            target_lengths = target_lengths.to(log_probs.device)
        return original(log_probs, targets, input_lengths, target_lengths, *args, **kwargs)

    replace(torch, ctc_loss=ctc_loss)
