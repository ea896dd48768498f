"""A receipt in lines: what is known, and that the rest is unknown."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from advisor.core.values import CostKind, Interval, Market, RunStatus
from advisor.report.runs import receipt_document
from advisor.service.receipts import Receipt
from advisor.store.ledger import Run
from tests.unit.report.printed import on_screen
from tests.unit.store.test_ledger import make_entry

PREDICTED = Interval(p10=0.160, p50=0.172, p90=0.205)
RUN = Run(
    id="9018", project="vision", script="train.py", provider="gcp", gpu="L4", num_gpus=1, market=Market.SPOT,
    started_at=datetime(2026, 11, 22, tzinfo=UTC), duration_s=8040.0, cost_usd=0.83,
    instance_type="g2-standard-8", region="us-west4", zone="us-west4-a",
    status=RunStatus.FINISHED, exit_code=0, num_steps=45_000,
    step_s=Interval(p10=0.175, p50=0.178, p90=0.191), cost_kind=CostKind.ESTIMATED, usd_per_h=0.3714,
    price_retrieved_at=datetime(2026, 11, 21, tzinfo=UTC),
)  # fmt: skip
ADVISED = make_entry(gpu="L4", num_gpus=1, iteration_s=PREDICTED)


def lines(advised: Any = ADVISED, *, is_recorded: bool = True, **changes: Any) -> list[str]:
    receipt = Receipt(run=replace(RUN, **changes), advised=advised, is_recorded=is_recorded, exit_code=0)
    return on_screen(receipt_document(receipt), 160).splitlines()


def test_all_of_it():
    assert lines() == [
        "train.py finished, exit code 0",
        "  time       2 h 14 min",
        "  machine    1 x L4, gcp spot, g2-standard-8, us-west4-a",
        "  cost       $0.83, estimated: $0.3714/h x time, price of 2026-11-21",
        "  steps      45,000 of 178 ms each (p10 .. p90: 175 ms .. 191 ms)",
        "  predicted  160 ms .. 172 ms .. 205 ms a step: it held, 3% slower",
        "  recorded   as 9018",
    ]


@pytest.mark.parametrize(
    ("step_s", "words"),
    [
        (0.1721, "it held, as predicted"),
        (0.206, "it did not hold, 20% slower"),
        (0.205, "it held, 19% slower"),
        (0.150, "it did not hold, 13% faster"),
    ],
)
def test_a_prediction_holds_between_its_ends(step_s, words):
    shown = lines(step_s=Interval(p10=step_s, p50=step_s, p90=step_s))
    assert shown[5].endswith(f"a step: {words}")
    assert "p10 .. p90" not in shown[4]


def test_what_nobody_knows_is_unknown():
    shown = lines(
        None, is_recorded=False, duration_s=None, cost_usd=None, cost_kind=None, num_steps=None, step_s=None,
        gpu="", num_gpus=0, provider="", market=None, instance_type=None, region=None, zone=None,
        status=RunStatus.LOST,
    )  # fmt: skip
    assert shown == [
        "train.py was lost, exit code 0",
        "  time       unknown",
        "  machine    no GPU, of an unknown provider",
        "  cost       unknown: the machine's price is not known (give --plan ID, --usd-per-hour or --cost)",
        "  steps      none seen: those of PyTorch optimizers in Python are counted",
    ]


def test_a_cost_that_somebody_states_is_theirs():
    assert lines(cost_kind=CostKind.STATED)[3] == "  cost       $0.83, stated"


def test_other_gpus_than_predicted_say_nothing_of_the_prediction():
    assert lines(gpu="T4")[5] == "  predicted  for 1 x L4 a step, so nothing for this machine"
    assert lines(num_gpus=2)[5].startswith("  predicted  for 1 x L4")
    assert lines(num_steps=1, step_s=None)[5].endswith("a step; none was timed")


def test_names_of_others_move_no_cursor():
    assert "\x1b" not in "".join(lines(script="\x1b[2Jtrain.py", instance_type="\x1b[31mx"))
