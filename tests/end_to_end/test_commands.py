"""The smaller commands as a person types them."""

import json
from dataclasses import replace

import pytest
import yaml

from advisor.formats.trace_files import read_trace, write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import ALL_REGIONS, assert_plain_error


def test_version_and_help(shell):
    from advisor import __version__

    assert shell.run("--version").out.strip() == __version__
    for command in ("recommend", "profile", "predict", "gpus", "prices", "doctor", "init", "config"):
        assert command in shell.run("--help").out


@pytest.mark.parametrize("words", ["-h", "help", "help prices", "prices -h", "recommend -h"])
def test_help_as_people_ask_for_it(shell, words):
    command = " ".join(word for word in words.split() if word not in ("-h", "help"))
    assert shell.run(*words.split()).out == shell.run(*command.split(), "--help").out


def test_no_command_prints_help(shell):
    answer = shell.run()
    assert "Usage:" in answer.out + answer.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train.py", "--lr", "0.1"), ("No such option: --lr", "train.py -- --lr")),
        (("train.py", "--fake-dat", "3"), ("--fake-data", "follow `--`")),
        (("-m", "pkg.train"), ("the whole command after --", "-- python -m pkg.train")),
    ],
)
@pytest.mark.parametrize("command", ["profile", "predict", "recommend"])
def test_options_of_the_script_have_a_place(shell, command, arguments, words):
    assert_plain_error(shell.run(command, *arguments), 2, *words)


@pytest.mark.parametrize("name", ["train.csv", "notes.TXT", "model.pt"])
def test_data_is_not_run_as_a_script(shell, name):
    shell.write(name, "1, 2\n")
    for command in ("profile", "predict"):
        assert_plain_error(shell.run(command, name), 2, name, "not a Python script", ".py file")


def test_completion_can_be_shown(shell):
    # A process of its own: inside this one typer's tree is made without the variable.
    answer = shell.run_process("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "complete" in answer.out


# --- gpus -------------------------------------------------------------------------------------------


def test_gpus_lists_the_catalog(shell):
    answer = shell.run("gpus", "--json")
    names = {gpu["name"] for gpu in answer.document["gpus"]}
    assert {"T4", "L4", "A10G", "V100-SXM-16GB", "A100-SXM-80GB", "H100-SXM-80GB", "RTX-4090"} <= names
    assert all(gpu["source_url"] and gpu["source_date"] for gpu in answer.document["gpus"])


# --- prices -----------------------------------------------------------------------------------------


def test_prices_cheapest_first_with_date_and_source(shell):
    answer = shell.run("prices", "--gpu", "A100-80GB:8", "--json")
    offers = answer.document["offers"]
    prices = [offer["usd_per_h"] for offer in offers]
    assert prices == sorted(prices)
    assert {(offer["gpu"], offer["num_gpus"]) for offer in offers} == {("A100-SXM-80GB", 8)}
    assert all(offer["retrieved_at"] and offer["source"] for offer in offers)
    assert "not live" in answer.err


def test_prices_filters(shell):
    answer = shell.run(
        "prices", "--provider", "gcp", "--region", "us-*", "--market", "spot", "--max-price", "1", "--all",
        "--json",
    )  # fmt: skip
    offers = answer.document["offers"]
    assert offers
    for offer in offers:
        assert offer["provider"] == "gcp"
        assert offer["region"].startswith("us-")
        assert offer["market"] == "spot"
        assert 0 < offer["usd_per_h"] <= 1


def test_prices_all_shows_more(shell):
    shell = replace(shell, regions=ALL_REGIONS)
    few = shell.run("prices", "--gpu", "L4", "--json").document["offers"]
    many = shell.run("prices", "--gpu", "L4", "--all", "--json").document["offers"]
    assert len(many) > len(few)


# --- predict ----------------------------------------------------------------------------------------


def test_predict_a_saved_trace(shell):
    write_trace(make_trace(), shell.folder / "t.json")
    answer = shell.run("predict", "t.json", "--gpu", "T4", "--gpu", "A100-SXM-80GB:1,8", "--json")
    estimates = answer.document["estimates"]
    assert [(e["gpu"], e["num_gpus"]) for e in estimates] == [
        ("A100-SXM-80GB", 1),
        ("A100-SXM-80GB", 8),
        ("T4", 1),
    ]
    for estimate in estimates:
        p10, p50, p90 = (estimate["iteration_s"][q] for q in ("p10", "p50", "p90"))
        assert 0 < p10 < p50 < p90
        assert sum(estimate["by_family"].values()) == pytest.approx(p50 - estimate["communication_s"])
        assert estimate["assumptions"]


# --- settings ---------------------------------------------------------------------------------------


def test_init_writes_once_and_show_tells_origins(shell):
    first = shell.run("init")
    assert first.code == 0
    path = shell.folder / ".config" / "advisor" / "config.yaml"
    assert yaml.safe_load(path.read_text()) is None
    assert_plain_error(shell.run("init"), 2, "already there", "--force")
    path.write_text("local: {gpu: T4}\n")
    settings = shell.run("config", "show", "--json", ADVISOR_CLOUD__MAX_GPUS="2").document["settings"]
    assert settings["local.gpu"] == {"value": "T4", "origin": str(path)}
    assert settings["cloud.max_gpus"] == {"value": 2, "origin": "ADVISOR_CLOUD__MAX_GPUS"}
    assert settings["cloud.startup"] == {"value": "5m", "origin": "default"}
    assert shell.run("init", "--force").code == 0


def test_init_for_a_project(shell):
    assert shell.run("init", "--project").code == 0
    assert (shell.folder / ".advisor.yaml").is_file()
    assert shell.run("config", "show").code == 0


def test_init_where_nothing_can_be_written(shell):
    shell.write(".config", "a file where a folder belongs")
    assert_plain_error(shell.run("init"), 2, "cannot write")


# --- doctor -----------------------------------------------------------------------------------------


def test_doctor(shell):
    answer = shell.run("doctor", "--json")
    checks = {check["name"]: check for check in answer.document["checks"]}
    assert answer.code == 0, answer
    names = (
        "python",
        "settings",
        "native",
        "catalog",
        "store",
        "rates",
        "prices",
        "rules",
        "clusters",
        "policies",
        "torch",
        "gpu",
        "calibration",
    )
    assert set(checks) == set(names)
    assert "GPUs" in checks["catalog"]["detail"]
    assert "offers" in checks["prices"]["detail"]


def test_doctor_with_broken_settings(shell):
    shell.write(".advisor.yaml", "cloud: {max_gps: 1}\n")
    answer = shell.run("doctor")
    assert answer.code == 1
    assert "broken" in answer.out
    assert "not in working order: settings" in answer.err


@pytest.mark.torch
@pytest.mark.usefixtures("warm_children")
def test_the_command_that_people_have(shell):
    """A module of a package without __init__.py, a shell script, a notebook beside its module."""
    shell.write("tools/model.py", "import torch\n\n\ndef net():\n    return torch.nn.Linear(8, 4).cuda()\n")
    source = (
        "import os, sys, torch\nfrom {}model import net\n"
        "model = net()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for _ in range(9):\n"
        "    model(torch.randn(16, 8, device='cuda')).sum().backward()\n    optimizer.step()\n"
    )
    shell.write("scripts/go.py", "import os\nassert os.environ['SEED'] == '3'\n" + source.format("tools."))
    shell.write("run.sh", 'N=2\nenv SEED=3 torchrun --nproc-per-node $N -m scripts.go --lr 1 "$@"\n')
    cells = [{"cell_type": "code", "source": ["%pip install torch\n", source.format("")]}]
    shell.write("tools/train.ipynb", json.dumps({"cells": cells}))
    for words, script, arguments in (
        (("--", "env", "SEED=3", "python", "-m", "scripts.go"), "scripts/go.py", []),
        (("run.sh", "--", "--more"), "scripts/go.py", ["--lr", "1", "--more"]),
        (("tools/train.ipynb",), "train.py", []),
    ):
        answer = shell.run("profile", "--json", "--out", "t.json.gz", *words)
        assert answer.code == 0, answer.err
        trace = read_trace(shell.folder / "t.json.gz")
        assert (trace.script.endswith(script), list(trace.arguments)) == (True, arguments)
        assert trace.ops
