"""Whole steps: which are used and judged, and that a network learns what only their sums tell."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from research.training.fit import Table, fit
from research.training.whole_steps import WholeSteps, family_of_model

_CALLS, _STEPS = 6, 120


@pytest.mark.parametrize(
    ("model", "family"),
    [("resnet50", "resnet"), ("tf_efficientnet_b0_ns", "efficientnet"), ("ssl_resnext101_32x4d", "resnext"),
     ("vit_base_patch16_224", "vit"), ("gluon_resnet50_v1b", "resnet"), ("1x1", "1x1")],
)  # fmt: skip
def test_models_are_left_out_with_their_relatives(model: str, family: str) -> None:
    assert family_of_model(model) == family


@given(st.text(alphabet="abcdefgh_0123456789", max_size=20))
def test_every_model_has_a_family(model: str) -> None:
    assert model.replace("gluon_", "").find(family_of_model(model)) >= -1


def made_up(layout_factor: float, seed: int = 0) -> WholeSteps:
    """Steps of six calls, some in a layout that takes so much longer; only sums are told."""
    rng = np.random.default_rng(seed)
    is_slow = rng.integers(0, 2, (_STEPS, _CALLS)).astype(float)
    compute_s = rng.uniform(1e-3, 3e-3, (_STEPS, _CALLS))
    rest_s = rng.uniform(1e-3, 5e-3, _STEPS)
    time_s = rest_s + (compute_s * np.where(is_slow, layout_factor, 1.0)).sum(axis=1)
    features = np.stack([is_slow.ravel(), np.zeros(is_slow.size)], axis=1).astype(np.float32)
    return WholeSteps(
        features=features,
        compute_s=compute_s.ravel(),
        memory_s=np.full(is_slow.size, 1e-9),
        counts=np.ones(is_slow.size),
        step=np.repeat(np.arange(_STEPS), _CALLS),
        rest_s=rest_s,
        time_s=time_s,
    )


def test_a_layout_that_no_kernel_shows_is_learned_from_sums() -> None:
    torch.manual_seed(0)
    kernels = Table(
        features=np.zeros((8, 2), np.float32), num_board=1, compute_s=np.full(8, 1e-3),
        memory_s=np.full(8, 1e-9), floor_s=np.full(8, 2e-6), event_share=np.ones(8),
        time_s=np.full(8, 1e-3 + 2e-6), weight=np.ones(8),
    )  # fmt: skip
    network = fit(
        kernels,
        seed=0,
        steps=250,
        units=8,
        members=4,
        board_noise=0.0,
        say=lambda _: None,
        whole=made_up(2.0),
    )
    both = network.outputs(np.array([[0.0, 0.0], [1.0, 0.0]], np.float32))[..., 0].mean(axis=0)
    assert np.exp(both[1] - both[0]) == pytest.approx(2.0, rel=0.15)
