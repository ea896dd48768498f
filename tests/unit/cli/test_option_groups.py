"""Options that a command takes as one value, and typer reads one by one."""

import inspect
from dataclasses import dataclass, fields
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from advisor.cli.options import (
    DataOptions,
    JobOptions,
    OfferOptions,
    OutputOptions,
    ScriptOptions,
    ViewOptions,
    with_groups,
)
from advisor.config.settings import setting_names
from advisor.core.errors import InputError
from advisor.core.values import Job
from advisor.report.printing import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    width: Annotated[int, typer.Option(metavar="N", help="How wide.", min=1)] = 2
    height: Annotated[int | None, typer.Option(metavar="N", help="How high.")] = None


def app(seen: list[object]) -> typer.Typer:
    def draw(
        name: Annotated[str, typer.Argument()],
        *,
        bold: Annotated[bool, typer.Option("--bold")] = False,
        size: Size,
        colour: Annotated[str, typer.Option()] = "red",
    ) -> None:
        """Draw it."""
        seen.append((name, bold, size, colour))

    # Annotations are texts here, as in every module of ours; these name what only this function has.
    draw.__annotations__ = inspect.get_annotations(draw, globals=globals(), eval_str=True)
    made = typer.Typer()
    made.command()(with_groups(draw))
    return made


def ran(*words: str) -> object:
    seen: list[object] = []
    result = CliRunner().invoke(app(seen), words)
    assert result.exit_code == 0, result.output
    return seen[0]


def test_the_command_gets_the_group_as_one_value():
    words = ("x", "--bold", "--width", "3", "--colour", "blue", "--height", "4")
    assert ran(*words) == ("x", True, Size(width=3, height=4), "blue")


def test_defaults_are_those_of_the_fields():
    assert ran("x") == ("x", False, Size(), "red")


def test_options_stand_in_the_help_where_the_group_stands():
    text = CliRunner().invoke(app([]), ["--help"]).output
    assert "Draw it." in text
    places = [text.index(word) for word in ("--bold", "--width", "How high.", "--colour")]
    assert places == sorted(places)


def test_limits_of_a_field_hold():
    result = CliRunner().invoke(app([]), ["x", "--width", "0"])
    assert result.exit_code == 2
    assert "--width" in result.output


def test_two_calls_share_nothing():
    seen: list[object] = []
    both = app(seen)
    for width in ("3", "4"):
        CliRunner().invoke(both, ["x", "--width", width])
    assert seen == [("x", False, Size(width=3), "red"), ("x", False, Size(width=4), "red")]


@pytest.mark.parametrize("group", [OfferOptions, ScriptOptions, DataOptions])
def test_every_option_is_a_setting_and_none_is_forgotten(group):
    given = {field.name: object() for field in fields(group)}
    settings = group(**given).settings()
    assert {name.replace("__", ".") for name in settings} <= set(setting_names())
    # The world and the exact number of nodes belong to the request: no setting holds them.
    assert set(given) - {"world", "nodes"} == {
        name for name, value in given.items() if value in settings.values()
    }


def test_options_of_a_job_become_the_job():
    options = JobOptions(
        epochs=2.0,
        iterations=3,
        iterations_per_epoch=4,
        budget=5.0,
        deadline="2h",
        confidence=0.5,
        value_of_time=6.0,
        risk=True,
    )
    assert options.job() == Job(
        epochs=2.0,
        iterations=3,
        iterations_per_epoch=4,
        budget_usd=5.0,
        deadline_s=7200.0,
        confidence=0.5,
        value_of_time_usd_per_h=6.0,
        risk_counts=True,
    )


def test_a_deadline_that_is_none_is_refused_by_its_flag():
    with pytest.raises(InputError, match="--deadline"):
        JobOptions(deadline="soon").job()


@pytest.mark.parametrize(("view", "rows"), [({}, 15), ({"top": 3}, 3), ({"top": 3, "all_": True}, None)])
def test_all_rows_win_over_a_number(view, rows):
    assert ViewOptions(**view).num_rows == rows


@pytest.mark.parametrize("output", list(Format))
def test_json_is_a_format_that_contradicts_others(output):
    assert OutputOptions(output=output).form is output
    if output in (Format.TABLE, Format.JSON):
        assert OutputOptions(output=output, as_json=True).form is Format.JSON
    else:
        with pytest.raises(InputError, match=f"--json and --format {output} contradict each other"):
            _ = OutputOptions(output=output, as_json=True).form
