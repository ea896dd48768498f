"""Every place that stores, prints or sends the words of others hides secrets: the list of those places."""

import ast
import io
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from advisor.config.project_layer import Refused, Why
from advisor.config.setting_kinds import ProjectMay
from advisor.core.errors import InputError
from advisor.core.plugins import error_in_words
from advisor.core.redaction import named_without_secrets, without_secrets
from advisor.delivery.channel import quoted_words
from advisor.payload.protocol import Result
from advisor.profile.recording import _shown
from advisor.report import plain
from advisor.report.config_tables import refused_in_words
from advisor.schedule.schedulable import check_words
from advisor.service.receipts import _script
from advisor.service.recommend.ledger_entries import _command
from advisor.service.schedule.child_commands import _kept
from tests.secret_shapes import SHAPES

ROOT = Path(__file__).parents[2]
TOKEN = SHAPES["GitHub"][1]
PASSWORD = "Tr0ub" + "4dor&3"
# As a user types them; the last three are told by the words before them alone.
WORDS = [
    ["curl", "-u", f"me:{PASSWORD}", "https://example.org"],
    ["train", "--password", PASSWORD],
    ["train", f"--pw={PASSWORD}"],
    ["train", "--api-key", PASSWORD],
    ["train", f"DB_PASS={PASSWORD}"],
    ["train", f"postgresql://me:{PASSWORD}@db/x"],
    ["train", f"-p{PASSWORD}"],
    ["train", "-p", PASSWORD],
    ["train", "--token", TOKEN],
    ["train", TOKEN],
    ["train", "--header", f"Authorization: Bearer {TOKEN}"],
    ["train", f"https://hooks.slack.com/services/T0/B0/{TOKEN}"],
    ["train", "--db.pass", PASSWORD],
    ["train", "--smtp_pw", PASSWORD],
]
TEXT = f"login with password={PASSWORD} and {TOKEN} failed"


def of_a_script(text: str) -> str:
    result = {
        "format_version": 1,
        "status": "crashed",
        **dict.fromkeys(("message", "traceback", "text"), text),
        "refused": [text],
        "warnings": [
            {"code": "not-done", "facts": {"what": "download", "name": text}},
            {"code": text, "facts": {"x": text}},
        ],
    }
    return str(_shown(cast("Result", result)))


def of_a_project(text: str) -> str:
    line = Refused(
        setting="store.url",
        value={"note": text},
        file=Path("/a"),
        line=1,
        allowed=ProjectMay.NOTHING,
        why=Why.NOT_ALLOWED,
    )
    return refused_in_words(line)


SINKS: dict[str, Callable[[str], str]] = {
    "what a script says: errors, tracebacks, warnings": of_a_script,
    "what a scheduled command printed": lambda text: _kept(io.BytesIO(text.encode())),  # type: ignore[arg-type]
    "what a server answers to a delivery": quoted_words,
    "errors of clouds and plug-ins": lambda text: error_in_words(RuntimeError(text)),
    "settings, as config show and doctor have them": lambda text: str(without_secrets({"x": [text]})),
    "a setting of a secret's name": lambda text: str(named_without_secrets("db_password", text)),
    "what a project was refused": of_a_project,
}


@pytest.mark.parametrize("name", SINKS)
def test_texts_lose_their_secrets(name):
    shown = SINKS[name](TEXT)
    assert PASSWORD not in shown
    assert TOKEN not in shown


@pytest.mark.parametrize(
    "say", [plain.print_error, plain.print_progress, lambda text: plain.print_message("warning", text)]
)
def test_whatever_is_said_on_stderr_loses_its_secrets(say, capsys):
    say(TEXT)
    said = capsys.readouterr().err
    assert "***" in said
    assert PASSWORD not in said
    assert TOKEN not in said


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize("store", [_command, _script], ids=["the ledger", "receipts"])
def test_command_lines_are_stored_without_secrets(store, words):
    stored = store(words)
    assert PASSWORD not in stored
    assert TOKEN not in stored


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_no_schedule_keeps_a_secret(words):
    with pytest.raises(InputError, match="what looks like a password"):
        check_words(["recommend", "t.py", "--", *words])


def test_ordinary_schedules_are_kept():
    check_words(
        [
            "recommend",
            "t.py",
            "--budget",
            "50",
            "--to",
            "mail",
            "--",
            "--max-tokens",
            "512",
            "--tokenizer",
            "gpt2",
        ]
    )
    check_words(["report", "--since", "30d", "--format", "json", "--out", "/srv/report-{date}.html"])


def test_nothing_else_writes_to_stderr():
    """What does not go through `plain` would not lose its secrets."""
    writers = set()
    for path in sorted((ROOT / "advisor").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            to = [
                ast.unparse(word.value) for word in node.keywords if called == "print" and word.arg == "file"
            ]
            is_write = called.endswith("stderr.write")
            if is_write or any("stderr" in place for place in to):
                writers.add(path.relative_to(ROOT).as_posix())
    # It says "interrupted".
    assert writers <= {"advisor/__main__.py"}
