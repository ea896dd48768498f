"""Four published sets of kernel times of products on tensor cores, read as one kind of table.

Columns: ``gpu, kind, dtype, scaling, batch, m, n, k, is_left_t, is_right_t, has_addend, num_replayed,
time_s`` for ``batch`` products of [m, k] with [k, n].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.predict.roofline import KERNEL_FLOOR_S

if TYPE_CHECKING:
    import pandas as pd

FORWARD, BACKWARD, FP8 = "half product", "half product backward", "fp8 product"
# What one scale covers: the whole tensor; a row of the left and a column of the right operand; 1 x 128 and
# 128 x 128 elements.
SCALINGS = ("per_tensor", "per_token_and_channel", "block_128")
_US = 1e-6
# DeepBench times from the host in whole microseconds.
_LEAST_S = 20 * _US


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One file."""

    file: str
    """Below the folder of measurements."""
    share: float
    """Of its shapes, that training reads."""
    cite: str
    """Source, licence and commit."""
    read: Callable[[Path], pd.DataFrame]


def _rows(frame: pd.DataFrame, **columns: object) -> pd.DataFrame:
    """The columns that all tables have; what is not named is what most products are."""
    import pandas as pd

    usual = {"scaling": "", "batch": 1, "is_left_t": False, "is_right_t": False, "has_addend": False}
    rows = pd.DataFrame({"gpu": frame.gpu, **usual, "num_replayed": float("inf"), **columns})
    return rows.astype(dict.fromkeys(("batch", "m", "n", "k"), int))


def _bursts(path: Path) -> pd.DataFrame:
    """Bursts of random operands: uninitialised ones run faster; what is sustained has a constant of its own.

    A CUDA graph replays up to six products of sglang, each on operands of its own, and one of TensorRT-LLM's
    inputs on one to five weights; a batched product is alone.
    """
    import pandas as pd

    frame = pd.read_csv(path)
    frame = frame[(frame.weights == "random") & (frame.sustained == 0)]
    is_linear = frame.kernel == "linear"
    return _rows(
        frame,
        kind=FORWARD,
        dtype="bfloat16",
        batch=frame.batch,
        m=frame.m,
        n=frame.n,
        k=frame.k,
        is_right_t=is_linear,
        num_replayed=(is_linear & (frame.framework == "sglang")).map({True: 6, False: 1}),
        time_s=frame.time_us * _US,
    )


def _scaled(path: Path) -> pd.DataFrame:
    """The times hold a kernel that quantises the input, whose launch is taken off."""
    import pandas as pd

    frame = pd.read_csv(path)
    time_s = (frame.time_us * _US - KERNEL_FLOOR_S).clip(lower=KERNEL_FLOOR_S)
    return _rows(
        frame,
        kind=FP8,
        dtype="float8_e4m3fn",
        scaling=frame.scaling,
        m=frame.m,
        n=frame.n,
        k=frame.k,
        is_right_t=True,
        num_replayed=1,
        time_s=time_s,
    )


def _vidur(path: Path) -> pd.DataFrame:
    """The A40 alone: of the others there are more shapes elsewhere."""
    import pandas as pd

    frame = pd.read_csv(path)
    frame = frame[(frame.kind == "linear") & (frame.gpu == "A40")]
    frame = frame.drop_duplicates(["gpu", "m", "n", "k"])
    return _rows(
        frame,
        kind=FORWARD,
        dtype="float16",
        m=frame.m,
        n=frame.n,
        k=frame.k,
        is_right_t=True,
        time_s=frame.time_us * _US,
    )


def _deepbench(path: Path) -> pd.DataFrame:
    """CuBLAS stores by columns, so its product is ours with operands exchanged; it adds to the result."""
    import pandas as pd

    frame = pd.read_csv(path)
    frame = frame[(frame.math == "fp16_tensor_core_fp32_add") & (frame.time_us * _US >= _LEAST_S)]
    return _rows(
        frame,
        kind=FORWARD,
        dtype="float16",
        m=frame.n_run,
        n=frame.m_run,
        k=frame.k_run,
        is_left_t=frame.b_t == "T",
        is_right_t=frame.a_t == "T",
        has_addend=True,
        time_s=frame.time_us * _US,
    )


def _transformers(path: Path) -> pd.DataFrame:
    """Linear layers and attention's products, forward, and backward as two products of equal FLOPs.

    The sizes are not recorded. With hidden size h, tensor-parallel degree t and b sequences of s tokens,
    linear1 is [b s, h] x [h, 3 h / t] (queries, keys and values), linear2 [b s, h / t] x [h / t, h], linear3
    widens to 4 h / t, linear4 leads back. With d = h / heads, baddbmm is b heads / t products of
    [s, d] x [d, s], and bmm of [s, s] x [s, d]. So read, FLOPs over time are the rates that the table states,
    and stay below every peak. The last layer's vocabulary is not recorded, so it is left out.
    """
    import pandas as pd

    frame = pd.read_csv(path, low_memory=False)
    frame = frame[frame.flag.isna() & frame.op.isin([*_LINEAR, *_BATCHED])]
    h, t = frame.hidden, frame.tensor_parallel
    tokens, heads = frame.batch * frame.seq_len, frame.heads / t
    parts = []
    for name, (columns, inner) in _LINEAR.items():
        own = frame.op == name
        n, k = columns * h / t if columns else h, h if inner is None else inner * h / t
        sizes = pd.DataFrame({"batch": 1, "m": tokens, "n": n, "k": k})[own]
        parts.append(_both_ways(frame[own], sizes, is_right_t=True))
    for name, is_scores in _BATCHED.items():
        own = frame.op == name
        d, s = h / frame.heads, frame.seq_len
        n, k = (s, d) if is_scores else (d, s)
        sizes = pd.DataFrame({"batch": frame.batch * heads, "m": s, "n": n, "k": k})[own]
        parts.append(_both_ways(frame[own], sizes, is_right_t=is_scores))
    return pd.concat(parts, ignore_index=True)


# Columns and inner size as multiples of h / t; None: h itself.
_LINEAR: dict[str, tuple[float | None, float | None]] = {
    "linear1": (3, None), "linear2": (None, 1), "linear3": (4, None), "linear4": (None, 4),
}  # fmt: skip
_BATCHED = {"baddbmm": True, "bmm": False}


def _both_ways(frame: pd.DataFrame, sizes: pd.DataFrame, *, is_right_t: bool) -> pd.DataFrame:
    """The product of x [m, k] with w [k, n], and its gradients; sizes that are not whole are left out.

    dx = dy w' is [m, n] x [n, k], dw = x' dy has inner size m. Their sum was measured: each gets half.
    """
    import pandas as pd

    whole = (sizes % 1 == 0).all(axis=1)
    frame, sizes = frame[whole], sizes[whole]
    batch, m, n, k = (sizes[name] for name in ("batch", "m", "n", "k"))
    forward_s, half_s = frame.fwd_us * _US, frame.bwd_us * _US / 2
    usual = {"dtype": "float16", "batch": batch}
    # A weight that is stored transposed, as [n, k], has a gradient of that shape: dy' x.
    of_right = {"m": n, "n": k} if is_right_t else {"m": k, "n": n}
    return pd.concat(
        [
            _rows(frame, **usual, kind=FORWARD, m=m, n=n, k=k, is_right_t=is_right_t, time_s=forward_s),
            _rows(frame, **usual, kind=BACKWARD, m=m, n=k, k=n, is_right_t=not is_right_t, time_s=half_s),
            _rows(frame, **usual, kind=BACKWARD, **of_right, k=m, is_left_t=True, time_s=half_s),
        ],
        ignore_index=True,
    )


TABLES = (
    Table(
        file="tensor_cores/gemm_tensor_cores.csv.gz",
        share=0.66,
        cite="aiconfigurator (Apache-2.0, commit 095f58a51c4c, 2026-08-21)",
        read=_bursts,
    ),
    Table(
        file="tensor_cores/gemm_tensor_cores_fp8.csv.gz",
        share=0.25,
        cite="aiconfigurator's FP8 products (the same)",
        read=_scaled,
    ),
    Table(
        file="tensor_cores/linear_and_pointwise_vidur.csv.gz",
        share=1.0,
        cite="Vidur (MIT, commit 7d47513363ec, 2024-11-19)",
        read=_vidur,
    ),
    Table(
        file="tensor_cores/deepbench_gemm.csv.gz",
        share=1.0,
        cite="DeepBench (Apache-2.0, commit da81ba782073, 2020-08-11)",
        read=_deepbench,
    ),
    Table(
        file="published/icicle_ops_fwd_bwd_a100_gh200.csv.gz",
        share=1.0,
        cite="DebarghaG/estimate-train-time (MIT)",
        read=_transformers,
    ),
)
