"""``advisor spot fit`` as a person types it, and what its file does to the answer of ``recommend``."""

import json
from typing import Any

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import Shell, assert_plain_error

# Half an hour there, half an hour away, for ten days.
BAD = "time,event,machine\n" + "".join(
    f"{1800 * i},{'down' if i % 2 else 'up'},g4dn.xlarge\n" for i in range(480)
)
CALM = "time,event,machine\n0,up,g4dn.xlarge\n8640000,ended,g4dn.xlarge\n"
JOB = ("recommend", "trace.json", "--epochs", "1", "--offline", "--gpu", "T4:1", "--market", "spot", "--json")


@pytest.fixture
def shell(tmp_path):
    shell = Shell(folder=tmp_path)
    shell.write("bad.csv", BAD)
    shell.write("calm.csv", CALM)
    write_trace(make_trace(), tmp_path / "trace.json")
    return shell


def option(shell: Shell, **env: str) -> dict[str, Any]:
    answer = shell.run(*JOB, **env).document
    return next(o for o in answer["options"] if o["instance_type"] == "g4dn.xlarge")


def test_fit_shows_each_machine_and_how_sure_it_is(shell):
    (machine,) = shell.run("spot", "fit", "bad.csv", "--json").document["machines"]
    assert (machine["machine"], machine["gpu"], machine["num_gpus"]) == ("g4dn.xlarge", "T4", 1)
    assert (machine["up_h"], machine["num_losses"]) == (120.0, 240)
    rate = machine["preemptions_per_h"]
    assert rate["p10"] < rate["p50"] < rate["p90"]
    assert rate["p50"] == pytest.approx(2.0, rel=0.1)
    assert machine["wait_s"]["p_at_once"] == pytest.approx(0.5, abs=0.02)
    out = shell.run("spot", "fit", "bad.csv").out
    assert "g4dn.xlarge" in out
    assert "spot.history takes the log" in out


def test_the_file_holds_no_rows_and_says_as_much_as_the_log(shell):
    answer = shell.run("spot", "fit", "bad.csv", "--out", "fit.json")
    assert "wrote 'fit.json'" in answer.err
    assert set(json.loads((shell.folder / "fit.json").read_text())) == {"format", "version", "machines"}
    by_log, by_file = (option(shell, ADVISOR_SPOT__HISTORY=name) for name in ("bad.csv", "fit.json"))
    assert by_log == by_file


def test_a_log_replaces_what_is_assumed(shell):
    assumed, bad, calm = (
        option(shell, **({"ADVISOR_SPOT__HISTORY": name} if name else {}))
        for name in ("", "bad.csv", "calm.csv")
    )
    assert "assumed" in assumed["risk"]
    assert "by your log (240 in 120 h)" in bad["risk"]
    assert calm["time_s"]["p90"] < assumed["time_s"]["p90"] < bad["time_s"]["p90"]
    assert calm["cost_usd"]["p50"] < bad["cost_usd"]["p50"]
    assert any(text.startswith("wait from your log of 2,400 h") for text in calm["reasons"])


def test_a_setting_goes_before_the_log(shell):
    row = option(shell, ADVISOR_SPOT__HISTORY="bad.csv", ADVISOR_SPOT__PREEMPTIONS_PER_H="0")
    assert "0 per hour configured" in row["risk"]


def test_a_log_with_a_fault_is_refused_with_its_line(shell):
    shell.write("broken.csv", "time,event\n0,up\n1,gone\n")
    fault = "line 3: event 'gone' is none of"
    assert_plain_error(shell.run("spot", "fit", "broken.csv"), 2, fault)
    assert_plain_error(shell.run(*JOB, ADVISOR_SPOT__HISTORY="broken.csv"), 2, "spot.history", fault)
