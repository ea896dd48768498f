"""Ctrl-C at sixty moments of commands: one word, exit code 130, and every file as it was.

The signal is a real one, which arrives in the call that is named: no test waits for a moment to come. What a
script or a command that we started does with it is told in `tests/end_to_end/test_no_trace.py`,
`test_run_command.py` and `test_measure.py`.
"""

import shlex
import signal
import tempfile
import threading
from typing import Any

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import Shell
from tests.end_to_end.test_misuse import FILES, files_of
from tests.waiting import wait_for

JOB = "t.json --epochs 1 --gpu L4 --offline"
CONFIG = """
delivery: {channels: {box: {kind: file, path: box.txt}}}
"""
TRAIN = """
import torch
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(100):
    model(torch.randn(4, 8).cuda()).sum().backward()
    optimizer.step()
"""
REPLACING = "pathlib.Path.replace"
LOG = "submit,start,gpus,walltime,queue,user\n" + "".join(
    f"2026-01-{1 + n // 24:02}T{n % 24:02}:00:00,2026-01-{1 + n // 24:02}T{n % 24:02}:30:00,1,3600,gpu,ann\n"
    for n in range(200)
)
SPOT_LOG = "time,event,machine,zone\n" + "".join(
    f"2026-01-{1 + n:02}T{hour}:00:00Z,{event},g5.xlarge,us-east-1a\n"
    for n in range(28)
    for hour, event in (("01", "up"), ("20", "down"))
)

# What is typed, and the call in which the signal arrives.
MOMENTS = [
    ("gpus", "advisor.report.writers.terminal.to_terminal"),
    ("config show", "advisor.config.layers.load_config"),
    ("doctor", "advisor.service.health.run_checks"),
    ("init --project", REPLACING),
    ("init --force", REPLACING),
    ("trust project", REPLACING),
    ("prices", "advisor.pricing.answers.load_offers"),
    ("prices refresh", "requests.get"),
    ("prices refresh", "advisor.pricing.refresh._keep"),
    ("prices history --gpu L4", "advisor.service.prices.offers.price_history"),
    (f"recommend {JOB}", "advisor.service.recommend.recommending.plans_of"),
    (f"recommend {JOB}", "recommender.engine.evaluate_ways"),
    (f"recommend {JOB} --html mine.html", REPLACING),
    (f"recommend {JOB} --record", "advisor.store.ledger.insert_into"),
    (f"recommend {JOB} --to box", "advisor.delivery.posting.attempt"),
    ("recommend train.py --epochs 1 --offline", "advisor.profile.attempt._wait"),
    ("profile train.py --out mine.json", "advisor.profile.attempt._wait"),
    ("profile train.py --out mine.json", REPLACING),
    ("predict t.json", "advisor.formats.trace_files.read_trace"),
    ("predict t.json --gpu L4", "advisor.predict.iteration.predict_counts"),
    ("compare t.json L4:1 A10G:1 --epochs 1 --offline", "recommender.engine.evaluate_ways"),
    ("diff t.json t.json --epochs 1 --offline", "recommender.engine.evaluate_ways"),
    ("report --bills bill.csv", "advisor.spend.bill_files.read_bill"),
    ("report --out mine.html", "advisor.report.writers.html.to_page"),
    ("report --out mine.html", REPLACING),
    ("queue fit jobs.csv --out mine.json", REPLACING),
    ("spot fit spot.csv --out mine.json", REPLACING),
    ("recipe write lora lora.py", REPLACING),
    ("policy check policy.yaml", "advisor.site_files.policy_files.check_policies"),
    ("schedule add '0 8 * * MON' -- report", "advisor.store.schedules.add_schedule"),
    ("schedule run-now gpus", "advisor.service.schedule.running.run_command"),
    ("schedule export --to cron --all --out folder", REPLACING),
    ("deliver test box", "advisor.delivery.posting.attempt"),
    ("run record --receipt mine.json", "advisor.receipt.receipt_files.read_receipt"),
    ("run list", "advisor.service.bookkeeping.recorded_runs"),
    ("run record --start 2026-11-20T09:00 --duration 2h --gpu L4:1", "advisor.service.bookkeeping.keep_run"),
    ("sweep sweep.yaml --offline", "advisor.service.sweeping.world_of"),
    ("sweep sweep.yaml --offline", "advisor.service.sweep_engines.Children.answer"),
    (f"recommend {JOB} --what-if all", "recommender.ranking.what_ifs.with_what_ifs"),
    (f"recommend {JOB} --explain 1", "advisor.service.prices.daily.current_answers"),
    ("recommend --recipe lora --model llama-3.2-1b --offline", "advisor.recipes.recipes.rendered"),
    ("predict t.json --gpu L4 --format html", "advisor.report.writers.html.to_page"),
    ("compare t.json L4:1 A10G:1 --epochs 1 --offline --json", "advisor.report.writers.text_formats.to_json"),
    ("report --format focus --out focus.csv", REPLACING),
    ("report --to box", "advisor.delivery.posting.attempt"),
    ("prices sources", "advisor.service.prices.live.source_states"),
    ("prices check", "advisor.service.prices.offers.doubtful_prices"),
    ("catalog build --out folder", "advisor.service.prices.live.write_snapshot"),
    ("queue check jobs.csv", "advisor.service.queue_waits.check_waits"),
    ("queue simulate jobs.csv --capacity 8", "advisor.service.queue_what_ifs.queue_what_if"),
    ("schedule list", "advisor.service.schedule.managing.planned_schedules"),
    ("schedule remove gpus", "advisor.service.schedule.managing.remove_schedule"),
    ("schedule run --once", "advisor.service.schedule.running.run_due"),
    ("policy explain policy.yaml --plan local/1xL4", "advisor.service.plan_facts.given_facts"),
    ("serve", "advisor.serve.hosting.check_store"),
    ("deliver list", "advisor.service.delivering.channel_states"),
]

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """One folder for all: nothing that is interrupted changes it."""
    shell = Shell(folder=tmp_path_factory.mktemp("interrupted"))
    more = {
        "train.py": TRAIN,
        "jobs.csv": LOG,
        "spot.csv": SPOT_LOG,
        "bill.csv": "",
        "sweep.yaml": "subjects: [t.json]\noptions: {epochs: [1], gpu: [L4]}\n",
        "project/.advisor.yaml": "cloud: {max_gpus: 2}\n",
        ".config/advisor/config.yaml": CONFIG,
    }
    for name, text in {**FILES, **more}.items():
        shell.write(name, text)
    write_trace(make_trace(), shell.folder / "t.json")
    (shell.folder / "temporary").mkdir()
    added = shell.run("schedule", "add", "0 8 * * MON", "--name", "gpus", "--", "prices")
    assert added.code == 0, added
    return shell


@pytest.mark.parametrize(("typed", "call"), MOMENTS, ids=[f"{typed} in {call}" for typed, call in MOMENTS])
def test_ctrl_c_is_one_word_and_leaves_all_files_as_they_were(shell, typed, call, monkeypatch):
    came, first = [], threading.Lock()

    def interrupted(*_: Any, **__: Any) -> None:
        # One signal, however many threads come here: another one would end the tests.
        if not first.acquire(blocking=False):
            raise OSError("the network is gone")
        came.append(call)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(call, interrupted)
    monkeypatch.setattr(tempfile, "tempdir", str(shell.folder / "temporary"))
    before, threads = files_of(shell), set(threading.enumerate())
    answer = shell.run(*shlex.split(typed))
    # A thread that comes there after the command would end the tests.
    first.acquire(blocking=False)
    # A process would end with them; here a download that was under way goes on to its end.
    for thread in set(threading.enumerate()) - threads:
        # One that is about to start is not alive yet.
        wait_for(lambda thread=thread: thread not in threading.enumerate())
    assert came, answer
    assert answer.code == 130, answer
    assert answer.err.splitlines()[-1] == "interrupted"
    assert not [words for words in ("Traceback", "KeyboardInterrupt") if words in answer.err], answer.err
    assert files_of(shell) == before
    assert not list((shell.folder / "temporary").iterdir())
