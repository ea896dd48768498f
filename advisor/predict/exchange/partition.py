"""Which tensors an optimizer updates, and how ranks share them that share its state.

PyTorch's ZeroRedundancyOptimizer gives each tensor, the largest first, to the rank that has least. So a large
embedding is one rank's, and the first rank's part of the state may be far above an equal one.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.work import tensor_bytes

# The allocator's blocks, in which a trace counts its gradients; and what an optimizer's list of tensors may
# miss of them all the same.
_BLOCK_BYTES, _OFF = 512, 0.01


def updated_tensors(ops: Sequence[Op], gradient_bytes: int) -> list[TensorSpec]:
    """The first tensors of an optimizer's call that have as many bytes as all gradients."""
    for op in ops:
        if op.phase is Phase.OPTIMIZER and len(op.inputs) > 1:
            sizes = accumulate(
                -(-tensor_bytes(tensor) // _BLOCK_BYTES) * _BLOCK_BYTES for tensor in op.inputs
            )
            for count, size in enumerate(sizes, 1):
                if abs(size - gradient_bytes) <= _OFF * gradient_bytes:
                    return list(op.inputs[:count])
    return []


@lru_cache(maxsize=256)
def first_part(sizes: tuple[int, ...], ranks: int) -> float:
    """The share of tensors of these sizes that the first of so many ranks updates.

    >>> first_part((40, 30, 20, 10), 2), first_part((70, 10, 10, 10), 4)
    (0.5, 0.7)
    """
    # No more of them get any, and a file may tell any number of ranks.
    parts = [(0, rank) for rank in range(min(ranks, len(sizes)))]
    for size in sorted(sizes, reverse=True):
        held, rank = parts[0]
        heapq.heapreplace(parts, (held + size, rank))
    return next(held for held, rank in parts if rank == 0) / sum(sizes)
