"""Which change is told of several, and of which machine."""

from dataclasses import replace

from advisor.core.findings.about_estimates import EditScript
from advisor.core.findings.about_options import RemovedByDeadline
from advisor.core.values import Option, PickName, Recommendation
from recommender.ranking.what_ifs import WhatIfGain, best_what_if
from tests.builders import make_job, make_plan
from tests.findings import sample
from tests.recommendations import make_option, removed
from tests.recommending import make_script

# At 2 USD an hour: 20 USD, 28 and 70 in all.
A, B, C = make_option("A", 5.0, 10.0), make_option("B", 4.0, 20.0), make_option("C", 1.0, 68.0)


def changed(name: str, change: str, hours: float, usd: float) -> Option:
    return make_option(name, hours, usd, plan=make_plan(name, id=f"{name}+{change}"), what_if=change)


def best(*what_ifs: Option, recommended: str | None = "A", pick: PickName | None = None) -> WhatIfGain | None:
    options = (A, B, C)
    if recommended is None:
        options = tuple(removed(option, RemovedByDeadline) for option in options)
    return best_what_if(
        Recommendation(
            script=make_script(),
            job=make_job(pick=pick),
            options=options,
            frontier=(),
            recommended=recommended,
            rule=None,
            warnings=(),
            what_ifs=what_ifs,
        )
    )


def test_of_several_changes_the_one_of_least_total_on_the_same_machine():
    tf32, bf16 = changed("A", "tf32", 4.0, 8.0), changed("A", "bf16", 3.0, 6.0)
    assert best(tf32, bf16) == WhatIfGain(change="bf16", same=bf16, instead=None)


def test_a_gain_on_the_same_machine_goes_before_a_move():
    tf32, fp16 = changed("A", "tf32", 4.0, 8.0), changed("B", "fp16", 1.0, 1.0)
    assert best(fp16, tf32) == WhatIfGain(change="tf32", same=tf32, instead=None)
    assert best(fp16) == WhatIfGain(change="fp16", same=None, instead=fp16)


def test_another_machine_is_named_only_where_it_would_be_recommended():
    same, other = changed("A", "bf16", 3.0, 6.0), changed("B", "bf16", 2.0, 9.0)
    assert best(same, other) == WhatIfGain(change="bf16", same=same, instead=None)
    cheaper = changed("B", "bf16", 2.0, 7.0)
    assert best(same, cheaper) == WhatIfGain(change="bf16", same=same, instead=cheaper)


def test_what_helps_nowhere_is_not_told():
    assert best(changed("C", "bf16", 0.9, 60.0)) is None
    assert best() is None


def test_of_a_policys_pick_that_decides_what_would_be_recommended():
    fast = changed("C", "bf16", 0.5, 34.0)
    change = best(fast, recommended="C", pick=PickName.FASTEST)
    assert change == WhatIfGain(change="bf16", same=fast, instead=None)
    cheap = changed("A", "bf16", 3.0, 6.0)
    assert best(fast, cheap, recommended="A", pick=PickName.CHEAPEST) == WhatIfGain(
        change="bf16", same=cheap, instead=None
    )


def test_where_nothing_is_feasible_the_best_of_what_would_be():
    late, early = changed("A", "bf16", 3.0, 6.0), changed("C", "bf16", 0.5, 1.0)
    assert best(late, early, recommended=None) == WhatIfGain(change="bf16", same=None, instead=early)


def test_half_an_hour_for_a_second_gpu_counts_here_too():
    one, two = changed("A", "bf16", 3.0, 6.0), changed("B", "bf16", 2.9, 5.5)
    assert best(one, two) == WhatIfGain(change="bf16", same=one, instead=two)
    wrapped = replace(two, script_changes=(sample(EditScript, what="wrap-in-ddp"),))
    assert best(one, wrapped) == WhatIfGain(change="bf16", same=one, instead=None)
