"""Wrong uses of commands: exit code 2, and one line that says what is allowed."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from advisor.cli import app
from advisor.core.errors import AdvisorError, InputError
from advisor.formats.trace_files import write_trace
from advisor.report.words import error_text
from tests.builders import make_trace

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command in an empty home with a trace; answers exit code and message."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    write_trace(make_trace(), tmp_path / "t.json")

    def run(arguments: Sequence[str], **environ: str) -> tuple[int, str]:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        try:
            app(arguments, standalone_mode=False)
        except AdvisorError as error:
            return error.exit_code, error_text(error)
        except Exception as raised:  # noqa: BLE001
            # Which package typer's own errors come from depends on its version.
            error_of_typer: Any = raised
            return error_of_typer.exit_code, error_of_typer.format_message()
        return 0, ""

    return run


JOB = ("recommend", "t.json", "--epochs", "1", "--offline")
NAMES = [
    (("recommend", ".", "--epochs", "1"), "'.' is a folder: give the .py file"),
    (("prices", "--provider", "amazon"), "Did you mean 'aws'? Known are aws, gcp"),
    (("prices", "--provider", "asw"), "Did you mean 'aws'"),
    (
        (*JOB, "--provider", "azure"),
        "no prices of provider 'azure' yet: name it in the setting cloud.providers",
    ),
    (("prices", "history", "--provider", "awss"), "Did you mean 'aws'"),
    (("prices", "check", "--provider", "awss"), "Did you mean 'aws'"),
    (("prices", "--region", "us-esat-1"), "'us-east-1'"),
    (("prices", "--region", "zz-*"), "matches 'zz-*'. Regions begin with af, ap"),
    (("prices", "--region", "us-*", "--region", "moon"), "is called 'moon'. Regions begin with af, ap"),
    ((*JOB, "--region", "us-esat-1"), "'us-east-1'"),
    (("prices", "history", "--region", "us-esat-1"), "'us-east-1'"),
    (("prices", "check", "--region", "us-esat-1"), "'us-east-1'"),
    (("prices", "--gpu", "L4:3"), "'L4:3' asks for: there are machines with 1, 2, 4 or 8 of them"),
    (("prices", "--gpu", "l4:5..7"), "1, 2, 4 or 8"),
    (("prices", "--gpu", "L4:3", "--region", "us-esat-1"), "'us-east-1'"),
    (("prices", "--gpu", "T4:8", "--gpu", "L4:3"), "'L4:3'"),
    ((*JOB, "--gpu", "L4:0"), "L4:0"),
    ((*JOB, "--gpu", "L4:3"), "nor do whole ones together: there are machines with 1, 2, 4 or 8 of them"),
    ((*JOB, "--gpu", "L4:24", "--max-nodes", "2"), "nor do up to 2 whole ones together"),
    ((*JOB, "--gpu", "L4:8", "--nodes", "2"), "'L4:8' counts the GPUs of all nodes, and 2 nodes have 16"),
    ((*JOB, "--gpu", "L4:8x2", "--nodes", "4"), "2 and 4 nodes are asked for"),
    ((*JOB, "--nodes", "0"), "'--nodes'"),
    ((*JOB, "--max-nodes", "x"), "Invalid value for '--max-nodes': it must be a valid integer"),
    ((*JOB, "--nodes", "4", "--max-nodes", "2"), "--nodes is 4, and --max-nodes allows 2 at most"),
    (("prices", "history", "--gpu", "L4:3"), "1, 2, 4 or 8"),
    (("prices", "--gpu", "H100:1.."), "NAME:8, NAME:1,2,4, NAME:1..8 or NAME:8x4"),
    (("prices", "--gpu", "H10"), "Did you mean 'H100"),
    (("prices", "--market", "sport"), "spot"),
    (("predict", "t.json", "--gpu", "H100:0"), "numbers from 1 to 4096"),
    (("predict", "t.json", "--gpu", "H100:17"), "write numbers from 1 to 16"),
    (("predict", "t.json", "--gpu", "H100:1,4001"), "write numbers from 1 to 16"),
    (("gpus", "H100:8"), "leave it out"),
    (("prices", "--gpu", "Z9"), "Z9"),
    (("gpus", "A1000"), "A1000"),
    (("gpus", "--relative-to", "A100"), "several GPUs"),
    (("gpus", "--vendor", "intel"), "Choose of amd, nvidia"),
    ((*JOB, "--allow-vendor", "amdd"), "Did you mean 'amd'"),
    (("policy", "explain", "p.yaml", "--plan", "aws/p5.48xlarge/us-east-1/sopt"), "Did you mean 'spot'"),
]
NUMBERS = [
    (("recommend", "t.json", "--epochs", "1e20"), "above 0 and at most 1,000,000, got 1e+20"),
    (("recommend", "t.json", "--epochs", "nan"), "--epochs must be a finite number above 0"),
    (("recommend", "t.json", "--epochs", "-inf"), "--epochs must be a finite number above 0"),
    (("recommend", "t.json", "--iterations", "1000000000000"), "at most 10,000,000,000"),
    (("recommend", "t.json", "--iterations", "-5"), "of at least 1"),
    ((*JOB, "--iterations-per-epoch", "9" * 40), "at most 10,000,000,000"),
    (("recommend", "t.json", "--epochs", "1e6", "--iterations-per-epoch", "100000000"), "fewer --epochs"),
    ((*JOB, "--budget", "1e308"), "--budget must be a finite number above 0 and at most 1,000,000,000,000"),
    ((*JOB, "--value-of-time", "1e300"), "at most 1,000,000,000"),
    ((*JOB, "--budget", "0"), "--budget must be a finite number above 0"),
    ((*JOB, "--value-of-time", "-1"), "--value-of-time must be a finite number of at least 0"),
    ((*JOB, "--deadline", "0h"), "--deadline must be"),
    ((*JOB, "--deadline", "1000000000d"), "--deadline must be at most 36525d"),
    ((*JOB, "--deadline", "9" * 400 + "d"), "more than 300 digits"),
    ((*JOB, "--confidence", "nan"), "--confidence must be a finite number"),
    ((*JOB, "--top", "1" + "0" * 30), "100000"),
    ((*JOB, "--world", "1000000000"), "65536"),
    ((*JOB, "--samples", "1" + "0" * 30), "1000000000"),
    ((*JOB, "--dataset-gb", "1e300"), "less than or equal to 100000000; got 1e+300"),
    ((*JOB, "--result-gb", "inf"), "finite number"),
    ((*JOB, "--timeout", "9999d"), "at most 7d; got '9999d'"),
    (("prices", "--max-price", "nan"), "--max-price must be a finite number above 0"),
    (("prices", "--max-price", "0"), "--max-price must be a finite number above 0"),
    (("prices", "--max-price", "1e308"), "at most 1,000,000,000, got 1e+308"),
    (("gpus", "--min-memory-gib", "nan"), "of at least 0 and at most 1,000,000"),
    (("gpus", "--min-memory-gib", "-5"), "of at least 0"),
    (("prices", "history", "--since", "9" * 400 + "d"), "more than 300 digits"),
    (("prices", "capacity", "p5.48xlarge", "--region", "us-east-1", "--nodes", "9" * 20), "100000"),
    (("queue", "show", "log.csv", "--gpus", "nan"), "'--gpus': it must be a valid integer"),
    (("queue", "show", "log.csv", "--gpus", "9" * 20), "100000"),
    (
        ("queue", "simulate", "log.csv", "--capacity", "0"),
        "'--capacity': it must be greater than or equal to 1",
    ),
    (("queue", "show", "log.csv", "--gpus", "0"), "'--gpus': it must be greater than or equal to 1"),
    ((*JOB, "--dataset-gb", "-1"), "--dataset-gb: it must be greater than or equal to 0; got -1.0."),
    ((*JOB, "--timeout", "5"), "--timeout: '5' is not a duration"),
]
SETTINGS = [
    ("ADVISOR_CLOUD__REGIONS", "[us-*, mars]", "'mars' in cloud.regions (set by ADVISOR_CLOUD__REGIONS)"),
    ("ADVISOR_CLOUD__PROVIDERS", "[awss]", "'awss' in cloud.providers (set by ADVISOR_CLOUD__PROVIDERS)"),
    ("ADVISOR_CLOUD__MARKETS", "[sport]", "'on-demand', 'spot'"),
    ("ADVISOR_CLOUD__STARTUP", "9999999d", "at most 36525d; got '9999999d'"),
    ("ADVISOR_CLOUD__DATASET_GB", "1e300", "less than or equal to 100000000"),
    ("ADVISOR_CLOUD__DOWNLOAD_GBIT_PER_S", "1.0e-300", "greater than or equal to 0.000001"),
    ("ADVISOR_LOCAL__USD_PER_GPU_H", "1.0e+300", "less than or equal to 1000000000"),
    ("ADVISOR_LOCAL__USD_PER_KWH", ".nan", "finite number"),
    ("ADVISOR_PROFILE__SAMPLES", "1" + "0" * 30, "less than or equal to 1000000000"),
    ("ADVISOR_PROFILE__TIMEOUT", "8d", "at most 7d"),
    ("ADVISOR_SPOT__RESTART", "40000d", "at most 36525d"),
    ("ADVISOR_SPOT__CHECKPOINT_INTERVAL", "40000d", "at most 36525d"),
]


@pytest.mark.parametrize(("arguments", "words"), [*NAMES, *NUMBERS])
def test_a_wrong_use_is_one_line_that_says_what_is_allowed(run, arguments, words):
    Path("p.yaml").write_text("version: 1\nname: us\nlayer: organisation\n")
    code, message = run(arguments)
    assert code == 2, message
    assert words in message
    assert "\n" not in message


USAGE = [
    (("recommend",), "Give a training script, a saved trace, or --recipe NAME."),
    (("predict",), "Missing argument 'SCRIPT_OR_TRACE'. See "),
    (("recommend", "t.json", "--epochs"), "Option '--epochs' requires an argument. See advisor --help."),
    (("recommend", "t.json", "--epochs", "many"), "'--epochs': it must be a valid number, without a unit"),
    ((*JOB, "--budget", "$200"), "'--budget': it must be a valid number, without a unit or a sign of a cur"),
    (("recommend", "t.json", "--format", "xml"), "'--format' / '-f': 'xml' is not one of 'table',"),
    (("recommend", "t.json", "--lr", "1"), "follow `--`, such as: train.py -- --lr ... See "),
    (("recomend",), "No such command 'recomend'"),
    (("--nonsense",), "No such option: --nonsense. See "),
    (("queue", "show"), "queue show --help."),
    (("queue", "simulate"), "queue simulate --help."),
]


@pytest.mark.parametrize(("arguments", "words"), USAGE)
def test_what_cannot_be_parsed_is_told_in_one_line_of_our_own(arguments, words):
    with pytest.raises(InputError) as error:
        app(arguments, standalone_mode=False)
    message = error_text(error.value)
    assert words in message
    assert message.endswith("--help.")
    assert not [part for part in ("\n", "Value error", "Input should") if part in message]


def test_a_setting_that_a_flag_hides_keeps_its_own_name(run):
    """The flag has the word: what the variable says is never looked at."""
    code, message = run((*JOB, "--dataset-gb", "-2"), ADVISOR_CLOUD__DATASET_GB="-1")
    assert (code, message) == (2, "--dataset-gb: it must be greater than or equal to 0; got -2.0.")
    code, message = run(JOB, ADVISOR_CLOUD__DATASET_GB="-1")
    assert message.startswith("setting 'cloud.dataset_gb' (set by ADVISOR_CLOUD__DATASET_GB): it must")


def test_a_cluster_of_an_unknown_gpu_is_told_with_its_file(run):
    file = Path(".advisor.yaml").resolve()
    file.write_text("clusters: [{name: lab, gpu: A1000, num_gpus: 4}]\n")
    code, message = run(JOB)
    assert code == 2
    assert message.startswith(f"{file}: cluster 'lab': no GPU is called 'A1000'. Did you mean 'A100'")


@pytest.mark.parametrize(("variable", "value", "words"), SETTINGS)
def test_a_setting_obeys_the_limits_of_its_flag(run, variable, value, words):
    code, message = run(JOB, **{variable: value})
    assert code == 2, message
    assert words in message
    assert variable in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "arguments",
    [
        ("prices", "--gpu", "h100:8", "--provider", "AWS", "--region", "US-EAST-1", "--market", "SPOT"),
        ("prices", "--gpu", "l4:1..8", "--region", "US-*", "--format", "CSV", "--sort", "PLACE"),
        ("gpus", "h100", "--vendor", "NVIDIA", "--relative-to", "l4"),
        ("predict", "t.json", "--gpu", "rtx-4090:3"),
        (*JOB, "--gpu", "l4:1,3,8", "--provider", "Gcp", "--market", "On-Demand", "--local-gpu", "t4"),
        (*JOB, "--allow-vendor", "AMD", "--region", "Us-East-*"),
        (
            *JOB[:2],
            "--epochs",
            "1e6",
            "--iterations-per-epoch",
            "10000",
            "--deadline",
            "36525d",
            "--top",
            "9",
        ),
    ],
)
def test_letter_case_never_counts_and_generous_numbers_pass(run, arguments):
    assert run(arguments) == (0, "")


def test_settings_may_be_written_in_any_case(run, capsys):
    flags = ("--provider", "aws", "--region", "us-east-1", "--market", "spot")
    assert run(("prices", *flags, "--format", "csv")) == (0, "")
    by_flags = capsys.readouterr().out
    environ = {"PROVIDERS": "[AWS]", "REGIONS": "[US-EAST-1]", "MARKETS": "[Spot]"}
    settings = {f"ADVISOR_CLOUD__{name}": value for name, value in environ.items()}
    assert run(("prices", "--format", "csv"), **settings) == (0, "")
    assert capsys.readouterr().out == by_flags
    assert by_flags.count("\n") > 10


# --- Limits that leave nothing ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("prices", "--gpu", "B300", "--region", "eu-*"), "--gpu B300. Without --region there are 2"),
        (("prices", "--gpu", "L4:8", "--max-price", "0.5"), "Without --max-price there are"),
        (("prices", "--gpu", "RTX-4090"), "no known price is of RTX-4090"),
        ((*JOB, "--gpu", "B300", "--region", "eu-*"), "nothing to choose from: no GPU of your own"),
        (
            (*JOB, "--gpu", "A100:16", "--max-nodes", "1"),
            "cloud.max_gpus: 8 (the default). Without cloud.max_gpus there are",
        ),
        (("gpus", "H100", "--vendor", "amd"), "without it there are 3 (H100-PCIE-80GB"),
        (("gpus", "--min-memory-gib", "500"), "the largest with 288.0 GiB"),
    ],
)
def test_the_limit_that_has_to_give_way_is_named(run, arguments, words):
    code, message = run(arguments)
    assert code == 1, message
    assert words in message
    assert "\n" not in message


def test_the_number_that_is_told_is_what_comes_without_the_limit(run, capsys):
    _, message = run(("prices", "--gpu", "L4", "--market", "spot", "--max-price", "0.01"))
    (number,) = re.findall(r"Without --max-price there are ([\d,]+)", message)
    capsys.readouterr()
    assert run(("prices", "--gpu", "L4", "--market", "spot", "--all", "--json")) == (0, "")
    offers = json.loads(capsys.readouterr().out)["offers"]
    assert len(offers) == int(number.replace(",", ""))
    # A limit is one of quotes, and so is what comes nearest to it.
    cheapest = min(offers, key=lambda offer: offer["usd_per_h"])
    assert f"{cheapest['instance_type']} in {cheapest['region']}" in message


def test_the_file_that_set_the_limit_is_named(run):
    path = Path(".advisor.yaml").absolute()
    path.write_text("cloud: {regions: [eu-*], providers: [GCP]}\n")
    code, message = run((*JOB, "--gpu", "L4"))
    assert code == 1
    assert f"cloud.providers: GCP (set by {path})" in message
    assert "Without cloud.providers there are" in message


def test_a_program_gets_an_empty_answer(run, capsys):
    code, message = run(("prices", "--gpu", "B300", "--region", "eu-*", "--json"))
    assert code == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["offers"], document["warnings"]) == ([], [message])


def test_own_machines_are_ranked_though_clouds_have_nothing(run, capsys):
    command = (*JOB, "--gpu", "L4:1", "--region", "af-*", "--local-gpu", "L4", "--json")
    assert run(command) == (0, "")
    document = json.loads(capsys.readouterr().out)
    assert [option["id"] for option in document["options"]] == ["local/1xL4"]
    assert any("Without --region there are" in warning for warning in document["warnings"])
    # Nothing is copied to them.
    assert not any("how large the data set is" in warning for warning in document["warnings"])
