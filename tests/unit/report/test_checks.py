"""Findings of the doctor, all of them, in order."""

from advisor.report.config_tables import checks_document
from advisor.report.printing import Format, print_document
from advisor.service.health import Check
from tests.unit.report.printed import read_csv, read_json

CHECKS = [
    Check(name="python", state="ok", detail="3.12"),
    Check(name="native", state="note", detail="slow"),
    Check(name="catalog", state="broken", detail="missing [bold]file[/bold]"),
]
FACTS = [("python", "ok", "3.12"), ("native", "note", "slow"), ("catalog", "broken", CHECKS[2].detail)]


def test_rows(capsys):
    print_document(checks_document(CHECKS), Format.CSV)
    assert [(row["Check"], row["State"], row["Detail"]) for row in read_csv(capsys)] == FACTS


def test_json(capsys):
    print_document(checks_document(CHECKS), Format.JSON)
    checks = read_json(capsys)["checks"]
    assert [(check["name"], check["state"], check["detail"]) for check in checks] == FACTS


def test_the_table_shows_every_state_and_takes_no_markup(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    print_document(checks_document(CHECKS), Format.TABLE)
    out = capsys.readouterr().out
    assert all(text in out for fact in FACTS for text in fact)


def test_no_findings_are_an_empty_list(capsys):
    print_document(checks_document([]), Format.JSON)
    assert read_json(capsys)["checks"] == []
