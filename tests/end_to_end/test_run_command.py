"""``advisor run -- COMMAND`` as a person types it: the command is itself, and a receipt is kept."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import Answer, Shell, assert_plain_error
from tests.programs import write_program
from tests.unit.payload.test_step_counting import TORCH

DATABASE = ".local/share/advisor/advisor.db"
RECEIPTS = ".local/share/advisor/receipts"
RUN = ("run", "--no-metadata")
COMMAND = ("--", sys.executable, "train.py")
TRAINING = """
import sys
import torch.optim.optimizer as optim
optimizer = optim.Optimizer()
for _ in range(50):
    optimizer.step()
print("trained with", *sys.argv[1:])
print("said on stderr", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""
NVIDIA_SMI = 'echo "NVIDIA L4, 23034, 0, 0, 72.00"'


@pytest.fixture
def shell(tmp_path):
    """A folder with a training script and a torch that has nothing but hooks."""
    shell = Shell(folder=tmp_path)
    shell.write("train.py", TRAINING)
    for package in ("torch", "torch/optim"):
        shell.write(f"{package}/__init__.py", "")
    shell.write("torch/optim/optimizer.py", TORCH)
    return shell


def listed(shell: Shell) -> list[dict[str, object]]:
    runs: list[dict[str, object]] = shell.run("run", "list", "--json").document["runs"]
    return runs


def trained(shell: Shell, *options: str, code: int = 0, **environ: str) -> Answer:
    return shell.run_process(*RUN, *options, *COMMAND, str(code), "--lr", "3", **environ)


def quickly_trained(shell: Shell, *options: str, **environ: str) -> Answer:
    """The same within this process, where nobody looks at what the command itself prints."""
    return shell.run(*RUN, *options, *COMMAND, "0", **environ)


def test_the_command_is_itself_and_its_receipt_is_kept(shell):
    answer = trained(shell, "--project", "vision", "--usd-per-hour", "3600", code=7)
    assert answer.code == 7
    assert answer.out == "trained with 7 --lr 3\n"
    assert answer.err.startswith("said on stderr\ntrain.py failed, exit code 7\n")
    (run,) = listed(shell)
    assert (run["script"], run["project"], run["status"], run["exit_code"]) == (
        "train.py",
        "vision",
        "failed",
        7,
    )
    assert (run["num_steps"], run["cost_kind"]) == (50, "estimated")
    assert run["cost_usd"] == pytest.approx(run["duration_s"])
    assert f"recorded   as {run['id']}" in answer.err


def test_what_is_unknown_is_told_as_unknown(shell):
    answer = shell.run(*RUN, "--", "true", PATH="/usr/bin:/bin")
    assert (answer.code, answer.out) == (0, "")
    for line in ("cost       unknown", "steps      none seen", "of an unknown provider"):
        assert line in answer.err
    (run,) = listed(shell)
    assert (run["cost_usd"], run["cost_kind"], run["num_steps"], run["provider"]) == (None, None, None, "")


def test_predicted_and_actual_stand_side_by_side(shell):
    write_trace(make_trace(), shell.folder / "t.json.gz")
    smi = write_program(shell.folder / "bin/nvidia-smi", NVIDIA_SMI)
    path = f"{smi.parent}:{os.environ['PATH']}"
    asked = ("recommend", "t.json.gz", "--epochs", "1", "--offline", "--record", "--project", "vision")
    assert shell.run(*asked, "--provider", "gcp", "--gpu", "L4:1", "--market", "spot").code == 0
    answer = quickly_trained(shell, "--recommendation", "last", PATH=path)
    assert answer.code == 0, answer.err
    (predicted,) = [line for line in answer.err.splitlines() if line.startswith("  predicted")]
    assert "a step: it did not hold" in predicted
    assert predicted.endswith("faster")
    (run,) = listed(shell)
    assert (run["project"], run["gpu"], run["num_gpus"], run["provider"]) == ("vision", "L4", 1, "gcp")
    assert run["cost_kind"] == "estimated"
    assert run["cost_usd"] == pytest.approx(run["usd_per_h"] * run["duration_s"] / 3600)  # type: ignore[operator]
    assert run["price_retrieved_at"] is not None


def test_on_another_gpu_nothing_was_predicted(shell):
    write_trace(make_trace(), shell.folder / "t.json.gz")
    assert (
        shell.run("recommend", "t.json.gz", "--epochs", "1", "--offline", "--record", "--gpu", "T4:1").code
        == 0
    )
    answer = shell.run(*RUN, "--recommendation", "last", "--", "true", PATH="/usr/bin:/bin")
    assert "predicted  for 1 x T4 a step, so nothing for this machine" in answer.err
    assert listed(shell)[0]["provider"] == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--"), ("nothing to run", "advisor run -- python train.py")),
        (("run", "--", "no-such-program"), ("cannot run 'no-such-program'",)),
        (("run", "python", "x.py"), ("'python' is none of command", "advisor run -- python x.py")),
        (("run", "--recommendation", "last", "--", "true"), ("no recommendation is recorded", "--record")),
        (("run", "--plan", "nonsense", "--", "true"), ("not the id of a plan",)),
        (("run", "--cost", "-1", "--", "true"), ("--cost must be between 0",)),
        (("run", "--usd-per-hour", "nan", "--", "true"), ("--usd-per-hour must be between 0",)),
        (("run", "record"), ("--start and --duration, or --receipt FILE",)),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_clear_line_and_nothing_runs(arguments, words, shell):
    assert_plain_error(shell.run(*arguments), 2, *words)
    assert not (shell.folder / DATABASE).exists()


def test_the_file_of_a_receipt_enters_another_database(shell):
    assert quickly_trained(shell, "--receipt", "r.json").code == 0
    here = {"ADVISOR_STORE__URL": f"sqlite:///{shell.folder}/other.db"}
    first, second = (shell.run("run", "record", "--receipt", "r.json", **here) for _ in range(2))
    assert first.out.startswith("Recorded as ")
    assert second.out.startswith("Nothing changed")
    assert shell.run("run", "list", "--json", **here).document["runs"] == listed(shell)


def test_a_database_that_is_down_costs_nothing_but_a_word(shell):
    shell.write("file", "")
    down = {"ADVISOR_STORE__URL": "postgresql://nobody@127.0.0.1:9/advisor?connect_timeout=2"}
    answer = trained(shell, code=3, **down)
    assert (answer.code, answer.out) == (3, "trained with 3 --lr 3\n")
    assert "cannot use the database" in answer.err
    (path,) = (shell.folder / RECEIPTS).iterdir()
    assert f"advisor run record --receipt {path}" in answer.err
    # Another day, with a database that is up.
    (run,) = listed(shell)
    assert (run["status"], run["num_steps"]) == ("failed", 50)
    assert list((shell.folder / RECEIPTS).iterdir()) == []


def test_a_run_within_a_run_counts_once(shell):
    inner = f"{sys.executable} -m advisor run --no-metadata -- true"
    answer = shell.run(*RUN, "--", "sh", "-c", inner)
    assert answer.code == 0, answer.err
    assert "is a part of another `advisor run`, whose receipt counts it" in answer.err
    assert "is no setting of ours" not in answer.err
    assert len(listed(shell)) == 1


def test_many_waiting_receipts_are_one_note(shell):
    assert shell.run(*RUN, "--receipt", "r.json", "--", "true").code == 0
    text = (shell.folder / "r.json").read_text()
    whole = json.loads(text)["run"]["id"]
    for number in range(320):
        shell.write(f"{RECEIPTS}/r{number}.json", text.replace(whole, f"r{number}"))
    answer = shell.run("run", "list", "--json")
    assert len(answer.document["runs"]) == 321
    (note,) = [line for line in answer.err.splitlines() if "entered" in line]
    assert "entered 320 runs that waited in" in note


def test_neither_database_nor_folder_is_the_last_resort(shell):
    """The home is a file, so that nothing can be made in it."""
    home = str(shell.write("file", ""))
    answer = trained(shell, HOME=home, XDG_DATA_HOME=home, XDG_CONFIG_HOME=home)
    assert (answer.code, answer.out) == (0, "trained with 0 --lr 3\n")
    begin = answer.err.index("holds this:") + len("holds this:")
    text = answer.err[begin : answer.err.index("\n  }", begin)] + "}"
    assert json.loads(text)["run"]["num_steps"] == 50


def test_a_server_takes_it_though_the_home_cannot_be_written(shell, postgres_url):
    home = str(shell.write("file", ""))
    elsewhere = {"XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home, "ADVISOR_STORE__URL": postgres_url}
    answer = quickly_trained(shell, **elsewhere)
    assert "recorded   as " in answer.err
    assert "leaves no trace if advisor is killed" in answer.err
    assert len(shell.run("run", "list", "--json", **elsewhere).document["runs"]) == 1


def test_a_damaged_database_keeps_the_receipt(shell):
    place = ("--provider", "aws", "--gpu", "L4", "--market", "spot")
    assert shell.run("run", "record", *place, "--start", "2026-11-01", "--duration", "1h").code == 0
    with sqlite3.connect(shell.folder / DATABASE) as connection:
        connection.execute("DROP TABLE runs")
    answer = quickly_trained(shell)
    assert answer.code == 0
    assert "the receipt waits in" in answer.err


def test_advisor_is_killed_and_the_run_is_not_forgotten(shell):
    """Its command goes on; what it said of its steps by then is read when somebody looks again."""
    waits = "import sys; print('begun', flush=True); sys.stdin.read()"
    command = (*RUN, "--", sys.executable, "-c", waits)
    with shell.start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        folder = shell.folder / RECEIPTS
        while not (folder.is_dir() and [*folder.glob("*.json")]):
            assert process.poll() is None
            time.sleep(0.02)
        assert listed(shell) == []
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        answer = shell.run("run", "list")
    assert "(1 lost)" in answer.err
    (run,) = listed(shell)
    assert (run["status"], run["duration_s"], run["cost_usd"], run["exit_code"]) == ("lost", None, None, None)


def test_a_signal_reaches_the_command_and_the_receipt_is_kept(shell):
    waits = "import signal; print('ready', flush=True); signal.pause()"
    command = (*RUN, "--", sys.executable, "-c", waits)
    with shell.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait() == 128 + signal.SIGTERM
        assert process.stderr is not None
        assert "was interrupted, exit code 143" in process.stderr.read()
    (run,) = listed(shell)
    assert (run["status"], run["exit_code"]) == ("interrupted", -signal.SIGTERM)


ANY_BYTES = os.fsdecode(b"caf\xe9")


def test_names_of_any_bytes_pass_through_and_are_kept_as_text(shell):
    """Before: a traceback after the command had run, exit code 1, and no receipt."""
    folder = shell.folder / ANY_BYTES
    folder.mkdir()
    script = "import os, sys; print(os.fsencode(sys.argv[1]), os.environb[b'X']); sys.exit(7)"
    answer = shell.run_process(
        *(*RUN, "--note", ANY_BYTES, "--project", ANY_BYTES, "--receipt", str(folder / f"{ANY_BYTES}.json")),
        *("--", sys.executable, "-c", script, f"{ANY_BYTES}.py"),
        X=ANY_BYTES,
        LOGNAME=ANY_BYTES,
        TMPDIR=str(folder),
    )
    assert answer.code == 7
    assert answer.out == "b'caf\\xe9.py' b'caf\\xe9'\n"
    assert "Traceback" not in answer.err
    (run,) = listed(shell)
    assert (run["script"], run["project"], run["note"], run["user"]) == ("caf\\xe9.py", *["caf\\xe9"] * 3)
    kept = json.loads((folder / f"{ANY_BYTES}.json").read_text(encoding="utf-8"))
    assert kept["run"]["script"] == "caf\\xe9.py"
    for form in ("table", "csv", "markdown", "html"):
        assert "xe9.py" in shell.run("run", "list", "--format", form).out


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_the_exit_code_stays_where_standard_error_is_gone(shell, redirection):
    line = f"{sys.executable} -m advisor run --no-metadata -- sh -c 'echo out; exit 7' {redirection}"
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=shell.folder,
        env=shell.environ(),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, "out\n")


def test_a_command_may_print_where_standard_output_is_closed(shell):
    """It got what stands for ours, which takes no word."""
    line = f"{sys.executable} -m advisor run --no-metadata -- {sys.executable} -c 'print(1, flush=True)' >&-"
    done = subprocess.run(["sh", "-c", line], cwd=shell.folder, env=shell.environ(), stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr


def test_the_exit_code_stays_where_our_own_work_fails(shell, monkeypatch):
    for name in ("begin", "keep"):
        with monkeypatch.context() as patch:
            patch.setattr(f"advisor.service.receipts.{name}", lambda *_, **__: 1 / 0)
            answer = shell.run(*RUN, "--", "sh", "-c", "exit 7")
            assert answer.code == 7
            assert "its receipt is lost" in answer.err
            assert "ZeroDivisionError" in answer.err


def test_receipts_that_cannot_be_true_stop_nothing_and_are_counted(shell):
    quickly_trained(shell, "--receipt", "good.json")
    folder = shell.folder / RECEIPTS
    good = (shell.folder / "good.json").read_text()
    bad = {"a": ('"num_gpus": 0', f'"num_gpus": {2**70}'), "b": ('"run": {', '"run": {"id": "x",')}
    for name, change in bad.items():
        (folder / f"{name}.json").write_text(good.replace(*change, 1))
    waiting = json.loads(good)
    waiting["run"]["id"] = "waiting"
    (folder / "c.json").write_text(json.dumps(waiting))
    answer = shell.run("run", "list")
    for name, field in (("a", "num_gpus"), ("b", "'id' stands twice")):
        (line,) = [line for line in answer.err.splitlines() if f"{name}.json" in line]
        assert field in line
    assert "2 runs" in answer.out
    assert "left out, as they cannot be true: 2" in answer.out
    assert shell.run("run", "list", "--json").document["num_left_out"] == 2
    with sqlite3.connect(shell.folder / DATABASE) as store:
        store.execute("UPDATE runs SET cost_usd = 1e308 WHERE id = 'waiting'")
    report = shell.run("report")
    assert report.code == 0
    # In the report itself: a mailed or scheduled one has no standard error that anybody reads.
    page = shell.run("report", "--format", "markdown")
    for answer in (report, page):
        assert "the run waiting: cost_usd is 1e+308" in " ".join(answer.out.split()), answer.err
    assert "e+308" not in json.dumps(shell.run("report", "--json").document["spending"])


def test_a_store_that_is_locked_keeps_no_command_waiting(shell):
    """Before: a minute for each look into it. Commands ask it for a second, and the receipt waits."""
    quickly_trained(shell)
    with sqlite3.connect(shell.folder / DATABASE, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        answer = shell.run(*RUN, "--", "sh", "-c", "exit 7", timeout_s=45)
        assert answer.code == 7
        assert "the receipt waits in" in answer.err
        other.execute("ROLLBACK")
    assert len(listed(shell)) == 2


def test_a_secret_in_a_note_is_kept_nowhere(shell):
    """Before: `--note` was stored and listed as it was typed."""
    token = "ghp_" + "a1B2" * 9
    quickly_trained(shell, "--receipt", "r.json", "--note", f"with {token} of mine")
    first = ("--start", "2026-11-01", "--duration", "1h", "--provider", "local", "--gpu", "L4")
    shell.run("run", "record", *first, "--note", f"password={token}")
    assert "with *** of mine" in (shell.folder / "r.json").read_text()
    for path in (path for path in shell.folder.rglob("*") if path.is_file()):
        assert token.encode() not in path.read_bytes(), path
