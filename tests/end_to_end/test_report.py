"""``advisor report`` as a person types it: a year of a made-up team, and everything that can be wrong."""

import csv
import io
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from benchmarks.made_up_team import write_team
from tests.end_to_end.cli import ALL_REGIONS, Shell, assert_plain_error
from tests.unit.spend.bills import write_focus

END = datetime(2026, 11, 1, tzinfo=UTC)
SINCE = END - timedelta(days=365)
YEAR = ("--since", f"{SINCE:%Y-%m-%d}", "--until", f"{END:%Y-%m-%d}")
CENT = Decimal("0.01")
NUM_RUNS = 900
Sums = dict[str, Decimal]
HEADINGS = (
    "In short", "What to do", "The month and its budgets", "Where money leaks", "Who spent it: teams",
    "What a unit costs", "Spending by week",
    "Billed by clouds", "Predicted and actual", "Prices of what",
)  # fmt: skip


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    folder = tmp_path_factory.mktemp("team")
    write_team(folder, END, NUM_RUNS)
    return Shell(folder=folder, regions=ALL_REGIONS)


@pytest.fixture(scope="module")
def year(team):
    answer = team.run("report", *YEAR, "--json")
    assert answer.code == 0, answer.err
    return answer.document


def record(shell: Shell, **changes: str) -> None:
    """A run of yesterday that somebody wrote down."""
    facts = {
        "start": "2026-11-01T09:00",
        "duration": "2h",
        "cost": "3.50",
        "provider": "aws",
        "gpu": "A10G:1",
        "market": "on-demand",
        "project": "resnet",
        "script": "train.py",
    }
    answer = shell.run("run", "record", *(f"--{name}={value}" for name, value in (facts | changes).items()))
    assert answer.code == 0, answer.err


# --- The same figures by plain loops over the raw rows --------------------------------------------------


def raw_runs(team: Shell) -> Iterator[sqlite3.Row]:
    with sqlite3.connect(team.folder / "advisor.db") as connection:
        connection.row_factory = sqlite3.Row
        yield from connection.execute("SELECT * FROM runs")


def inside(written: str) -> bool:
    """Whether a time, as SQLite keeps it or a bill writes it, lies within the year."""
    at = datetime.fromisoformat(written.replace(" UTC", "").replace("Z", "")).replace(tzinfo=UTC)
    return SINCE <= at < END


def monday(written: str) -> str:
    day = datetime.fromisoformat(written).date()
    return f"{day - timedelta(days=day.weekday())}"


def aws_rows(team: Shell) -> Iterator[dict[str, str]]:
    with (team.folder / "aws.csv").open(newline="") as file:
        yield from csv.DictReader(file)


def gcp_rows(team: Shell) -> Iterator[dict[str, Any]]:
    for line in (team.folder / "gcp.jsonl").read_text().splitlines():
        try:
            yield json.loads(line, parse_float=Decimal)
        except ValueError:
            continue


def to_cents(amount: Decimal | float) -> Decimal:
    return Decimal(str(amount)).quantize(CENT)


def assert_cents(shares: list[dict[str, Any]], expected: Sums) -> None:
    assert {one["name"]: to_cents(one["usd"]) for one in shares if one["usd"]} == {
        name: to_cents(usd) for name, usd in expected.items() if usd
    }


def test_spending_is_what_the_raw_rows_add_up_to(team, year):
    sums: dict[str, Sums] = defaultdict(lambda: defaultdict(Decimal))
    num_runs, num_unknown, total = 0, 0, Decimal(0)
    for row in raw_runs(team):
        if not inside(row["started_at"]):
            continue
        num_runs += 1
        if row["cost_usd"] is None:
            num_unknown += 1
            continue
        usd = Decimal(str(row["cost_usd"]))
        total += usd
        for name in ("project", "gpu", "market", "provider"):
            sums[name][row[name]] += usd
        sums["week"][monday(row["started_at"])] += usd
    spending = year["spending"]
    assert abs(num_runs - NUM_RUNS) < 10
    assert (spending["num_runs"], spending["num_unknown"]) == (num_runs, num_unknown)
    assert num_unknown > 10
    assert to_cents(spending["usd"]) == to_cents(total)
    for name in ("project", "gpu", "market", "provider", "week"):
        assert_cents(spending[f"by_{name}"], sums[name])


def test_bills_are_what_their_raw_rows_add_up_to(team, year):
    by_provider: Sums = defaultdict(Decimal)
    by_machine: Sums = defaultdict(Decimal)
    other: Sums = defaultdict(Decimal)
    tax = Decimal(0)
    for row in aws_rows(team):
        if not inside(row["ChargePeriodStart"]) or row["BilledCost"] == "twelve":
            continue
        usd = Decimal(row["BilledCost"])
        if row["ChargeCategory"] == "Tax":
            tax += usd
        elif row["BillingCurrency"] != "USD":
            other[row["BillingCurrency"]] += usd
        else:
            by_provider["aws"] += usd
            by_machine[row["x_InstanceType"]] += usd
    for row in gcp_rows(team):
        if inside(row["usage_start_time"]):
            usd = Decimal(row["cost"]) + sum(Decimal(credit["amount"]) for credit in row["credits"])
            by_provider["gcp"] += usd
            by_machine[row["system_labels"][0]["value"]] += usd
    billing = year["billing"]
    assert_cents(billing["by_provider"], by_provider)
    assert to_cents(billing["usd"]) == to_cents(sum(by_provider.values(), Decimal(0)))
    assert to_cents(billing["tax_usd"]) == to_cents(tax) > 0
    assert {name: to_cents(usd) for name, usd in billing["other_currencies"].items()} == other
    del by_machine[""]  # disks
    assert {one["instance_type"]: to_cents(one["billed_usd"]) for one in billing["machines"]} == {
        name: to_cents(usd) for name, usd in by_machine.items()
    }


def test_idle_machines_are_what_runs_do_not_explain(team, year):
    explained: Sums = defaultdict(Decimal)
    for row in raw_runs(team):
        if inside(row["started_at"]) and row["cost_usd"] is not None:
            explained[row["instance_type"]] += Decimal(str(row["cost_usd"]))
    for machine in year["billing"]["machines"]:
        usd = explained[machine["instance_type"]]
        assert to_cents(machine["explained_usd"]) == to_cents(usd)
        assert to_cents(machine["idle_usd"]) == to_cents(Decimal(str(machine["billed_usd"])) - usd)


def test_intervals_held_as_the_raw_rows_say(team, year):
    with sqlite3.connect(team.folder / "advisor.db") as connection:
        (num, within, cheap) = connection.execute(
            """SELECT count(*), sum(r.duration_s <= a.num_iterations * a.iteration_p90_s),
                      sum(r.cost_usd <= a.cost_p90_usd)
               FROM runs r JOIN recommendations a ON a.id = r.recommendation_id
               WHERE r.status = 'finished' AND r.started_at >= ? AND r.started_at < ?""",
            (f"{SINCE:%Y-%m-%d %H:%M:%S}", f"{END:%Y-%m-%d %H:%M:%S}"),
        ).fetchone()
    record = year["accuracy"]["time"]
    assert (record["num"], record["num_within_p90"]) == (num, within)
    assert year["accuracy"]["cost"]["num_within_p90"] == cheap
    assert record["expected_within_p90"] == pytest.approx(0.9 * num)
    # The team was made up so that predictions are honest.
    assert within == pytest.approx(0.9 * num, rel=0.03)


def test_failed_runs_leak_what_they_cost(team, year):
    expected: Sums = defaultdict(Decimal)
    for row in raw_runs(team):
        if inside(row["started_at"]) and row["cost_usd"] is not None:
            expected[row["status"]] += Decimal(str(row["cost_usd"]))
    leaks = {one["facts"]["of"]: one["facts"] for one in year["leak_findings"] if one["code"] == "leak"}
    for status in ("failed", "interrupted", "lost"):
        assert to_cents(leaks[status]["usd"]) == to_cents(expected[status])


def test_prices_are_the_first_and_last_of_the_history(team, year):
    with sqlite3.connect(team.folder / "advisor.db") as connection:
        for move in year["prices"]:
            points = connection.execute(
                """SELECT p.usd_per_h, p.observed_at
                   FROM price_points p JOIN price_series s ON s.id = p.series_id
                   WHERE s.instance_type = ? AND s.zone = ? AND s.market = ? ORDER BY p.observed_at""",
                (move["instance_type"], move["zone"] or "", move["market"]),
            ).fetchall()
            within = [usd for usd, at in points if inside(at)]
            before = [usd for usd, at in points if not inside(at) and at < f"{SINCE:%Y-%m-%d}"]
            seen = [*before[-1:], *within]
            assert (move["first_usd_per_h"], move["last_usd_per_h"]) == (seen[0], seen[-1])
            assert (move["lowest_usd_per_h"], move["highest_usd_per_h"]) == (min(seen), max(seen))
    assert {move["market"] for move in year["prices"]} == {"on-demand", "spot"}


def test_every_saving_is_sure_and_its_command_asks_for_it(year):
    assert year["savings"]
    for saving in year["savings"]:
        assert saving["usd"]["p50"] <= saving["usd"]["p90"] < saving["usd_per_run"]
        assert saving["deadline_s"] is None or saving["time_s"]["p90"] <= saving["deadline_s"]
        asked = f"advisor recommend {saving['script']} --iterations 10000 --gpu "
        assert saving["command"].startswith(asked)
        assert "cheaper on" in saving["words"]


# --- Formats ----------------------------------------------------------------------------------------------


def test_a_terminal_shows_sums_that_add_up_to_the_cent(team):
    answer = team.run("report", *YEAR)
    assert answer.code == 0
    assert answer.err == ""
    for heading in HEADINGS:
        assert heading in answer.out
    _, _, table = answer.out.partition("Runs by GPU\n")
    rows = [line.split() for line in table.partition("Runs by market")[0].splitlines() if "$" in line]
    total = answer.out.partition("at least $")[2].split()[0]
    shown = sum(Decimal(row[3].lstrip("$").replace(",", "")) for row in rows)
    assert shown == Decimal(total.replace(",", ""))


def test_who_spent_it_adds_up_to_what_was_spent_once(year):
    showback = year["showback"]
    assert {part["name"] for part in showback["by_team"]} >= {"vision", "language"}
    for parts in (showback["by_team"], showback["by_project"]):
        assert to_cents(sum(part["usd"] + part["shared_usd"] for part in parts)) == to_cents(showback["usd"])
    # Every cloud of the made-up team has a bill, so most of what was spent is what was billed.
    billed = year["billing"]["amortised_usd"]
    assert billed <= showback["usd"] < billed + year["spending"]["usd"]


def test_a_mistyped_project_is_refused(shell):
    write_focus(shell.folder / "bill.csv")
    known = shell.run("report", "--bills", "bill.csv", "--project", "resnet")
    assert known.code == 0, known
    assert_plain_error(
        shell.run("report", "--bills", "bill.csv", "--project", "resnte"), 2, "Did you mean 'resnet'?"
    )
    shell.write(".config/advisor/config.yaml", "report: {teams: {vision: [newcomer]}}")
    assert shell.run("report", "--bills", "bill.csv", "--project", "newcomer").code == 0


def test_a_team_and_a_project_are_parts_of_all(team, year):
    parts = [
        team.run("report", *YEAR, "--json", *flags).document
        for flags in (("--team", "vision"), ("--project", "bert"))
    ]
    assert [part["projects"] for part in parts] == [["detr", "resnet"], ["bert"]]
    assert sum(part["spending"]["num_runs"] for part in parts) == year["spending"]["num_runs"]
    together = sum(Decimal(str(part["spending"]["usd"])) for part in parts)
    assert to_cents(together) == to_cents(year["spending"]["usd"])
    # The limit is the organisation's, so it counts everybody.
    assert {part["budgets"][0]["spent_usd"] for part in parts} == {year["budgets"][0]["spent_usd"]}


def test_a_spreadsheet_has_a_row_for_each_run(team, year):
    answer = team.run("report", *YEAR, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert len(rows) == year["spending"]["num_runs"]
    total = sum(Decimal(row["cost_usd"]) for row in rows if row["cost_usd"])
    assert to_cents(total) == to_cents(year["spending"]["usd"])
    assert "warning: the cost of" in answer.err


def test_a_file_is_written_whole_and_nothing_printed(shell):
    write_focus(shell.folder / "bill.csv")
    (shell.folder / "out").mkdir()
    answer = shell.run("report", "--bills", "bill.csv", "--format", "markdown", "--out", "out/report.md")
    assert (answer.code, answer.out) == (0, "")
    (written,) = (shell.folder / "out").iterdir()
    title, _, rest = written.read_text().partition("\n\n")
    assert title.startswith("### Report of everybody, ")
    assert rest.startswith("**In short**\n\n| In short | Figure | And |")


@pytest.mark.parametrize(
    ("name", "flags", "begins"),
    [
        ("r.html", (), "<!doctype html>"),
        ("r.MD", (), "### Report of everybody, "),
        ("r.csv", (), "started_at,"),
        ("r.csv", ("--format", "focus"), "AvailabilityZone,"),
        ("r.json", (), "{\n"),
        ("r.txt", (), "Report of everybody, "),
        ("r", ("--json",), "{\n"),
    ],
)
def test_the_name_of_a_file_says_its_format(shell, name, flags, begins):
    record(shell)
    answer = shell.run("report", *flags, "--out", name)
    assert answer.code == 0, answer
    assert (shell.folder / name).read_text()[:200].startswith(begins)


def test_focus_rows_are_read_back_as_the_same_charges(team, year, shell):
    rows = team.run("report", *YEAR, "--format", "focus").out
    shell.write("ours.csv", rows)
    again = shell.run("report", *YEAR, "--bills", "ours.csv", "--json").document
    assert not [one for one in again["warning_findings"] if one["code"] == "bill-rows-left-out"]
    assert to_cents(again["billing"]["usd"]) == to_cents(year["billing"]["usd"])
    mine, theirs = (
        {one["instance_type"]: to_cents(one["billed_usd"]) for one in document["billing"]["machines"]}
        for document in (again, year)
    )
    assert mine == theirs


# --- What can be wrong ------------------------------------------------------------------------------------


def test_without_a_ledger_the_first_steps_are_shown(shell):
    answer = shell.run("report")
    assert answer.code == 0
    assert answer.out.startswith("Nothing is recorded yet")
    assert "advisor recommend train.py --epochs 90 --record" in answer.out
    assert not list(shell.folder.rglob("*.db"))
    document = shell.run("report", "--json").document
    assert document["is_first"] is True
    assert document["next_steps"]


def test_a_store_of_prices_alone_is_no_ledger(team, shell):
    record(shell)
    path = next(shell.folder.rglob("*.db"))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM runs")
    assert shell.run("report").out.startswith("Nothing is recorded yet")


def test_a_threshold_ends_with_5_when_the_report_is_written(shell):
    record(shell)
    (shell.folder / "org.yaml").write_text(
        "version: 1\nname: Acme\nlayer: organisation\nlimits: {usd_per_month: 4}\n"
    )
    words = ("report", *YEAR[:2], "--until", "2026-11-10", "--policy", "org.yaml", "--fail-above")
    answer = shell.run(*words, "80%")
    assert answer.code == 5
    assert "Report of Acme" in answer.out
    assert "Acme spent $3.50 of $4.00 (88%)" in answer.err
    assert shell.run(*words, "90%").code == 0


def test_bills_alone_make_a_report(shell):
    write_focus(shell.folder / "bill.csv")
    answer = shell.run("report", *YEAR[:2], "--until", "2026-11-10", "--bills", "bill.csv", "--json")
    assert answer.document["billing"]["usd"] == 1.25
    assert answer.document["billing"]["amortised_usd"] == 1.2
    assert answer.document["billing"]["machines"][0]["idle_usd"] == 1.2


def test_an_empty_period_says_so(shell):
    record(shell)
    answer = shell.run("report", "--since", "2025-01-01", "--until", "2025-01-08")
    assert answer.code == 0
    assert "no run is recorded in this period" in answer.out
    assert "Spending by week" not in answer.out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--since", "2026-11-20", "--until", "2026-11-10"), "is not before --until 2026-11-10"),
        (("--since", "0s"), "so the period is empty: give an earlier one, such as 7d"),
        (("--until", "2999-01-01"), "--until 2999-01-01T00:00:00+00:00 lies in the future"),
        (("--format", "xml"), "'xml' is not one of"),
        (("--bills", "none.csv"), "cannot read 'none.csv': No such file"),
    ],
)
def test_what_was_typed_wrong_is_told(shell, flags, words):
    assert_plain_error(shell.run("report", *flags), 2, words)


def test_an_unknown_team_has_its_nearest_match(shell):
    assert_plain_error(shell.run("report", "--team", "vision"), 2, "No team is configured", "report.teams:")
    shell.write(".config/advisor/config.yaml", "report: {teams: {vision: [resnet], speech: [whisper]}}")
    assert_plain_error(
        shell.run("report", "--team", "visoin"), 2, "Did you mean 'vision'?", "There are speech, vision."
    )
    assert_plain_error(
        shell.run("report", "--team", "vision", "--project", "resnte"),
        2,
        "is no project of the team vision (resnet). Did you mean 'resnet'?",
    )


def test_a_project_file_makes_no_teams(shell):
    shell.write(".advisor.yaml", "report: {teams: {vision: [resnet]}, bills: [theirs.csv]}")
    answer = shell.run("report", "--team", "vision")
    assert_plain_error(answer, 2, "report.teams: ", "is refused: a project may not set it", "report.bills: ")


def test_a_corrupt_store_is_left_as_it_is_and_the_way_out_is_told(shell):
    record(shell)
    path = next(shell.folder.rglob("advisor.db"))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damaged = path.read_bytes()
    damaged = damaged[:100] + b"\xff" * 8000 + damaged[8100:]
    path.write_bytes(damaged)
    answer = shell.run("report")
    assert_plain_error(answer, 1, str(path), "Restore a backup, or move the file away")
    assert path.read_bytes() == damaged


def test_a_store_that_is_none_is_told(shell):
    shell.write(".config/advisor/config.yaml", "store: {url: 'sqlite:///notes.txt'}")
    shell.write(".config/advisor/notes.txt", "not a database, but long enough to look like one" * 20)
    assert_plain_error(shell.run("report"), 1, "notes.txt", "file is not a database", "move this one away")


def test_other_money_is_listed_and_not_added_up(shell):
    write_focus(shell.folder / "bill.csv", {}, {"BillingCurrency": "EUR", "BilledCost": "40"})
    answer = shell.run("report", *YEAR[:2], "--until", "2026-11-10", "--bills", "bill.csv")
    assert "1 charge in EUR, 40.00 in all, was not converted and is not included" in answer.out
    assert "$1.25" in answer.out
    assert "$41.25" not in answer.out


def test_a_csv_that_is_cut_off_counts_its_torn_row(shell):
    path = write_focus(shell.folder / "bill.csv", {}, {})
    path.write_text(path.read_text()[:-90])
    answer = shell.run("report", *YEAR[:2], "--until", "2026-11-10", "--bills", "bill.csv")
    assert "1 row left out that cannot be read, beside 1 that could ($0.00 in all, 1 of unknown" in answer.out
    assert "Not included" in answer.out


def test_names_of_runs_do_nothing_to_who_reads_them(shell):
    record(shell, script="<script>alert(1)</script>\x1b[2J", project="=cmd()|x")
    flags = ("report", "--since", "2026-10-30", "--until", "2026-11-05")
    assert "\x1b" not in shell.run(*flags).out
    assert "<script>alert" not in shell.run(*flags, "--format", "markdown").out
    assert "'=cmd()" in shell.run(*flags, "--format", "csv").out
