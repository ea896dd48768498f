"""Networks of NVIDIA's published tables, one iteration each, profiled once however many tables ask.

Their modules define modules of torch, which takes a second to import: they are imported when asked for.
"""

from __future__ import annotations

import warnings
from functools import cache

from advisor.core.values import Trace

# Tokens of both languages in a pair of sentences of GNMT, as its throughput counts them: without padding.
# Batches are drawn from five buckets of lengths 0 to 9, 10 to 19, ... of the longer sentence, and padded to
# their longest on either side. So 0.76 to 0.80 of the 28 tokens that a sentence takes on average are words,
# for any spread of lengths that fits 50 tokens (lognormal of median 20 to 28, sigma 0.5 to 0.7).
GNMT_LENGTH = 28
GNMT_TOKENS = 2 * GNMT_LENGTH * 0.78


@cache
def gnmt(amp: bool, batch_size: int) -> Trace:
    """GNMT v2, a batch of sentences."""
    from research.lambda_networks import profiled
    from research.lambda_steps import Work

    # A torch for CPUs alone says so of each recurrent layer.
    warnings.filterwarnings("ignore", message="PyTorch was compiled without cuDNN")
    return profiled(Work("gnmt", "o2" if amp else "tf32"), batch_size)


@cache
def transformer(amp: bool, num_tokens: int) -> Trace:
    """The big Transformer, whose batch is given in tokens."""
    from research.translation import transformer as build

    return build(amp, num_tokens)


@cache
def transformer_xl(amp: bool, batch_size: int) -> Trace:
    """The base Transformer-XL, a batch of sequences."""
    from research.transformer_xl import transformer_xl as build

    return build(amp, batch_size)
