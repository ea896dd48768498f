"""Which change of the script helps most: on the machine that is recommended, and by a move to another."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.values import Option, Recommendation
from recommender.ranking.picks import best_of
from recommender.ranking.value import Preference, preference, value_of_time
from recommender.ranking.what_if import changed_id


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What a change of the script would bring; either option may be None, not both.

    Attributes:
        change: its name.
        same: the recommended machine with the changed script, if it gains.
        instead: what would then be recommended, if it is another machine.
    """

    change: str
    same: Option | None
    instead: Option | None


def best_what_if(answer: Recommendation) -> WhatIf | None:
    """The change that helps most on the recommended machine, or else by a move to another; None without one.

    Where nothing is recommended, the one that makes something feasible.
    """
    found = (
        _what_if(change, answer) for change in dict.fromkeys(o.what_if for o in answer.what_ifs) if change
    )
    value = value_of_time(answer.job)

    def order(item: WhatIf) -> tuple[bool, Preference]:
        option = item.same or item.instead
        assert option is not None, "a change that helps nothing is none"  # noqa: S101
        return item.same is None, preference(option, value)

    return min((item for item in found if item.same or item.instead), key=order, default=None)


def _what_if(change: str, answer: Recommendation) -> WhatIf:
    changed = [option for option in answer.what_ifs if option.what_if == change]
    chosen = next((o for o in answer.options if o.plan.id == answer.recommended), None)
    same = next((o for o in changed if chosen is not None and o.plan.id == changed_id(chosen, change)), None)
    then = best_of([*(option for option in answer.options if option.feasible), *changed], answer.job)
    return WhatIf(change=change, same=same, instead=None if then in (same, chosen) else then)
