"""Names, places and commands of a team's report."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from advisor.core.findings import Code, Finding, finding
from advisor.review.savings import rhythm

if TYPE_CHECKING:
    from advisor.review.period import Period, Scope
    from advisor.review.savings import Saving

NOBODY = "(none)"


def counted(num: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "run"), counted(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{num:,} {what}{'' if num == 1 else 's'}"


def heading(scope: Scope, period: Period) -> str:
    """``Report of vision, 2026-11-16 08:00 to 2026-11-23 08:00 UTC``."""
    whose = scope.team or "everybody"
    if scope.projects is not None and (scope.team is None or len(scope.projects) == 1):
        whose = ", ".join(sorted(scope.projects)) + (f" ({scope.team})" if scope.team else "")
    return f"Report of {whose}, {period.since:%Y-%m-%d %H:%M} to {period.until:%Y-%m-%d %H:%M} UTC"


def saving_finding(saving: Saving) -> Finding:
    """What a saving is, as a finding."""
    plan, job = saving.plan, saving.job
    offer = plan.offer
    return finding(
        Code.SAVING,
        script=job.script,
        project=job.project,
        rhythm=rhythm(job.every_s),
        share=saving.share,
        num_gpus=plan.num_gpus,
        gpu=plan.gpu,
        place=plan.provider if offer is None else f"{plan.provider} {offer.zone or offer.region}",
        market="" if offer is None else offer.market.value,
        usd=saving.usd.p50,
        now_usd=job.usd,
        time_p90_s=saving.time_s.p90,
        deadline_s=saving.deadline_s,
    )


def command_of(saving: Saving) -> str:
    """What a person types to see it: the same question again, of this machine and place alone."""
    plan, entry = saving.plan, saving.job.entry
    where = ["--gpu", f"{plan.gpu}:{plan.num_gpus}", "--provider", plan.provider]
    if plan.offer is not None:
        where += ["--region", plan.offer.region, "--market", plan.offer.market.value]
    asked = entry.command if entry is not None and entry.command else "advisor prices"
    flags, dashes, arguments = asked.partition(" -- ")
    return f"{flags} {shlex.join(where)}{dashes}{arguments}"
