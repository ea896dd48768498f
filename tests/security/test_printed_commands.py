"""The whole command line on files of somebody else: what reaches the terminal is text."""

import pytest
import yaml

from advisor.formats.trace_files import write_trace
from tests.end_to_end.cli import ALL_REGIONS, Answer, Shell, assert_plain_error
from tests.security.hostile import ATTACK, assert_is_text, trace_with

NAMED = ATTACK.replace("\x00", "")
FORMATS = ("table", "csv", "markdown", "json")


@pytest.fixture
def shell(tmp_path):
    """A folder with a trace, rates and settings that somebody else wrote."""
    write_trace(trace_with(ATTACK, origin_gpu=None, backend="fake"), tmp_path / "t.json.gz")
    cluster = {"name": ATTACK, "gpu": "L4", "num_gpus": 8}
    rate = {
        "provider": f"lab {ATTACK}", "instance_type": ATTACK, "region": ATTACK, "zone": ATTACK, "gpu": "L4",
        "num_gpus": 8, "usd_per_h": 1.0, "as_of": "2026-11-01", "note": ATTACK,
    }  # fmt: skip
    shell = Shell(folder=tmp_path, regions=ALL_REGIONS)
    rates = shell.write("rates.yaml", yaml.safe_dump([rate]))
    settings = {"clusters": [cluster], "prices": {"options": {"custom": {"files": [str(rates)]}}}}
    shell.write(".config/advisor/config.yaml", yaml.safe_dump(settings))
    return shell


def assert_shown(answer: Answer, *, codes: tuple[int, ...] = (0,)) -> None:
    assert answer.code in codes, answer.err
    assert "Traceback" not in answer.err
    assert_is_text(answer.out)
    assert_is_text(answer.err)
    assert "\\x1b[2J" in answer.out + answer.err or "\\u001b[2J" in answer.out


@pytest.mark.parametrize("output", FORMATS)
def test_a_prediction_of_a_hostile_trace(shell, output):
    assert_shown(shell.run("predict", "t.json.gz", "--gpu", "L4", "--format", output))


@pytest.mark.parametrize(
    "options",
    [*(["--format", output] for output in FORMATS), ["--explain", "1"], ["--plot"]],
    ids=[*FORMATS, "explain", "plot"],
)
def test_a_recommendation_among_hostile_offers(shell, options):
    command = ("recommend", "t.json.gz", "--iterations", "20000", "--gpu", "L4", "--offline", "--all")
    assert_shown(shell.run(*command, *options))


@pytest.mark.parametrize("command", [("prices", "--gpu", "L4"), ("config", "show"), ("doctor",)])
def test_hostile_settings(shell, command):
    assert_shown(shell.run(*command), codes=(0, 1))


def test_a_hostile_policy(shell):
    rules = {"version": 1, "name": ATTACK, "layer": "team", "deny": {"regions": [ATTACK]}}
    shell.write("p.yaml", yaml.safe_dump(rules | {ATTACK: 1}))
    for command in ("check", "show"):
        assert_shown(shell.run("policy", command, "p.yaml"), codes=(0, 2))


@pytest.mark.parametrize("command", ["profile", "predict", "policy check", "queue fit", "gpus"])
def test_a_file_name_from_somebody_else(shell, command):
    answer = shell.run(*command.split(), f"{NAMED}.py")
    assert_plain_error(answer, 2)
    assert_is_text(answer.err)


@pytest.mark.parametrize("words", [["gpus", f"--{NAMED}"], [NAMED], ["gpus", "--format", NAMED]])
def test_a_wrong_word_on_the_command_line(shell, words):
    answer = shell.run(*words)
    assert_plain_error(answer, 2, "\\x1b[2J", "\\u202e")
    assert_is_text(answer.err)
