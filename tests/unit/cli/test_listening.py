"""The command line as a listener: what it hears goes to standard error, arguments are flags."""

import pytest
from typer.main import get_command

from advisor.cli import app
from advisor.cli.listening import TERMINAL
from advisor.report.plain import FLAGS
from advisor.service.listening import Listener


@pytest.mark.parametrize("listener", [TERMINAL, Listener()])
def test_what_listens_has_all_that_is_asked_of_it(listener):
    with listener.step("reading") as step:
        step.update("a phase")
        step.follow("no event")
    with listener.count("measuring") as count:
        count(1, 2)


def test_notes_and_warnings_go_to_standard_error(capsys):
    TERMINAL.note("one")
    TERMINAL.warn(["two", "three"])
    with TERMINAL.step("pulling prices", at_once=True):
        pass
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "note: one",
        "warning: two",
        "warning: three",
        "note: pulling prices",
    ]


@pytest.mark.parametrize(
    ("argument", "flag"),
    [
        ("cloud.regions", "--region"),
        ("profile.fake_data", "--fake-data"),
        ("max_usd_per_h", "--max-price"),
        ("project", "--project"),
    ],
)
def test_an_argument_is_called_by_its_flag(argument, flag):
    assert TERMINAL.name_of(argument) == flag
    assert Listener().name_of(argument) == argument


def test_every_flag_that_differs_from_its_argument_exists():
    def flags(command: object) -> set[str]:
        own = {name for parameter in command.params for name in parameter.opts}  # type: ignore[attr-defined]
        return own.union(*(flags(inner) for inner in getattr(command, "commands", {}).values()))

    assert set(FLAGS.values()) <= flags(get_command(app))
