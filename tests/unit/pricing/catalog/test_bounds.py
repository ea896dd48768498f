"""What a GPU-hour may cost: real prices are inside, and nothing else decides."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.errors import CatalogError
from advisor.core.values import Interval
from advisor.pricing.price_checks import (
    ANY_GPU,
    BOUNDS_COLUMNS,
    BOUNDS_FILE,
    has_possible_prices,
    is_possible,
    load_bounds,
    possible_points,
    read_bounds,
)
from advisor.pricing.refresh import checked
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import SnapshotSource
from tests.builders import make_offer
from tests.unit.pricing.test_bad_sources import part, point
from tools import build_price_bounds

SHIPPED = [offer for part in SnapshotSource().offers(OfferQuery()) for offer in part.offers]


def test_every_shipped_price_is_possible() -> None:
    assert len(SHIPPED) == 3108
    assert not [offer for offer in SHIPPED if not has_possible_prices(offer)]


def test_the_file_is_what_the_tool_makes_of_the_shipped_prices(tmp_path: Path) -> None:
    assert build_price_bounds.main(["--out", str(tmp_path)]) == 0
    assert read_bounds(tmp_path / BOUNDS_FILE) == load_bounds()


@pytest.mark.parametrize("gpu", [*load_bounds(), "aws B400"])
@pytest.mark.parametrize("num_gpus", [1, 8])
def test_bounds_are_of_one_gpu(gpu: str, num_gpus: int) -> None:
    bounds = load_bounds().get(gpu, load_bounds()[ANY_GPU])
    low, high = num_gpus * bounds.lowest_usd_per_gpu_h, num_gpus * bounds.highest_usd_per_gpu_h
    assert is_possible(low, gpu, num_gpus)
    assert is_possible(high, gpu, num_gpus)
    for usd in (0.0, -1.0, 1e-9, 1e-5, low * 0.99, high * 1.01, 1e9, math.inf, -math.inf, math.nan):
        assert not is_possible(usd, gpu, num_gpus)


@pytest.mark.parametrize(
    "changes",
    [
        {"list_usd_per_h": 1e-9},
        {"contracted_usd_per_h": 1e9},
        {"effective_usd_per_h": 1e-9},
        {"spot_usd_per_h": Interval(p10=1e-9, p50=0.2, p90=0.3)},
    ],
)
def test_a_plug_ins_impossible_price_is_a_gap(changes: dict[str, object]) -> None:
    sound, wrong = make_offer("L4"), replace(make_offer("L4", instance_type="odd"), **changes)  # type: ignore[arg-type]
    known = checked(part(sound, wrong))
    assert (known.offers, known.unpriced) == ((sound,), ("odd",))
    (gap,) = known.gaps
    assert gap.startswith("prices that no such machine can have left out: odd us-east-1 on-demand")
    assert known.troubles == known.gaps


def test_earlier_prices_are_judged_by_their_machine() -> None:
    """p5.48xlarge has eight H100; of a machine that nobody knows any number of GPUs is believed."""
    offer = make_offer("L4", instance_type="mine")
    points = [
        point(instance_type=name, usd_per_h=usd)
        for name in ("mine", "p5.48xlarge", "nobody's")
        for usd in (1e-5, 0.5, 60.0, 1e9)
    ]
    kept = {(p.instance_type, p.usd_per_h) for p in possible_points(points, (offer,))}
    assert kept == {("mine", 0.5), ("p5.48xlarge", 60.0), ("nobody's", 0.5), ("nobody's", 60.0)}
    known = checked(part(offer, history=tuple(points)))
    assert len(known.history) == 4
    assert known.gaps == ("8 earlier prices that no such machine can have had left out",)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("L4,1,0.5,here,2026-11-01", "not below"),
        ("L4,0,5,here,2026-11-01", "above 0"),
        ("L4,1,5,,2026-11-01", "source is empty"),
        ("L4,1,5,here,2026-11-01\nL4,1,5,here,2026-11-01", "listed twice"),
    ],
)
def test_a_broken_file_names_its_line(tmp_path: Path, rows: str, words: str) -> None:
    path = tmp_path / BOUNDS_FILE
    path.write_text(f"{','.join(BOUNDS_COLUMNS)}\n{rows}\n", encoding="utf-8")
    with pytest.raises(CatalogError, match=words):
        read_bounds(path)
