"""Which change of the script helps most: on the machine that is recommended, and by a move to another."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.values import Option, Recommendation
from recommender.ranking.picks import best_of
from recommender.ranking.value import preference, worth_for
from recommender.ranking.what_if import changed_id


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What a change of the script would bring.

    Attributes:
        change: its name.
        same: the recommended machine with the changed script, if it gains.
        instead: what would then be recommended, if it is another machine.
    """

    change: str
    same: Option | None
    instead: Option | None

    @property
    def option(self) -> Option | None:
        """The one that speaks for the change; None where it helps nothing."""
        return self.same or self.instead


def best_what_if(answer: Recommendation) -> WhatIf | None:
    """The change that helps most on the recommended machine, or else by a move to another; None without one.

    Where nothing is recommended, the one that makes something feasible.
    """
    worth = worth_for(answer.job)
    changes = dict.fromkeys(option.what_if for option in answer.what_ifs if option.what_if is not None)
    helping = [
        ((what_if.same is None, preference(what_if.option, worth)), what_if)
        for what_if in (_what_if(change, answer) for change in changes)
        if what_if.option is not None
    ]
    return min(helping, key=lambda item: item[0])[1] if helping else None


def _what_if(change: str, answer: Recommendation) -> WhatIf:
    changed = [option for option in answer.what_ifs if option.what_if == change]
    chosen = answer.chosen
    same = next((o for o in changed if chosen is not None and o.plan.id == changed_id(chosen, change)), None)
    return WhatIf(change=change, same=same, instead=best_with(change, answer))


def best_with(change: str, answer: Recommendation) -> Option | None:
    """What would be recommended for the changed script, if it is another machine than the recommended one."""
    changed = [option for option in answer.what_ifs if option.what_if == change]
    able = [*(option for option in answer.options if option.feasible), *changed]
    if not able:
        return None
    chosen, then = answer.chosen, best_of(able, answer.job)
    ids = () if chosen is None else (chosen.plan.id, changed_id(chosen, change))
    return None if then.plan.id in ids else then
