"""The answer in three findings."""

from dataclasses import replace

import pytest

from advisor.core.findings.about_answers import SummaryChoice, SummaryDoubt
from advisor.core.values import Job, Tier
from recommender.ranking.what_tips import summary_of
from tests.builders import make_plan
from tests.recommendations import make_option
from tests.recommending import make_script


@pytest.mark.parametrize(("tier", "is_rented"), [(Tier.CLOUD, True), (Tier.LOCAL, False)])
def test_what_is_rented_is_said_to_be(tier, is_rented):
    option = replace(
        make_option("L4", 1.0, 1.0), plan=make_plan("L4", None if tier is Tier.LOCAL else 2.0, tier=tier)
    )
    choice, cost, doubt = summary_of([option], option, Job(epochs=1), [], script=make_script())
    assert (type(choice), choice.facts["is_rented"]) == (SummaryChoice, is_rented)
    assert cost.facts["is_cost_known"] is is_rented
    assert isinstance(doubt, SummaryDoubt)
