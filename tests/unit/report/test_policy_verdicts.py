"""Policies and explanations as tables and JSON; the commands' tests see them whole."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from advisor.core.values import DeliverWhen, Occurrence, OccurrenceState, Tier
from advisor.report.deliveries import (
    NO_SCHEDULES,
    added_document,
    output_document,
    ran_document,
    schedule_document,
    schedules_document,
)
from advisor.report.policy_verdicts import check_document, explained_document, policy_document
from advisor.report.printing import Format, text_of
from advisor.report.writers.terminal import Screen, to_terminal
from advisor.service.schedule.managing import Planned
from advisor.site_files.policy_files import check_policies
from recommender.conditions import Facts, Spent
from tests.schedules import make_schedule
from tests.unit.recommender.policy.files import policy_of, write
from tests.unit.report.printed import json_of, on_screen


def test_a_check_with_faults_is_empty_for_people(tmp_path):
    checked = check_policies(write(tmp_path, org="x: 1", team="limits: {usd_per_job: 1}"))
    assert on_screen(check_document(checked), 80) == ""
    document = json_of(check_document(checked))
    assert (document["files"], len(document["faults"])) == ([], 1)


def test_overruled_rules_count_as_rules_of_their_file(tmp_path):
    paths = write(tmp_path, org="limits: {usd_per_job: 2}", team="limits: {usd_per_job: 1}")
    assert [file["num_rules"] for file in json_of(check_document(check_policies(paths)))["files"]] == [1, 1]


def test_values_keep_their_types_in_json(tmp_path):
    policy = policy_of(
        tmp_path,
        org="allow: {regions: [a, b]}\nlimits: {gpus_per_job: 8}\nspot: {allowed: false}\n"
        "prefer: {tier: cluster, if: {wait_p90_under: 90m}}\nobjective: {pick: safest}\n"
        "approval: [{over_usd_per_job: 1.5, by: me}]",
    )
    assert {rule["key"]: rule["value"] for rule in json_of(policy_document(policy))["rules"]} == {
        "allow.regions": ["a", "b"],
        "limits.gpus_per_job": 8,
        "spot.allowed": False,
        "prefer": {"tier": "cluster", "if": {"wait_p90_under": "1h30m"}},
        "objective.pick": "safest",
        "approval": {"over_usd_per_job": 1.5, "by": "me"},
    }


def test_an_infinite_cost_is_null_in_json(tmp_path):
    policy = policy_of(tmp_path, org="limits: {usd_per_job: 5}\napproval: [{over_usd_per_job: 1, by: me}]")
    facts = Facts(usd_per_job=float("inf"), spent=Spent(all_usd=1.0, project_usd=0.5))
    document = json_of(explained_document(facts, policy))
    assert document["plan"]["usd_per_job"] is None
    assert document["plan"]["spent"] == {
        "all_usd": 1.0,
        "project_usd": 0.5,
        "all_num_unknown": 0,
        "project_num_unknown": 0,
    }
    assert (document["removed"], document["approvals"]) == (True, ["me"])


def test_what_a_preference_and_an_objective_say_of_one_plan(tmp_path):
    policy = policy_of(tmp_path, org="prefer: {tier: cluster}\nobjective: {pick: safest}")
    rules = {}
    for tier in Tier:
        rules[tier] = {
            rule["key"]: rule["effect"]
            for rule in json_of(explained_document(Facts(tier=tier), policy))["rules"]
        }
    assert rules[Tier.CLUSTER] == {"prefer": "keeps", "objective.pick": "does not apply"}
    assert rules[Tier.CLOUD] == rules[Tier.LOCAL] == {"prefer": "unknown", "objective.pick": "does not apply"}


def test_an_explanation_breaks_no_word_in_eighty_columns(tmp_path):
    regions = [f"northamerica-northeast{number}" for number in range(12)]
    policy = policy_of(tmp_path, org=f"allow: {{regions: {regions}}}\nlimits: {{usd_per_hour: 100}}")
    facts = Facts(region="us-east-1", usd_per_h=50.0)
    lines = on_screen(explained_document(facts, policy), 80).splitlines()
    # A path may be longer than the terminal, and stays whole to be copied.
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 80
    words = " ".join(lines).replace(",", "").split()
    assert all(region in words for region in (*regions, "us-east-1"))
    assert lines[0].startswith("removes: allow.regions: northamerica-northeast0")
    assert "keeps: limits.usd_per_hour: 100" in lines
    assert sum(f"{tmp_path}" in line for line in lines) == 2
    assert "Says" in on_screen(explained_document(facts, policy), 160).splitlines()[1]


DUE = datetime(2026, 11, 23, 7, tzinfo=UTC)
DONE = Occurrence(
    schedule_id="5f",
    due_at=DUE,
    state=OccurrenceState.DONE,
    holder="process 7 on vm",
    started_at=DUE + timedelta(seconds=1),
    ended_at=DUE + timedelta(seconds=91),
    attempts=1,
    exit_code=0,
    recommended="aws/x",
    outcome="recommends aws/x",
    delivery="sent to team",
    output_sha256="ab" * 32,
    output="first line\n\x1b[2Jsecond line",
)
MISSED = Occurrence(schedule_id="5f", due_at=DUE - timedelta(days=7), state=OccurrenceState.MISSED)
PLANNED = Planned(
    schedule=make_schedule(channel="team", when=DeliverWhen.CHANGES),
    next_at=DUE + timedelta(days=7),
    past=(DONE, MISSED),
)


def wide(document) -> str:
    return " ".join(to_terminal(document, Screen(160)).split())


def test_the_list_has_both_clocks_and_the_last_end():
    text = wide(schedules_document([PLANNED]))
    assert "Mon 2026-11-30 08:00 CET 2026-11-30 07:00 UTC" in text
    assert "done Mon 2026-11-23 08:00 CET: recommends aws/x" in text
    (row,) = json.loads(text_of(schedules_document([PLANNED]), Format.JSON))["schedules"]
    assert (row["next_at"], row["next_at_local"]) == (
        "2026-11-30T07:00:00+00:00",
        "2026-11-30T08:00:00+01:00",
    )
    assert (row["when"], row["last"]["state"]) == ("changes", "done")
    assert wide(schedules_document([])) == NO_SCHEDULES


def test_what_is_not_known_is_a_dash_and_never_zero():
    document = schedule_document(replace(PLANNED, past=(MISSED,), next_at=None))
    text = wide(document)
    assert "Next never never" in text
    assert "Mon 2026-11-16 08:00 CET missed 0 - - -" in text
    facts = json.loads(text_of(document, Format.JSON))
    assert facts["schedule"]["next_at"] is None
    (missed,) = facts["occurrences"]
    assert missed["exit_code"] is missed["started_at"] is missed["output_sha256"] is None


def test_one_schedule_shows_its_past_and_what_it_wrote_made_harmless():
    text = wide(schedule_document(PLANNED))
    assert "Output goes to team, changes" in text
    assert "Mon 2026-11-23 08:00 CET done 1 2 min recommends aws/x sent to team" in text
    assert "What it wrote, Mon 2026-11-23 08:00 CET: first line \\x1b[2Jsecond line" in text


def test_what_was_added_says_where_and_when():
    words = make_schedule(command=("recommend", "my script.py"))
    text = wide(added_document(Planned(schedule=words, next_at=DUE)))
    assert text.startswith("Added weekly: advisor recommend 'my script.py' in /home/ann/train, next Mon")


def test_what_is_sent_and_what_ran_now_say_which_schedule_and_how_it_ended():
    document = output_document(PLANNED.schedule, DONE)
    assert "advisor prices refresh: recommends aws/x" in wide(document)
    assert "Schedule weekly, due Mon 2026-11-23 08:00 CET" in wide(document)
    assert json.loads(text_of(document, Format.JSON))["occurrence"]["exit_code"] == 0
    assert wide(ran_document("weekly", DONE)).endswith("weekly: done, recommends aws/x; sent to team")


def test_every_format_shows_every_document():
    documents = (
        schedules_document([PLANNED]), schedule_document(PLANNED), added_document(PLANNED),
        ran_document("weekly", DONE), output_document(PLANNED.schedule, DONE), schedules_document([]),
    )  # fmt: skip
    for document in documents:
        for output in Format:
            assert "\x1b[2J" not in text_of(document, output)
