"""Laws of own rates: both forms of file say the same; one GPU's price times their number is the machine's."""

import csv
import dataclasses
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus
from advisor.core.values import Market, Offer
from advisor.pricing.sources.custom import read_rates

# Texts that neither form changes: no space at the ends, which is stripped, and no comma where it separates.
TEXTS = st.from_regex(r"[A-Za-zäß0-9_.:#'\"-]([A-Za-zäß0-9_.:#'\" -]{0,8}[A-Za-z0-9])?", fullmatch=True)
PRICES = st.floats(1e-6, 999_999.0)
NAMES = st.sampled_from([name for gpu in load_gpus().values() for name in (gpu.name, *gpu.aliases)])
RATES = st.fixed_dictionaries(
    {
        "provider": TEXTS,
        "instance_type": TEXTS,
        "gpu": NAMES,
        "num_gpus": st.integers(1, 4096),
        "as_of": st.dates(date(2000, 1, 1), date(2100, 1, 1)),
    },
    optional={
        "region": TEXTS,
        "zone": TEXTS,
        "market": st.sampled_from([str(market) for market in Market]),
        "minimum_billed_s": st.floats(0, 1e6),
        "billed_step_s": st.floats(1e-3, 1e6),
        "includes": st.lists(TEXTS, min_size=1, max_size=3).map(", ".join),
        "note": TEXTS,
        "currency": st.just("USD"),
    },
)


def read(row: dict[str, Any], suffix: str) -> Offer:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rates{suffix}"
        if suffix == ".csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, fieldnames=list(row))
                writer.writeheader()
                writer.writerow(row)
        else:
            path.write_text(yaml.safe_dump([row], allow_unicode=True), encoding="utf-8")
        (offer,) = read_rates([path])[path]
    return offer


@given(RATES, PRICES)
def test_both_forms_say_the_same(rate, usd_per_h):
    row = rate | {"usd_per_h": usd_per_h}
    in_yaml, in_csv = read(row, ".yaml"), read(row, ".csv")
    assert dataclasses.replace(in_yaml, source="") == dataclasses.replace(in_csv, source="")
    assert in_yaml.usd_per_h == usd_per_h
    assert in_yaml.gpu in load_gpus()
    assert (in_yaml.retrieved_at.date(), in_yaml.retrieved_at.utcoffset()) == (row["as_of"], timedelta(0))


@given(RATES, PRICES)
def test_the_price_of_one_gpu_times_their_number_is_the_machines(rate, usd):
    offer = read(rate | {"usd_per_gpu_h": usd}, ".csv")
    assert offer.usd_per_h == pytest.approx(usd * rate["num_gpus"])
    assert offer.list_usd_per_h == offer.contracted_usd_per_h
