"""Records of steps: quantiles of honest ones, and a word instead of a forged one."""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.payload.receipt import steps as counting
from advisor.payload.receipt.steps import PER_FACTOR_E, StepClock
from advisor.receipt.receipt_files import StepRecord, _quantiles, read_steps, steps_environment

BROKEN = (b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b" " * 2_000_000, b'{"a": NaN}')


class Optimizer:
    """Stands for one of torch."""


def write(folder: Path, pid: int = 1, **changes: Any) -> Path:
    facts: dict[str, Any] = {
        "version": 1,
        "pid": pid,
        "rank": None,
        "num_steps": 101,
        "span_s": 10.0,
        "blocks": [[-230, 100]],
        "failure": None,
    }
    path = folder / f"{pid}.json"
    path.write_text(json.dumps(facts | changes))
    return path


def clocked(folder: Path, monkeypatch: pytest.MonkeyPatch, *step_s: float) -> StepClock:
    """What a training of one optimizer counts whose steps take so long."""
    now = 0.0
    monkeypatch.setattr(counting, "perf_counter", lambda: now)
    clock, optimizer = StepClock(str(folder)), Optimizer()
    clock.after_step(optimizer, (), {})
    for duration_s in step_s:
        now += duration_s
        clock.after_step(optimizer, (), {})
    clock.end()
    return clock


def test_what_is_counted_is_what_is_read(tmp_path, monkeypatch):
    clocked(tmp_path, monkeypatch, *[0.25] * 400)
    steps, warnings = read_steps(tmp_path, 101.0)
    assert warnings == []
    assert (steps.num_steps, steps.num_processes) == (401, 1)
    assert steps.span_s == pytest.approx(100.0)
    assert steps.step_s.p10 == steps.step_s.p90 == pytest.approx(0.25, rel=0.005)
    (path,) = tmp_path.iterdir()
    assert set(json.loads(path.read_text())) == set(StepRecord.model_fields)


def test_a_host_that_runs_ahead_of_its_gpu_does_not_hide_its_time(tmp_path, monkeypatch):
    """Nine steps are launched at once, the tenth waits for all: the median of single steps would be 1 ms."""
    clocked(tmp_path, monkeypatch, *([0.001] * 9 + [0.991]) * 50)
    steps, _ = read_steps(tmp_path, 51.0)
    assert steps.step_s.p50 == pytest.approx(0.1, rel=0.06)


def test_a_pause_such_as_an_evaluation_moves_the_median_little(tmp_path, monkeypatch):
    clocked(tmp_path, monkeypatch, *([0.1] * 99 + [60.0]) * 5)
    steps, _ = read_steps(tmp_path, 400.0)
    assert steps.step_s.p50 == pytest.approx(0.1, rel=0.01)


def test_one_step_has_no_time(tmp_path, monkeypatch):
    clocked(tmp_path, monkeypatch)
    steps, warnings = read_steps(tmp_path, 1.0)
    assert (steps.num_steps, steps.step_s, warnings) == (1, None, [])


def test_a_killed_process_loses_ten_seconds_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr(StepClock, "end", lambda _: None)
    clocked(tmp_path, monkeypatch, *[0.5] * 100)
    steps, _ = read_steps(tmp_path, 51.0)
    assert 50.0 - steps.span_s <= 10.0 + 20 * 0.5


@given(st.lists(st.tuples(st.integers(-900, 900), st.integers(1, 50)), min_size=1, max_size=20))
def test_quantiles_are_those_of_all_steps_in_order(blocks):
    every = sorted(bucket for bucket, steps in blocks for _ in range(steps))
    interval = _quantiles(tuple(blocks))
    assert interval is not None
    for share, value_s in ((0.1, interval.p10), (0.5, interval.p50), (0.9, interval.p90)):
        # The least value that so large a share does not exceed.
        slow = next(b for i, b in enumerate(every, start=1) if i >= share * len(every))
        assert value_s == math.exp(slow / PER_FACTOR_E)


def test_of_ranks_the_first_counts_and_others_are_no_rivals(tmp_path):
    for rank in range(4):
        write(tmp_path, pid=10 - rank, rank=rank, num_steps=101 + rank)
    steps, warnings = read_steps(tmp_path, 60.0)
    assert (steps.num_steps, steps.num_processes, warnings) == (101, 1, [])


def test_of_several_trainings_the_longest_counts_and_they_are_told_apart(tmp_path):
    for pid in range(3):
        write(tmp_path, pid=pid, num_steps=101 + pid)
    steps, _ = read_steps(tmp_path, 60.0)
    assert (steps.num_steps, steps.num_processes) == (103, 3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version"),
        ({"num_steps": -1}, "num_steps"),
        ({"num_steps": "many"}, "num_steps"),
        ({"num_steps": 2**60}, "num_steps"),
        ({"span_s": 1e9}, "its steps took longer than the command"),
        ({"span_s": -1.0}, "span_s"),
        ({"blocks": [[0, 1000]]}, "it timed more steps than it made"),
        ({"blocks": [[9999, 1]]}, "it has times that no step takes"),
        ({"blocks": [[0, -5]]}, "it has times that no step takes"),
        ({"blocks": [[0]]}, "blocks.0.1"),
        ({"blocks": [[0, 1]] * 20_000}, "blocks"),
        ({"failure": "x" * 5000}, "failure"),
        ({"surprise": 1}, "surprise"),
        ({"rank": -1}, "rank"),
    ],
)
def test_a_forged_record_is_one_warning_and_loses_nothing(change, words, tmp_path):
    write(tmp_path, pid=1)
    write(tmp_path, pid=2, **change)
    steps, warnings = read_steps(tmp_path, 60.0)
    assert steps.num_steps == 101
    (warning,) = warnings
    assert warning.startswith("a record of steps is left out: ")
    assert words in warning


@pytest.mark.parametrize("text", BROKEN)
def test_a_record_that_is_none_is_one_warning(text, tmp_path):
    (tmp_path / "1.json").write_bytes(text)
    steps, warnings = read_steps(tmp_path, 60.0)
    assert steps is None
    assert len(warnings) == 1


def test_an_endless_time_is_refused(tmp_path):
    path = write(tmp_path)
    path.write_text(path.read_text().replace("10.0", "1e999"))
    steps, (warning,) = read_steps(tmp_path, math.inf)
    assert steps is None
    assert "span_s: Input should be a finite number" in warning


def test_links_pipes_and_folders_are_not_opened(tmp_path):
    folder = tmp_path / "steps"
    folder.mkdir()
    (folder / "1.json").symlink_to(write(tmp_path, pid=5))
    os.mkfifo(folder / "2.json")
    (folder / "3.json").mkdir()
    assert read_steps(folder, 60.0) == (None, [])
    assert read_steps(tmp_path / "gone", 60.0) == (None, [])


def test_a_failure_of_ours_is_told(tmp_path):
    write(tmp_path, num_steps=0, blocks=[], failure="TypeError")
    steps, warnings = read_steps(tmp_path, 60.0)
    assert steps is None
    assert warnings == ["steps are missing: counting them failed with TypeError"]


def test_the_users_own_path_stays_behind_ours(tmp_path):
    first, *others = steps_environment({"PYTHONPATH": "/a:/b", "X": "1"}, tmp_path)["PYTHONPATH"].split(":")
    assert [path.name for path in Path(first).glob("*.py")] == ["sitecustomize.py"]
    assert others == ["/a", "/b"]
    # An empty entry would be the folder that the command stands in.
    assert ":" not in steps_environment({}, tmp_path)["PYTHONPATH"]
