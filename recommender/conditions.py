"""What is known beside the question: how spot machines behave, and what was spent this month."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from advisor.core.values import Plan
from advisor.pricing.catalog.interruptions import Interruptions
from recommender.outcome.spot import ASSUMED_TERMS, SpotTerms, terms_of_plans
from recommender.policy.facts import Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What is known beside the question.

    Attributes:
        spot: how spot machines behave; by default as their classes did in availability traces.
        interruptions: by instance type and region: floors of an assumed rate of preemptions. None where the
            rate is configured.
        spent: this month's spending, for monthly limits; None where no rule asks.
    """

    spot: SpotTerms = ASSUMED_TERMS
    interruptions: Mapping[tuple[str, str], Interruptions] | None = None
    spent: Spent | None = None

    def terms_of(self) -> Callable[[Plan], SpotTerms]:
        """How often each plan is preempted."""
        return terms_of_plans(self.spot, self.interruptions)
