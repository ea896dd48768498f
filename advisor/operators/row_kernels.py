"""How PyTorch's kernels share matrices among blocks: what of a call is slow, and what waits.

Sources: ``ATen/native/cuda/PersistentSoftmax.cuh`` of PyTorch 2.13 for rows of up to 1,024 columns; for
others the blocks that PyTorch launched, which NeuSight recorded with its kernels of softmax; for the rest the
steps in which measured times grow (research/docs/accuracy/streams.md).
"""

from __future__ import annotations

from dataclasses import replace

from advisor.operators.cycles import Work

# A warp holds a row of softmax up to so many columns; longer ones take a block each, which keeps the row in
# shared memory as long as it fits.
SHORT_ROW = 1024
_SHARED_BYTES = 64 * 1024
LONG_ROWS, LONGEST_ROWS = ", long rows", ", longest rows"
# What a block reads at once for each thread: 16 bytes of 16-bit numbers.
_VECTOR = 8
_WARP, _BLOCK = 32, 1024
# Two passes over a row: the second finds it in the SM's L1 cache while its 16 rows of 12 KB fit.
_CACHED_COLUMNS = 6144
# The blocks of gradients of weights take this many columns each, and keep an SM busy one at a time.
_STRIP, _WHOLE_SM = 32, 2048


def row_work(kind: str, rows: int, columns: int, num_bytes: int) -> Work[float]:
    """The work of a norm or softmax, whose kind ``row_kind`` tells.

    Args:
        kind: of ``streams.toml``.
        rows: that are normalised, each by itself.
        columns: of each.
        num_bytes: read and written at least.
    """
    slow = steps = blocks = 0
    threads = _BLOCK
    if kind.endswith(LONG_ROWS):
        slow = columns % (_VECTOR * _softmax_threads(columns))
        if "forward" in kind:
            steps, blocks = 1, rows
    elif "norm" in kind:
        slow = max(0, columns - _CACHED_COLUMNS)
        if "backward" in kind:
            steps, blocks, threads = rows, -(-columns // _STRIP), _WHOLE_SM
    return Work(
        num_bytes=num_bytes,
        elements=rows * columns,
        slow_elements=rows * slow,
        rows=rows,
        steps=steps,
        blocks=blocks,
        block_threads=threads,
    )


def row_kind(kind: str, columns: int, item_bytes: int = 2) -> str:
    """The kind of ``streams.toml``: softmax has other kernels for long rows and for vocabularies."""
    if "softmax" not in kind or columns <= SHORT_ROW:
        return kind
    return kind + (LONG_ROWS if columns * item_bytes <= _SHARED_BYTES else LONGEST_ROWS)


def plain_work(elements: int, num_bytes: int) -> Work[float]:
    """The work of a kernel that takes element by element."""
    return Work(
        num_bytes=num_bytes,
        elements=elements,
        slow_elements=0,
        rows=0,
        steps=0,
        blocks=0,
        block_threads=_BLOCK,
    )


def scatter_work(picks: int, table: int, width: int, num_bytes: int) -> Work[float]:
    """The work of adding up gradients of ``picks`` rows in a table of so many, each row once at most."""
    plain = plain_work(picks * width, num_bytes)
    return replace(plain, rows=picks, slow_elements=min(picks, table) * width)


def _softmax_threads(columns: int) -> int:
    """Of the block that takes a row: a power of two, at least half of the row's vectors."""
    most = min(columns // _VECTOR, _BLOCK)
    threads = 1
    while threads < most // 2:
        threads *= 2
    return max(threads, _WARP)
