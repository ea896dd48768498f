"""Laws of policies: more files never keep more plans, order does not matter, lifting is minimal."""

import json
from collections.abc import Sequence
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings.about_options import RemovedByPolicy
from advisor.core.values import Market, Tier
from recommender.conditions import Facts, Spent
from recommender.policy.judge import judge_facts, would_give_way
from recommender.policy.merge import Source, merge
from recommender.policy.model import Layer, PolicyFile, matches, may_overlap

REGIONS = ("us-east-1", "us-west-2", "eu-west-1")
GLOBS = st.lists(st.sampled_from(["us-*", "*-west-?", "*", "eu-west-1"]), min_size=1, max_size=3)
AMOUNTS = st.sampled_from([0.0, 1.0, 5.0, 20.0])
GPUS = st.lists(st.sampled_from(["A100", "L4", "A100-SXM*", "T4"]), min_size=1, max_size=2)
NAMES = st.fixed_dictionaries(
    {},
    optional={
        "regions": GLOBS,
        "gpus": GPUS,
        "markets": st.lists(st.sampled_from(["spot", "on-*"]), min_size=1, max_size=2),
    },
)
CONTENTS = st.fixed_dictionaries(
    {"version": st.just(1), "name": st.just("x"), "layer": st.sampled_from([layer.value for layer in Layer])},
    optional={
        "allow": NAMES,
        "deny": NAMES,
        "limits": st.fixed_dictionaries(
            {},
            optional={
                "usd_per_hour": AMOUNTS,
                "usd_per_job": AMOUNTS,
                "usd_per_month": AMOUNTS,
                "gpus_per_job": st.integers(1, 8),
                "nodes_per_job": st.integers(1, 8),
            },
        ),
        "spot": st.fixed_dictionaries(
            {},
            optional={
                "allowed": st.booleans(),
                "needs_checkpoints": st.booleans(),
                "preemptions_per_h_at_most": AMOUNTS,
                "jobs_under": st.sampled_from(["30m", "12h", "1d", "2d6h"]),
            },
        ),
    },
)  # fmt: skip
FACTS = st.builds(
    Facts,
    tier=st.sampled_from(Tier),
    provider=st.just("aws"),
    region=st.sampled_from(REGIONS),
    market=st.sampled_from([Market.SPOT, Market.ON_DEMAND]),
    gpu=st.sampled_from(["A100-SXM-40GB", "L4", "H100-SXM-80GB"]),
    num_gpus=st.integers(1, 8),
    usd_per_h=AMOUNTS,
    usd_per_job=AMOUNTS,
    spent=st.builds(Spent, all_usd=AMOUNTS, project_usd=AMOUNTS),
    saves_checkpoints=st.booleans(),
    preemptions_per_h=AMOUNTS,
    train_s=st.sampled_from([60.0, 43_200.0, 86_400.0, 1e6]),
)
TEXTS = st.text("ab*?", max_size=4)


def sources_of(contents: Sequence[dict[str, Any]]) -> list[Source]:
    return [
        Source(file=f"{i}.yaml", content=PolicyFile.model_validate(content), lines={})
        for i, content in enumerate(contents)
    ]


def is_kept(sources: Sequence[Source], facts: Facts) -> bool:
    return not judge_facts(facts, merge(sources)[0]).removals


@given(contents=st.lists(CONTENTS, min_size=1, max_size=4), facts=FACTS)
def test_a_plan_is_kept_if_and_only_if_every_file_alone_keeps_it(contents, facts):
    sources = sources_of(contents)
    assert is_kept(sources, facts) == all(is_kept([source], facts) for source in sources)


@given(contents=st.lists(CONTENTS, max_size=4), facts=FACTS, data=st.data())
def test_the_order_of_the_files_does_not_matter(contents, facts, data):
    sources = sources_of(contents)
    shuffled = data.draw(st.permutations(sources))
    assert is_kept(sources, facts) == is_kept(shuffled, facts)
    assert bool(merge(sources)[1]) == bool(merge(shuffled)[1])


@given(contents=st.lists(CONTENTS, max_size=4))
def test_every_rule_is_in_force_or_overruled_by_one_that_is(contents):
    policy, _ = merge(sources_of(contents))
    in_force = {id(rule) for rule in policy.rules}
    assert all(id(winner) in in_force and id(rule) not in in_force for rule, winner in policy.overruled)
    assert all(winner.strictness <= rule.strictness for rule, winner in policy.overruled)


@given(contents=st.lists(CONTENTS, min_size=1, max_size=3), facts=FACTS)
def test_every_removal_names_a_rule_and_its_file(contents, facts):
    policy, _ = merge(sources_of(contents))
    places = {(rule.text, str(rule.origin)) for rule in policy.rules}
    for removal in judge_facts(facts, policy).removals:
        assert (removal.rule, removal.file) in places
        assert removal.detail


@given(content=CONTENTS)
def test_what_is_read_is_what_the_schema_allows(content):
    import jsonschema

    page = Path(__file__).resolve().parents[2] / "docs" / "policy.schema.json"
    jsonschema.validate(content, json.loads(page.read_text()))
    assert PolicyFile.model_validate(content)


RULES = st.sampled_from("abcde")
REMOVED = st.dictionaries(st.integers(0, 9), st.lists(RULES, min_size=1, max_size=4), min_size=1, max_size=8)


@given(removed=REMOVED)
def test_what_gives_way_agrees_with_trying_every_set(removed):
    removals = {
        str(plan): [RemovedByPolicy(rule=rule, file="f:1", detail="") for rule in rules]
        for plan, rules in removed.items()
    }
    rules, num_plans = would_give_way(removals)
    sets = chain.from_iterable(combinations("abcde", size) for size in range(1, 6))
    left = {lifted: sum(set(one) <= set(lifted) for one in removed.values()) for lifted in sets}
    fewest = min(len(lifted) for lifted, count in left.items() if count)
    assert len(rules) == fewest
    assert num_plans == max(count for lifted, count in left.items() if len(lifted) == fewest)
    assert left[tuple(rule[0] for rule in rules)] == num_plans


@given(left=TEXTS, right=TEXTS)
def test_globs_overlap_if_and_only_if_both_match_a_name(left, right):
    # A name that both match need not be longer than both globs together.
    names = ("".join(name) for n in range(len(left) + len(right) + 1) for name in product("ab", repeat=n))
    expected = any(matches(left, name) and matches(right, name) for name in names)
    assert may_overlap(left, right) == may_overlap(right, left) == expected


@given(glob=TEXTS, name=st.text("ab", max_size=6))
def test_a_name_overlaps_a_glob_if_and_only_if_it_matches(glob, name):
    assert may_overlap(glob, name) == matches(glob, name)
