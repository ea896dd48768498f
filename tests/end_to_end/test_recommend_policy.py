"""``advisor recommend`` under policies: what is removed says by which rule of which file."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_op, make_trace
from tests.end_to_end.cli import ALL_REGIONS, Answer, Shell, assert_plain_error


@pytest.fixture
def shell(tmp_path):
    ops = (make_op("aten::mm", flops=10**13, num_bytes=10**9),)
    write_trace(make_trace(ops=ops), tmp_path / "small.json.gz")
    return Shell(folder=tmp_path)


def recommend(shell: Shell, *arguments: str, **environ: str) -> Answer:
    command = ("recommend", "small.json.gz", "--iterations", "20000", "--gpu", "A100-SXM-80GB", "--offline")
    return shell.run(*command, *arguments, **environ)


def by_id(answer: Answer) -> dict[str, Any]:
    return {option["id"]: option for option in answer.document["options"]}


def kept(answer: Answer) -> list[Any]:
    return [o for o in answer.document["options"] if "policy" not in (o["removed_by"] or "")]


def test_a_denied_region_is_removed_with_rule_file_and_line(shell):
    free = recommend(shell, "--json")
    best = by_id(free)[free.document["recommended"]]
    deny = f"deny:\n  regions: [{best['region']}]\n"
    shell.write("org.yaml", f"version: 1\nname: acme\nlayer: organisation\n{deny}")
    answer = recommend(shell, "--policy", "org.yaml", "--json")
    assert answer.code == 0, answer.err
    removed = by_id(answer)[best["id"]]
    assert removed["removed_by"] == "policy"
    assert not removed["feasible"]
    assert removed["reasons"][0].startswith(f"deny.regions: {best['region']} (org.yaml:5):")
    assert all(option["region"] != best["region"] for option in kept(answer))
    assert answer.document["recommended"] != best["id"]
    table = recommend(shell, "--policy", "org.yaml", "--all")
    assert "policy" in table.out


def test_a_denied_cheapest_place_does_not_hide_an_allowed_dearer_one(shell):
    shell = replace(shell, regions=ALL_REGIONS)
    free = recommend(shell, "--json", "--market", "on-demand", "--provider", "gcp")
    first = free.document["options"][0]
    deny = f"deny: {{regions: [{first['region']}]}}\n"
    shell.write("org.yaml", f"version: 1\nname: acme\nlayer: organisation\n{deny}")
    answer = recommend(shell, "--json", "--market", "on-demand", "--provider", "gcp", "--policy", "org.yaml")
    same = [o for o in kept(answer) if o["instance_type"] == first["instance_type"]]
    assert same
    assert same[0]["region"] != first["region"]


def test_everything_removed_is_exit_3_and_names_the_rule_that_would_have_to_give_way(shell):
    shell.write("org.yaml", "version: 1\nname: acme\nlayer: organisation\nlimits: {usd_per_hour: 0.01}\n")
    answer = recommend(shell, "--policy", "org.yaml")
    assert_plain_error(answer, 3, "limits.usd_per_hour: 0.01", "org.yaml:4")
    assert answer.out == ""


def test_a_monthly_limit_counts_what_really_ran(shell):
    shell.write("team.yaml", "version: 1\nname: vision\nlayer: team\nlimits: {usd_per_month: 500}\n")
    before = recommend(shell, "--policy", "team.yaml", "--json")
    assert before.code == 0, before.err
    recorded = shell.run(
        "run", "record", "--provider", "aws", "--gpu", "A100-SXM-80GB:8", "--market", "on-demand",
        "--start", first_of_month(), "--duration", "1h", "--cost", "499.99",
    )  # fmt: skip
    assert recorded.code == 0, recorded.err
    after = recommend(shell, "--policy", "team.yaml")
    assert_plain_error(after, 3, "limits.usd_per_month: 500 (team.yaml:4)")


def first_of_month() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0).isoformat()


def test_files_of_the_settings_count_from_their_folder(shell):
    shell.write("org.yaml", "version: 1\nname: acme\nlayer: organisation\nallow: {providers: [gcp]}\n")
    shell.write(".advisor.yaml", "policy: {files: [org.yaml]}\n")
    (shell.folder / "inner").mkdir()
    inner = Shell(folder=shell.folder / "inner")
    shown = inner.run("config", "show", "--json")
    assert shown.document["settings"]["policy.files"]["value"] == [str(shell.folder / "org.yaml")]
    flags = ("--iterations", "20000", "--gpu", "A100-SXM-80GB", "--offline", "--json")
    answer = inner.run("recommend", "../small.json.gz", *flags)
    assert answer.code == 0, answer.err
    assert {o["provider"] for o in kept(answer) if o["tier"] == "cloud"} == {"gcp"}


def test_the_value_of_an_hour_is_the_policys_unless_it_is_typed(shell):
    shell.write("team.yaml", "version: 1\nname: v\nlayer: team\nobjective: {value_of_time_usd_per_h: 30}\n")
    ours = recommend(shell, "--policy", "team.yaml", "--json").document
    typed = recommend(shell, "--policy", "team.yaml", "--value-of-time", "2", "--json").document
    assert "at $30/h" in ours["rule"]
    assert "at $2/h" in typed["rule"]


def test_a_pick_of_the_policy_counts_beside_its_value_of_an_hour(shell):
    text = "version: 1\nname: v\nlayer: team\nobjective: {pick: cheapest, value_of_time_usd_per_h: 30}\n"
    shell.write("team.yaml", text)
    document = recommend(shell, "--policy", "team.yaml", "--json").document
    typed = recommend(shell, "--policy", "team.yaml", "--value-of-time", "30", "--json").document
    assert document["recommended"] == document["picks"]["cheapest"]
    assert typed["recommended"] == typed["picks"]["best_value"]


def test_an_approval_is_a_reason_and_removes_nothing(shell):
    text = "version: 1\nname: v\nlayer: team\napproval: [{over_usd_per_job: 0.001, by: team lead}]\n"
    shell.write("team.yaml", text)
    answer = recommend(shell, "--policy", "team.yaml", "--json")
    assert len(kept(answer)) == len(answer.document["options"])
    held = [any(r.startswith("needs approval by team lead") for r in o["reasons"]) for o in kept(answer)]
    dear = [option["cost_usd"]["p90"] > 0.001 for option in kept(answer)]
    assert held == dear
    needed = "Needs approval by team lead: the job costs $"
    assert (needed in recommend(shell, "--policy", "team.yaml").out) == held[0]
    assert held[0]


def test_what_ifs_obey_the_policy(shell):
    shell.write("org.yaml", "version: 1\nname: acme\nlayer: organisation\ndeny: {markets: [spot]}\n")
    answer = recommend(shell, "--policy", "org.yaml", "--what-if", "all", "--json")
    changed = [option for option in answer.document["options"] if option["what_if"]]
    assert changed
    assert {option["market"] for option in changed} == {"on-demand"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version: 1\nname: a\nlayer: team\nlimit: {usd_per_job: 5}\n", ("org.yaml:4", "limits")),
        ("version: 1\nname: a\nlayer: team\nlimits: {usd_per_job: '5'}\n", ("org.yaml:4",)),
        ("version: 1\nname: a\nlayer: team\ncurrency: EUR\n", ("USD",)),
    ],
)
def test_a_wrong_policy_is_told_before_anything_is_profiled(shell, text, words):
    shell.write("org.yaml", text)
    assert_plain_error(recommend(shell, "--policy", "org.yaml"), 2, *words)


def test_a_missing_policy_is_an_error_never_no_policy(shell):
    assert_plain_error(recommend(shell, "--policy", "nowhere.yaml"), 2, "nowhere.yaml")


# --- Quotas and waits of clouds -----------------------------------------------------------------------


def test_a_configured_wait_for_clouds_counts(shell):
    shell.write(".config/advisor/config.yaml", "cloud: {wait_p50: 1h, wait_p90: 3h}\n")
    answer = recommend(shell, "--json")
    assert answer.code == 0, answer.err
    for option in answer.document["options"]:
        assert option["wait_s"] == {"p50": 3600.0, "p90": 10800.0}
        assert option["time_s"]["p50"] >= 3600
    assert "the wait for cloud capacity is unknown" not in answer.err


@pytest.mark.parametrize(
    "text",
    [
        "cloud: {wait_p50: 1h}\n",
        "cloud: {wait_p50: 3h, wait_p90: 1h}\n",
        "quotas:\n- {provider: aws, vcpus: -1}\n",
        "quotas:\n- {provider: aws}\n",
        "quotas:\n- {provider: aws, vcpu: 8}\n",
    ],
)
def test_half_a_wait_and_a_wrong_quota_are_refused(shell, text):
    shell.write(".advisor.yaml", text)
    assert_plain_error(recommend(shell), 2, "wait_p" if "wait" in text else "quotas")


# --- How policies come in -----------------------------------------------------------------------------


def test_a_flag_adds_rules_and_takes_none_of_the_organisation_away(shell):
    shell.write("org.yaml", "version: 1\nname: acme\nlayer: organisation\nallow: {providers: [gcp]}\n")
    shell.write("mine.yaml", "version: 1\nname: me\nlayer: project\nspot: {allowed: false}\n")
    shell.write(".advisor.yaml", "policy: {files: [org.yaml]}\n")
    answer = recommend(shell, "--policy", "mine.yaml", "--json")
    assert {(o["provider"], o["market"]) for o in kept(answer)} == {("gcp", "on-demand")}


def test_a_projects_month_needs_the_projects_name(shell):
    shell.write("p.yaml", "version: 1\nname: vision\nlayer: project\nlimits: {usd_per_month: 500}\n")
    assert_plain_error(recommend(shell, "--policy", "p.yaml"), 2, "--project")
    assert recommend(shell, "--policy", "p.yaml", "--project", "vision").code == 0


def test_what_only_the_policy_forbids_is_named_where_nothing_is_feasible(shell):
    text = "version: 1\nname: v\nlayer: team\nallow: {gpus: [K80]}\n"
    shell.write("team.yaml", text)
    command = ("recommend", "small.json.gz", "--iterations", "20000", "--offline", "--policy", "team.yaml")
    answer = shell.run(*command)
    assert_plain_error(
        answer, 4, "nothing that the policy keeps is feasible", "allow.gpus: K80 (team.yaml:4)"
    )
