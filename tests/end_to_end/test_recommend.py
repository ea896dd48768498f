"""The main job from a saved trace, once right and many times wrong."""

import csv
import io
import json
import os
import re
import subprocess
import sys

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_op, make_trace
from tests.end_to_end.cli import Shell, assert_plain_error


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A folder with a saved trace, t.json.gz."""
    folder = tmp_path_factory.mktemp("recommend")
    write_trace(make_trace(), folder / "t.json.gz")
    return Shell(folder=folder)


# Where the number of options tells nothing: an answer on one GPU takes a quarter of the time.
FEW = ("--gpu", "L4")

# --- Right ------------------------------------------------------------------------------------------


def test_a_ranked_table(shell):
    answer = shell.run("recommend", "t.json.gz", "--epochs", "1", "--budget", "5", "--top", "15")
    assert answer.code == 0, answer
    states = {line.split("  ")[0].strip() for line in answer.out.splitlines()}
    assert {"recommended", "frontier", "over budget"} <= states
    assert "Assumed: " in answer.out


@pytest.mark.parametrize(
    "asked",
    [
        (),
        ("--budget", "5"),
        ("--budget", "5", "--deadline", "2h", "--local-gpu", "T4"),
        ("--gpu", "H100"),
        ("--market", "spot", "--dataset-gb", "100"),
        ("--budget", "0.01"),
    ],
)
def test_an_answer_is_one_screen(shell, asked):
    answer = shell.run("recommend", "t.json.gz", "--epochs", "1", *asked, COLUMNS="100")
    assert answer.code in (0, 4)
    assert len(answer.out.splitlines()) <= 24, answer.out
    warnings = [line for line in answer.err.splitlines() if not line.startswith(("note:", "error:"))]
    assert len(warnings) <= 3


def test_the_first_sentences_are_true_of_the_document(shell):
    """Recomputed by nothing of ours but the figures in JSON."""
    command = ("recommend", "t.json.gz", "--epochs", "1", "--budget", "5")
    text = shell.run(*command, COLUMNS="200").out.splitlines()
    document = shell.run(*command, "--json").document
    chosen = next(option for option in document["options"] if option["recommended"])
    assert chosen["price_retrieved_at"][:10] in text[0]
    usd, usd_p90 = re.match(r"Median \$([\d.]+) \(90 %: under \$([\d.]+)\)", text[1]).groups()
    assert float(usd) == pytest.approx(chosen["cost_usd"]["p50"], abs=0.005)
    assert float(usd_p90) == pytest.approx(chosen["cost_usd"]["p90"], abs=0.005)
    assert f": {chosen['iterations']:,} steps in" in text[1]
    by_id = {option["id"]: option for option in document["options"]}
    (best, *others) = document["shortlist"]
    assert best["id"] == chosen["id"]
    for row in others:
        means, chosen_means = by_id[row["id"]]["expected"], chosen["expected"]
        is_better = all(means[name] < chosen_means[name] for name in ("counted_usd", "time_s"))
        assert not (is_better and len(row["work"]) <= len(best["work"])), row


def test_json_by_contract(shell):
    answer = shell.run("recommend", "t.json.gz", "--epochs", "1", "--budget", "200", "--json")
    document = answer.document
    by_id = {option["id"]: option for option in document["options"]}
    assert len(by_id) == len(document["options"]) > 100
    chosen = by_id[document["recommended"]]
    # By what is expected; the frontier is of medians, which say nothing of a long wait.
    assert chosen["recommended"]
    assert chosen["feasible"]
    assert [o["id"] for o in document["options"] if o["recommended"]] == [chosen["id"]]
    assert chosen["p_within_budget"] >= 0.9
    assert {o["id"] for o in document["options"] if o["on_frontier"]} == set(document["frontier"])
    providers = {option["provider"] for option in document["options"]}
    assert providers == {"aws", "gcp"}
    assert {option["market"] for option in document["options"]} == {"on-demand", "spot"}
    for option in document["options"]:
        assert option["cost_usd"]["p50"] == pytest.approx(sum(option["cost_breakdown"].values()), rel=1e-6)


def test_a_page_is_written_beside_the_answer(shell):
    command = ("recommend", "t.json.gz", "--epochs", "1", *FEW, "--budget", "200")
    answer = shell.run(*command, "--html", "answer.html")
    page = (shell.folder / "answer.html").read_text("utf-8")
    assert answer.out == shell.run(*command).out
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert len(page) < 1_500_000
    printed = shell.run(*command, "--format", "html").out
    assert printed.rstrip("\n") == page.rstrip("\n")


def test_a_page_has_a_place_before_the_answer_is_sought(shell):
    answer = shell.run("recommend", "t.json.gz", "--epochs", "1", *FEW, "--html", "missing/answer.html")
    assert_plain_error(answer, 2, "Make it first")


def test_two_runs_agree(shell):
    command = ("recommend", "t.json.gz", "--iterations", "1000", *FEW, "--json")
    assert shell.run(*command).out == shell.run(*command).out


def test_local_and_cluster_tiers(shell):
    shell.write(
        "site/.advisor.yaml",
        "clusters:\n- {name: lab, gpu: V100-PCIE-32GB, num_gpus: 4, usd_per_gpu_h: 0.5,"
        " wait_p50: 3h, wait_p90: 8h}\n",
    )
    site = Shell(folder=shell.folder / "site")
    answer = site.run(
        "recommend", "../t.json.gz", "--iterations", "5000", "--local-gpu", "RTX 3090", "--json"
    )
    by_id = {option["id"]: option for option in answer.document["options"]}
    local, four = by_id["local/1xRTX-3090"], by_id["cluster/lab/4xV100-PCIE-32GB"]
    assert local["tier"] == "local"
    assert local["usd_per_h"] is None
    assert local["wait_s"] == {"p50": 0, "p90": 0}
    assert "cost unknown" in " ".join(local["reasons"])
    assert four["tier"] == "cluster"
    assert four["usd_per_h"] == 2.0
    assert four["wait_s"] == {"p50": 10800, "p90": 28800}
    assert four["iterations"] == 1250
    assert any("DistributedDataParallel" in change for change in four["script_changes"])
    assert "no hourly cost" in answer.err


def test_csv_and_markdown(shell):
    command = ("recommend", "t.json.gz", "--epochs", "1", "--top", "5", "--format")
    rows = list(csv.DictReader(io.StringIO(shell.run(*command, "csv").out)))
    assert rows[0]["status"] in ("recommended", "frontier")
    assert len(rows) > 100
    assert float(rows[0]["cost_usd_p50"]) <= float(rows[0]["cost_usd_p90"])
    markdown = shell.run(*command, "markdown").out
    assert markdown.startswith("### Where to run")
    assert "| Status |" in markdown
    # In a comment nobody sees standard error.
    assert "**Warnings**\n\n- " in markdown
    assert "\n- prices are not live" in markdown


def test_a_number_means_the_row_that_was_shown_whatever_is_asked_beside_it(shell):
    command = ("recommend", "t.json.gz", "--epochs", "1", "--offline", "--provider", "aws")
    answer = shell.run(*command)
    (number,) = re.findall(r"(?m)^ cheapest +(\d+) ", answer.out)
    in_its_row = shell.run(*command, "--explain", number).out.splitlines()[0]
    changed = (*command, "--deadline", "10m", "--explain", number)
    answer = shell.run(*changed)
    assert answer.out.splitlines()[0] == in_its_row
    assert f"note: row {number} of the answer shown last is {in_its_row}" in answer.err
    answer = shell.run(*command, "--gpu", "T4", "--explain", "1")
    assert answer.code == 0
    assert "note: row 1 of the answer shown last is no option of this question" in answer.err
    (memory,) = (shell.folder / ".cache").rglob("rows.json")
    for damaged in ("", "[]", '{"a": 1}'):
        memory.write_text(damaged)
        of_this_question = shell.run(*changed).out.splitlines()[0]
        assert of_this_question != in_its_row


def test_no_cloud_credentials_reach_the_output(shell):
    answer = shell.run(
        "recommend", "t.json.gz", "--epochs", "1", *FEW, "--json", AWS_SECRET_ACCESS_KEY="hunter2-secret"
    )
    assert "hunter2-secret" not in answer.out + answer.err


# --- Wrong ------------------------------------------------------------------------------------------


def test_a_strange_variable_warns_and_changes_nothing(shell):
    answer = shell.run("config", "show", ADVISOR_LICENSE_KEY="x")
    assert answer.code == 0
    assert "ADVISOR_LICENSE_KEY is no setting of ours" in answer.err


def test_nothing_feasible_names_the_nearest(shell):
    answer = shell.run("recommend", "t.json.gz", "--epochs", "1000", *FEW, "--budget", "1")
    assert_plain_error(answer, 4, "nothing is feasible", "Nearest:", "over the budget")
    assert "over budget" in answer.out


def test_nothing_feasible_in_json(shell):
    answer = shell.run("recommend", "t.json.gz", "--epochs", "1000", *FEW, "--budget", "1", "--json")
    assert answer.code == 4
    assert answer.document["recommended"] is None
    assert answer.document["frontier"] == []


def test_nothing_fits_in_memory(shell):
    from dataclasses import replace

    huge = replace(make_trace().memory, peak_bytes=10**13, activation_bytes=10**12)
    write_trace(make_trace(memory=huge), shell.folder / "huge.json")
    answer = shell.run("recommend", "huge.json", "--epochs", "1")
    assert_plain_error(answer, 4, "nothing fits in memory", "weights, gradients and optimizer state alone")


def test_only_gpus_that_pytorch_left_behind(shell):
    answer = shell.run("recommend", "t.json.gz", "--epochs", "1", "--gpu", "K80")
    assert_plain_error(answer, 4, "PyTorch no longer runs")
    assert "memory" not in answer.err


def test_the_confidence_it_suggests_is_enough(shell):
    command = ("recommend", "t.json.gz", "--epochs", "1", "--gpu", "L4:1", "--market", "on-demand")
    options = shell.run(*command, "--json").document["options"]
    budget = str(min(option["cost_usd"]["p50"] for option in options) * 1.1)
    refused = shell.run(*command, "--budget", budget)
    assert_plain_error(refused, 4, "--confidence")
    suggested = refused.err.split("--confidence ")[1].split()[0]
    assert shell.run(*command, "--budget", budget, "--confidence", suggested).code == 0


def test_amd_needs_to_be_allowed(shell):
    write_trace(make_trace(ops=(make_op(flops=10**12),)), shell.folder / "a.json")

    def gpus(*more: str) -> set[str]:
        answer = shell.run("recommend", "a.json", "--epochs", "1", "--json", *more)
        return {option["gpu"] for option in answer.document["options"]}

    answer = shell.run("recommend", "a.json", "--epochs", "1", "--gpu", "MI300X")
    assert_plain_error(answer, 2, "MI300X", "--allow-vendor amd")
    answer = shell.run("recommend", "a.json", "--epochs", "1", "--local-gpu", "MI210")
    assert_plain_error(answer, 2, "MI210", "--allow-vendor amd")
    added = gpus("--allow-vendor", "amd") - gpus()
    assert added
    assert all("MI" in name or "V520" in name for name in added)


@pytest.mark.parametrize(("limits", "code"), [((), 0), (("--budget", "0.0001"), 4)])
def test_a_reader_who_left_changes_neither_the_page_nor_the_exit_code(shell, limits, code):
    reader, writer = os.pipe()
    os.close(reader)
    asked = ("recommend", "t.json.gz", "--epochs", "1", *FEW, *limits, "--html", "unread.html")
    # A process of its own: how it ends is the point.
    with os.fdopen(writer, "wb") as unread:
        done = subprocess.run(
            [sys.executable, "-m", "advisor", *asked],
            cwd=shell.folder,
            env=shell.environ(),
            stdout=unread,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    page = shell.folder / "unread.html"
    assert page.read_text(encoding="utf-8").endswith("</html>")
    page.unlink()


def test_documents_are_valid_json_without_infinities(shell):
    answer = shell.run(
        "recommend", "t.json.gz", "--epochs", "100", *FEW, "--json", ADVISOR_SPOT__CHECKPOINT_INTERVAL="null"
    )

    def refuse(name: str) -> None:
        raise ValueError(name)

    json.loads(answer.out, parse_constant=refuse)
    spot = [o for o in json.loads(answer.out)["options"] if o["market"] == "spot"]
    assert any(option["time_s"]["p50"] is None for option in spot)
    assert not any(option["on_frontier"] for option in spot if option["time_s"]["p50"] is None)
