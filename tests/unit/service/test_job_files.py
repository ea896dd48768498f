"""An option as a file of another tool: it says what was chosen, and starts what was asked about."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import yaml

from advisor.core.errors import InputError
from advisor.core.findings.about_options import Risk
from advisor.core.values import Elsewhere, Layout, Limited, Market, Quantiles, QueueLimit, Recovery, Tier
from advisor.service.job_files import KINDS, MARK, Handoff, job_file
from tests.builders import make_plan
from tests.findings import FACTS
from tests.recommendations import make_option
from tests.tool_checkers import judged, needs_checkers

ARGUMENTS = ("--name", "it's; rm -rf $HOME", "--note", "a: b # c", "é\n")


def handoff(*, gpus: int = 1, nodes: int = 1, tier: Tier = Tier.CLOUD, **changes: Any) -> Handoff:
    plan = make_plan("L4", 2.0 * nodes, num_gpus=gpus, tier=tier, market=changes.pop("market", Market.SPOT))
    plan = replace(plan, layout=Layout(gpus_per_node=gpus, num_nodes=nodes))
    option = replace(make_option("L4", 10.0, 20.0), plan=plan)
    facts: dict[str, Any] = {
        "command": ("src/Train_it.py", *ARGUMENTS),
        "option": option,
        "packages": ("timm==1.0.1", "torch==2.13.0"),
        "requirements": None,
        "checkpoint_interval_s": 1800.0,
        "budget_usd": 50.0,
        "recommendation": "abc",
    }
    return Handoff(**(facts | changes))


def documents(text: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def words_of(line: str) -> list[str]:
    """As a shell has them."""
    done = subprocess.run(
        ["sh", "-c", f'python() {{ printf "%s\\0" python "$@"; }}; {line}'], capture_output=True, check=True
    )
    return done.stdout.decode().split("\0")[:-1]


EVERYWHERE = [(kind, tier) for kind, one in KINDS.items() for tier in one.tiers]


@pytest.mark.parametrize(("kind", "tier"), EVERYWHERE)
@pytest.mark.parametrize(("gpus", "nodes"), [(1, 1), (8, 1), (8, 2)])
def test_every_file_names_the_plan_the_price_and_the_script(kind, tier, gpus, nodes):
    text = job_file(handoff(gpus=gpus, nodes=nodes, tier=tier), kind)
    comments = [line for line in text.splitlines() if line.startswith("# ")]
    assert any("$20.00, $40.00 at p90" in line for line in comments)
    assert sum(line.startswith(MARK) for line in comments) == 1
    assert "src/Train_it.py" in text
    launcher = {(1, 1): "python src/Train_it.py", (8, 1): "torchrun --standalone"}.get(
        (gpus, nodes), "--nnodes=2"
    )
    assert launcher in text
    assert ("--nproc-per-node=8" in text) == (gpus == 8)


@pytest.mark.parametrize(("kind", "tier"), EVERYWHERE)
def test_arguments_reach_the_script_as_they_were(kind, tier):
    text = job_file(handoff(tier=tier), kind)
    if kind in ("sbatch", "command"):
        assert subprocess.run(["bash", "-n"], input=text.encode(), check=False).returncode == 0
        (line,) = [line for line in text.splitlines() if "Train_it" in line and "\n" not in line][:1] or [
            text
        ]
        rest = text[text.index(line) :]
    else:
        (document,) = documents(text)
        rest = {
            "skypilot": lambda: document["run"],
            "dstack": lambda: document["commands"][-1],
            "kubernetes": lambda: document["spec"]["template"]["spec"]["containers"][0]["command"][-1],
        }[kind]()
    assert words_of(rest[rest.index("python ") :]) == ["python", "src/Train_it.py", *ARGUMENTS]


def recovering(whole: Handoff, recovery: str) -> Handoff:
    risk = Risk(**{**FACTS[Risk], "recovery": recovery})
    there = Elsewhere(num_zones=2, usd_per_h=2.0, on_demand=make_plan("X", 5.0))
    option = replace(whole.option, risk=risk, plan=replace(whole.option.plan, elsewhere=there))
    return replace(whole, option=option)


AGAIN = {"job_recovery": {"strategy": "FAILOVER"}}
EITHER = {"any_of": [{"use_spot": True}, {"use_spot": False}], **AGAIN}


@pytest.mark.parametrize(
    ("recovery", "sky", "dstack"),
    [
        ("wait", {"use_spot": True, **AGAIN}, ("spot", 2.2)),
        ("move", {"use_spot": True, **AGAIN}, ("spot", 2.2)),
        ("wait-or-on-demand", EITHER, ("auto", 5.5)),
        ("move-or-on-demand", EITHER, ("auto", 5.5)),
    ],
)
def test_a_job_recovers_as_it_was_counted_on(recovery, sky, dstack):
    whole = recovering(handoff(), recovery)
    text = job_file(whole, "skypilot")
    (task,), (other,) = documents(text), documents(job_file(whole, "dstack"))
    assert task["resources"] == {"infra": "aws/us-east-1", "instance_type": "l4.xlarge"} | sky
    assert (other["spot_policy"], other["max_price"]) == dstack
    assert other["retry"]["on_events"] == ["no-capacity", "interruption"]
    assert KINDS["skypilot"].command(text) == ("sky", "jobs", "launch", "--yes")
    assert ("on demand once spot would be late" in text) == recovery.endswith("on-demand")


def test_on_demand_nothing_is_preempted():
    whole = handoff(market=Market.ON_DEMAND)
    (task,), (other,) = (documents(job_file(whole, kind)) for kind in ("skypilot", "dstack"))
    assert task["resources"] == {"infra": "aws/us-east-1", "instance_type": "l4.xlarge", "use_spot": False}
    assert (other["spot_policy"], "retry" in other) == ("on-demand", False)
    assert KINDS["skypilot"].command(job_file(whole, "skypilot")) == ("sky", "launch", "--yes", "--down")


WALLTIME = "Its walltime is the p90 and a fifth; longer jobs may start later."


@pytest.mark.parametrize(
    ("kind", "tier", "facts", "limit"),
    [
        ("skypilot", Tier.CLOUD, {}, "after 1 d 1 h: the budget of $50.00 is used."),
        ("skypilot", Tier.CLOUD, {"budget_usd": 1000.0}, "after 1 d 16 h: twice its p90 without the wait."),
        ("command", Tier.CLOUD, {"budget_usd": 0.001}, "after 1 min: the budget of $0.0010 is used."),
        ("kubernetes", Tier.CLOUD, {"budget_usd": None}, "after 1 d 16 h: twice its p90 without the wait."),
        ("dstack", Tier.CLOUD, {"nodes": 2}, "after 12 h 30 min: the budget of $50.00 is used."),
        (
            "sbatch",
            Tier.CLUSTER,
            {},
            f"after 1 d: 1 min before its walltime, or at $50.00 of rent. {WALLTIME}",
        ),
        ("kubernetes", Tier.CLUSTER, {"budget_usd": None}, "after 1 d 16 h: twice its p90 without the wait."),
        ("command", Tier.LOCAL, {"budget_usd": None}, "after 1 d 16 h: twice its p90 without the wait."),
    ],
)
def test_the_limit_is_the_first_of_twice_p90_and_the_budget_and_says_which(kind, tier, facts, limit):
    """Where a guard is at hand it keeps the budget by the price of the day."""
    assert f"# Stopped {limit}\n" in job_file(handoff(tier=tier, **facts), kind)


@pytest.mark.parametrize(
    ("set_h", "grace_s", "asked", "stops_min", "words"),
    [
        (
            48,
            120,
            "48:00:00",
            2400,
            "twice its p90 without the wait, or at $50.00 of rent. Its walltime is as set; 1 d may",
        ),
        (
            23,
            120,
            "23:00:00",
            1379,
            "1 min before its walltime, or at $50.00 of rent. Its walltime is as set",
        ),
        (12, 120, "24:05:00", 1444, "the p90 and a fifth instead of 12 h; longer jobs may start later."),
        (20, 120, "24:05:00", 1444, "the p90 and a fifth instead of 20 h; "),
        (23, 3 * 3600, "27:03:00", 1622, "the p90 and a fifth instead of 23 h; "),
    ],
)
def test_the_scheduler_is_asked_for_what_the_wait_was_counted_on_where_that_covers_the_run(
    set_h, grace_s, asked, stops_min, words
):
    text = job_file(handoff(tier=Tier.CLUSTER, walltime_s=set_h * 3600.0, grace_s=grace_s), "sbatch")
    assert f"#SBATCH --time={asked}\n" in text
    assert f"--max-time {stops_min}m " in text
    assert words in text


def test_the_scheduler_is_not_asked_for_more_than_it_gives():
    asked = handoff(tier=Tier.CLUSTER)
    most = QueueLimit(of="QOS normal", name="MaxWall", what=Limited.TIME, most=22 * 3600.0 + 59)
    plan = replace(asked.option.plan, queue_limits=(most,))
    text = job_file(replace(asked, option=replace(asked.option, plan=plan)), "sbatch")
    assert "#SBATCH --time=22:00:00\n" in text
    assert "Its walltime is the longest that its queue allows." in text


def test_a_long_wait_leaves_the_run_its_time():
    """The p90 of the whole is less than those of wait and run together."""
    whole = handoff(tier=Tier.CLUSTER)
    waits = replace(whole.option, wait_s=Quantiles(p50=0.0, p90=18 * 3600.0))
    assert "#SBATCH --time=24:05:00\n" in job_file(replace(whole, option=waits), "sbatch")


def test_gcp_names_the_gpu_and_the_zone():
    whole = handoff()
    plan = whole.option.plan
    assert plan.offer is not None
    offer = replace(plan.offer, zone="us-east1-b", instance_type="n1-standard-4+1xT4", provider="gcp")
    there = replace(whole, option=replace(whole.option, plan=replace(plan, provider="gcp", offer=offer)))
    (task,) = documents(job_file(there, "skypilot"))
    resources = task["resources"]
    assert (resources["infra"], resources["instance_type"]) == ("gcp/us-east-1/us-east1-b", "n1-standard-4")
    (moving,) = documents(job_file(recovering(there, "move"), "skypilot"))
    assert moving["resources"]["infra"] == "gcp/us-east-1"
    assert resources["accelerators"] == {"L4": 1}


def test_tools_get_what_to_install_and_limits_of_time_and_price():
    (task,) = documents(job_file(handoff(gpus=8), "skypilot"))
    assert task["setup"] == "pip install timm==1.0.1 torch==2.13.0"
    # What 50 dollars pay for at 2 dollars an hour; twice the p90 of 20 hours is more.
    assert task["run"].startswith("timeout --signal=TERM --kill-after=120 90000 torchrun")
    (task,) = documents(job_file(handoff(gpus=8, nodes=2), "dstack"))
    assert (task["nodes"], task["max_price"], task["spot_policy"]) == (2, 2.2, "spot")
    assert task["max_duration"] == "45000s"


def test_pods_of_several_nodes_find_the_first():
    service, job = documents(job_file(handoff(gpus=8, nodes=2), "kubernetes"))
    assert service["metadata"]["name"] == job["metadata"]["name"] == "train-it"
    spec = job["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (2, 2, "Indexed")
    assert spec["template"]["spec"]["subdomain"] == "train-it"
    assert "--master-addr=train-it-0.train-it" in spec["template"]["spec"]["containers"][0]["command"][-1]


def test_a_machine_of_ones_own_is_guarded_and_a_rented_one_has_a_limit():
    own = job_file(handoff(gpus=8, tier=Tier.CLUSTER), "sbatch")
    assert "#SBATCH --gres=gpu:8\n#SBATCH --time=24:05:00\n" in own
    assert "advisor run --plan 8xL4 --recommendation abc --canary go-on --max-cost 50 --max-time 1444m" in own
    assert "advisor" not in documents(job_file(handoff(), "skypilot"))[0]["run"]
    free = handoff(tier=Tier.LOCAL, recommendation=None, budget_usd=None)
    assert "exec advisor run --plan L4 --max-time 2400m -- python" in job_file(free, "command")


def test_a_job_of_several_nodes_has_one_guard_which_starts_all_of_them():
    text = job_file(handoff(gpus=8, nodes=2, tier=Tier.CLUSTER), "sbatch")
    (line,) = [line for line in text.splitlines() if "torchrun" in line]
    assert line.startswith("advisor run --plan 8xL4 ")
    assert " -- srun torchrun --nnodes=2 " in line
    assert "srun" not in job_file(handoff(gpus=8, tier=Tier.CLUSTER), "sbatch")


@pytest.mark.parametrize(("kind", "tier"), EVERYWHERE)
def test_words_of_others_are_one_word_of_the_shell_and_no_package_installs_none(kind, tier):
    """Names of clusters, branches and files are not ours."""
    text = job_file(
        handoff(tier=tier, packages=("a @ git+https://x/$(id);rm#q",), recommendation="$(id)"), kind
    )
    for line in text.splitlines():
        if not line.startswith("#") and "$(id)" in line:
            assert "'a @ git+https://x/$(id);rm#q'" in line or "--recommendation '$(id)'" in line
    assert "pip install" not in job_file(handoff(tier=tier, packages=()), kind)


def test_packages_of_no_index_are_named_and_a_file_of_ones_own_comes_first():
    text = job_file(handoff(not_packaged=("mylib", "nowhere"), requirements="my reqs.txt"), "command")
    assert "Only on this machine, in no index of packages: mylib, nowhere." in text
    assert f"pip install -r {shlex.quote('my reqs.txt')}\n" in text


def test_what_is_to_do_and_what_is_counted_on_stands_first():
    text = job_file(handoff(to_do=("wrap the\nmodel",), command=("t.py", "--token", "***")), "command")
    assert text.startswith("#!/bin/sh\n# L4: $20.00")
    assert "# Do first: wrap the model\n" in text
    assert "# Counted on: a checkpoint every 30 min" in text
    assert "# A secret was left out" in text
    steady = job_file(handoff(market=Market.ON_DEMAND), "command")
    assert "Counted on" not in steady


@pytest.mark.parametrize(
    ("kind", "tier", "others"),
    [("sbatch", Tier.CLOUD, "skypilot, dstack, kubernetes, command"), ("skypilot", Tier.LOCAL, "command")],
)
def test_a_tool_that_cannot_reach_the_machine_is_refused(kind, tier, others):
    with pytest.raises(InputError, match=f"What can: {others}\\."):
        job_file(handoff(tier=tier), kind)


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
