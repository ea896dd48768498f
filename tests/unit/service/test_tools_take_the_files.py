"""Emitted files, for every kind of option, by the checkers of the tools that start them."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
import yaml

from advisor.core.values import Market, Recovery, Tier
from advisor.service.job_files import Handoff, job_file
from tests.tool_checkers import judged, needs_checkers
from tests.unit.service.test_job_files import ARGUMENTS, handoff, recovering, words_of

ODD = ("$$", "${{ run.x }}", "$(HOME)", "$HOME", "\a", "a\u2028b", "#!x", "")
SCRIPTS = ("a.py", "9.py", "_.py", "src/ünï c.py", f"{'9' * 300}.py", f"{'a-' * 30}.py")


def handoffs(tier: Tier = Tier.CLOUD) -> Iterator[tuple[str, Handoff]]:
    for market in (Market.SPOT, Market.ON_DEMAND):
        for gpus, nodes in ((1, 1), (8, 1), (8, 2)):
            yield f"{market} {nodes}x{gpus}", handoff(gpus=gpus, nodes=nodes, market=market, tier=tier)
    one = handoff(tier=tier)
    yield from ((f"recovers by {policy}", recovering(one, policy)) for policy in Recovery)
    yield from ((f"is {script}", replace(one, command=(script,))) for script in SCRIPTS)
    yield "odd words", replace(one, command=(*one.command, *ODD))
    free = {"budget_usd": None, "recommendation": None, "checkpoint_interval_s": None}
    yield "asks for nothing", replace(one, packages=(), **free)
    yield "requirements", replace(one, requirements="my ${{ reqs }}.txt")


@cache
def texts(kind: str) -> dict[str, str]:
    return {name: job_file(one, kind) for name, one in handoffs()}


@needs_checkers
@pytest.mark.parametrize(("kind", "key"), [("skypilot", "use_spot"), ("dstack", "max_duration")])
def test_the_tool_takes_every_file_and_no_misspelt_one(kind, key):
    verdicts = judged(kind, texts(kind) | {"misspelt": texts(kind)["odd words"].replace(key, f"{key}s")})
    assert f"{key}s" in verdicts.pop("misspelt")[0]
    assert [(name, refused) for name, (refused, _) in verdicts.items() if refused] == []
    line = verdicts["odd words"][1]
    assert words_of(line[line.index("python ") :])[2:] == [*ARGUMENTS, *ODD]


@pytest.mark.parametrize("tier", [Tier.CLOUD, Tier.CLUSTER])
def test_kubernetes_takes_every_file_and_no_misspelt_one(tier):
    from kubernetes_validate import ValidationError, latest_version, validate

    for name, one in handoffs(tier):
        text = job_file(one, "kubernetes")
        for document in yaml.safe_load_all(text):
            validate(document, latest_version(), strict=True)
            # Names are no part of the schemas: those of a Service are the strictest (RFC 1035).
            assert re.fullmatch("[a-z]([-a-z0-9]{0,61}[a-z0-9])?", document["metadata"]["name"]), name
    with pytest.raises(ValidationError, match="parallelisms"):
        validate(yaml.safe_load(text.replace("parallelism", "parallelisms")), latest_version(), strict=True)


def test_kubernetes_gives_the_shell_the_words_as_they_were():
    """It reads `$$` as `$`, and `$(NAME)` as its own variable, where it has one."""
    (job,) = yaml.safe_load_all(texts("kubernetes")["odd words"])
    line = job["spec"]["template"]["spec"]["containers"][0]["command"][-1]
    read = re.sub(r"\$\$|\$\([^)]*\)", lambda found: "$" if found[0] == "$$" else "EXPANDED", line)
    assert words_of(read)[2:] == [*ARGUMENTS, *ODD]
