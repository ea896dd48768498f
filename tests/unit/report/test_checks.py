"""Findings of the doctor, all of them, in order."""

from advisor.report.config_tables import checks_document
from advisor.service.health import Check
from tests.unit.report.printed import json_of, on_screen, rows_of

CHECKS = [
    Check(name="python", state="ok", detail="3.12"),
    Check(name="native", state="note", detail="slow"),
    Check(name="catalog", state="broken", detail="missing [bold]file[/bold]"),
]
FACTS = [("python", "ok", "3.12"), ("native", "note", "slow"), ("catalog", "broken", CHECKS[2].detail)]


def test_rows():
    assert [(row["Check"], row["State"], row["Detail"]) for row in rows_of(checks_document(CHECKS))] == FACTS


def test_json():
    checks = json_of(checks_document(CHECKS))["checks"]
    assert [(check["name"], check["state"], check["detail"]) for check in checks] == FACTS


def test_the_table_shows_every_state_and_takes_no_markup():
    out = on_screen(checks_document(CHECKS), 120)
    assert all(text in out for fact in FACTS for text in fact)


def test_no_findings_are_an_empty_list():
    assert json_of(checks_document([]))["checks"] == []
