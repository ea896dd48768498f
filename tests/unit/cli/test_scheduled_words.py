"""What may be scheduled is there, and parses as it would when the time has come."""

import pytest
import typer

from advisor.cli.commands import app
from advisor.cli.schedule import check_command_line
from advisor.core.errors import InputError
from advisor.schedule.schedulable import SCHEDULABLE

ROOT = typer.main.get_command(app)


def has_command(name: str) -> bool:
    command = ROOT
    for part in name.split():
        command = getattr(command, "commands", {}).get(part)
    return command is not None


@pytest.mark.parametrize("name", SCHEDULABLE)
def test_what_may_be_scheduled_is_a_command_and_other_options_are_refused(name):
    if not has_command(name):
        with pytest.raises(InputError, match=f"this advisor has no command '{name}' yet"):
            check_command_line(ROOT, name.split())
        return
    with pytest.raises(Exception, match="No such option: --no-such-option"):
        check_command_line(ROOT, [*name.split(), "--no-such-option"])


def test_words_are_parsed_and_nothing_runs(capsys):
    check_command_line(ROOT, ["prices", "refresh", "--region", "us-east-1"])
    check_command_line(ROOT, ["prices", "--gpu", "H100", "--json"])
    check_command_line(ROOT, ["recommend", "gone.py", "--epochs", "1", "--", "--lr", "0.1"])
    assert capsys.readouterr() == ("", "")
    for words in (["prices", "--gpu", "H100", "refresh"], ["prices", "sell"]):
        with pytest.raises(InputError, match="cannot be scheduled"):
            check_command_line(ROOT, words)
