"""Which options stand on one screen: what is worth its work, and what is really safer."""

import pytest

from advisor.core.findings.about_estimates import EditScript
from advisor.core.values import Merit, Pick, PickName
from recommender.ranking.choice import shortlist
from tests.builders import make_job
from tests.findings import quoted
from tests.recommendations import make_option

BEST = make_option("L40S", hours=4.0, usd=20.0)


@pytest.mark.parametrize(
    ("hours", "usd", "is_shown"),
    [(5.0, 25.0, False), (4.0, 20.0, False), (5.0, 19.0, True), (3.0, 25.0, True)],
)
def test_work_that_brings_neither_time_nor_money_is_not_shown(hours, usd, is_shown):
    changes = (EditScript(what="wrap-in-ddp"),)
    other = make_option("H100-SXM-80GB", hours=hours, usd=usd, script_changes=changes)
    rows = shortlist(
        [BEST, other], (), make_job(epochs=1.0), best_id=BEST.plan.id, as_it_is=BEST, with_work=other
    )
    assert [Merit.WITH_WORK in row.merits for row in rows] == [False] + [True] * is_shown


@pytest.mark.parametrize(
    ("best", "other", "is_shown"),
    [(0.90, 0.99, True), (0.99, 0.99, False), (0.985, 0.99, False), (None, None, False)],
)
def test_a_safest_row_is_safer(best, other, is_shown):
    first = make_option("L40S", hours=4.0, usd=20.0, p_within_budget=best)
    second = make_option("A10G", hours=9.0, usd=25.0, p_within_budget=other)
    picks = [Pick(name=PickName.SAFEST, plan_id=second.plan.id, reason=quoted("why"))]
    job = make_job(epochs=1.0, budget_usd=30.0)
    rows = shortlist([first, second], picks, job, best_id=first.plan.id, as_it_is=first)
    assert (Merit.SAFEST in [merit for row in rows for merit in row.merits]) == is_shown
