"""What kubectl prints of Kueue's Workloads and Volcano's Jobs is a job log, also of a live cluster."""

import json
import os
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.service.listening import Listener
from advisor.service.queue_waits import fit_waits, fitted_waits
from advisor.site_files import job_logs, log_rows
from advisor.site_files.job_logs import read_job_log
from recommender.queue.waits import QueuedJob
from tests.programs import write_program

DAY = "2026-01-01T"
DAY_S = 1_767_225_600.0


def pod(gpus=1, **spec):
    """Of two containers, one of which needs no GPU."""
    trains = {"name": "a", "resources": {"limits": {"nvidia.com/gpu": str(gpus), "cpu": "8500m"}}}
    return {"spec": {"containers": [trains, {"name": "b"}], **spec}}


def kueue(submit, *, count=1, gpus=1, active=True, **times):
    """A Workload with these conditions; a false one is nothing."""
    conditions = [
        {"type": name, "status": "True", "lastTransitionTime": DAY + at} for name, at in times.items()
    ]
    conditions.append({"type": "PodsReady", "status": "False", "lastTransitionTime": f"{DAY}09:00:00Z"})
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "vision", "creationTimestamp": DAY + submit},
        "spec": {
            "queueName": "gpu",
            "active": active,
            "maximumExecutionTimeSeconds": 7200,
            "podSets": [{"name": "main", "count": count, "template": pod(gpus)}],
        },
        "status": {"conditions": conditions},
    }


def volcano(submit, *changes, **spec):
    """A Job that came into these states."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"namespace": "speech", "creationTimestamp": DAY + submit},
        "spec": {"queue": "night", "tasks": [{"replicas": 2, "template": pod(4, **spec)}]},
        "status": {"conditions": [{"status": s, "lastTransitionTime": DAY + at} for s, at in changes]},
    }


def read(tmp_path, *items):
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=4))
    return read_job_log(path)


def job(submit_h, start_h, run_h, size, **facts):
    start_s = DAY_S + 3600 * start_h if start_h is not None else float("inf")
    run_s = 3600.0 * run_h if run_h else -1.0
    return QueuedJob(submit_s=DAY_S + 3600 * submit_h, start_s=start_s, size=size, run_s=run_s, **facts)


VISION = {"walltime_s": 7200.0, "queue": "gpu", "user": "vision"}
SPEECH = {"walltime_s": -1.0, "queue": "night", "user": "speech"}


def test_workloads_of_kueue_wait_until_they_are_admitted(tmp_path):
    """One that was evicted, from when it was put back; of those without a start, one is held and one gone."""
    log = read(
        tmp_path,
        kueue("01:00:00Z", count=3, gpus=8, Admitted="03:00:00Z", Finished="04:00:00Z"),
        kueue("01:00:00Z", Requeued="05:00:00Z", Admitted="06:00:00Z"),
        kueue("05:00:00Z"),
        kueue("02:00:00Z", Evicted="05:30:00Z"),
        kueue("05:00:00Z", active=False),
        kueue("05:00:00Z", Finished="06:00:00Z"),
    )
    assert log.jobs == (job(1, 3, 1, 24, **VISION), job(5, 6, None, 1, **VISION))
    assert log.waiting == (job(5, None, None, 1, **VISION), job(5.5, None, None, 1, **VISION))
    assert (log.size_unit, log.left_out) == ("gpus", {"never started": 2})


def test_jobs_of_volcano_wait_until_they_first_run(tmp_path):
    ran = (("Pending", "01:00:01Z"), ("Running", "02:00:00Z"), ("Restarting", "02:30:00Z"))
    again = (("Running", "04:00:00Z"), ("Completed", "05:00:00Z"))
    log = read(
        tmp_path,
        volcano("01:00:00Z", *ran, *again),
        volcano("02:00:00Z", ("Pending", "02:00:01Z"), activeDeadlineSeconds=7200),
        volcano("02:00:00Z", ("Pending", "02:00:01Z"), ("Aborted", "02:30:00Z")),
    )
    assert log.jobs == (job(1, 2, 3, 8, **SPEECH),)
    assert log.waiting == (job(2, None, None, 8, **SPEECH | {"walltime_s": 7200.0}),)
    assert log.left_out == {"never started": 1}


@pytest.mark.parametrize("num_jobs", [1, 3000])
def test_a_line_of_any_length_and_a_single_object_are_read(num_jobs, tmp_path):
    """As `jq -c` writes a list, and `kubectl get workload NAME -o json` one of them."""
    item = kueue("01:00:00Z", Admitted="03:00:00Z")
    text = "\n" + json.dumps({"items": [item] * num_jobs} if num_jobs > 1 else item)
    assert (len(text) > 2**20) is (num_jobs > 1)
    path = tmp_path / "jobs.json"
    path.write_text(text)
    assert len(read_job_log(path).jobs) == num_jobs


PLAIN = volcano("01:00:00Z") | {"apiVersion": "batch/v1"}
NO_COUNT = kueue("01:00:00Z", gpus="1Gi")


@pytest.mark.parametrize("item", [PLAIN, NO_COUNT, {}, None, 3, kueue("01:00:00Z") | {"spec": []}])
def test_an_item_of_another_kind_is_named(item, tmp_path):
    with pytest.raises(InputError, match=r"\n  item 2: it is neither a Workload of Kueue nor a Job of"):
        read(tmp_path, kueue("01:00:00Z", Admitted="03:00:00Z"), item)


def test_items_with_a_fault_are_told_by_their_number(tmp_path):
    late = kueue("at night", Admitted="03:00:00Z")
    with pytest.raises(
        InputError, match=r"item 1: submit .*\n  item 2: it is.*\n(.*\n){3}  and 2 more items"
    ):
        read(tmp_path, late, *[{}] * 6)


def test_what_is_null_is_as_if_left_out(tmp_path):
    new = kueue("01:00:00Z") | {"status": {"conditions": None}}
    new["spec"] = new["spec"] | {"queueName": None, "active": None}
    bare = kueue("01:00:00Z")
    bare["spec"] = bare["spec"] | {"podSets": None}
    ran = kueue("01:00:00Z", Admitted="03:00:00Z")
    ran["spec"]["podSets"][0]["template"]["spec"]["containers"][1]["resources"] = {"requests": None}
    log = read(tmp_path, new, bare, ran)
    assert log.jobs == (job(1, 3, None, 1, **VISION),)
    assert log.waiting == (job(1, None, None, 1, **VISION | {"queue": ""}),)
    assert log.left_out == {"asked for no GPU": 1}


def test_items_count_as_jobs_however_many_lines_they_have(tmp_path, monkeypatch):
    items = [kueue("01:00:00Z", Admitted=f"0{2 + i}:00:00Z") for i in range(3)]
    monkeypatch.setattr(job_logs, "MOST_JOBS", 3)
    monkeypatch.setattr(log_rows, "MOST_LINES", 3)
    assert len(read(tmp_path, *items).jobs) == 3
    with pytest.raises(InputError, match="more than 3 jobs: keep the newest"):
        read(tmp_path, *items, items[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "item 1: it is neither"),
        ('{"items": []}', "holds no job that started, of 0"),
        ('{"items": 3}', "holds no job that started, of 0"),
        ('{"items": [', "cannot read"),
        ('{"items": ' + "[" * 100_000, "cannot read"),
    ],
)
def test_what_is_no_list_of_jobs_is_refused(text, words, tmp_path):
    (tmp_path / "jobs.json").write_text(text)
    with pytest.raises(InputError, match=words):
        read_job_log(tmp_path / "jobs.json")


@pytest.mark.parametrize(("word", "kind"), [("kueue", "workloads.kueue"), ("volcano", "jobs.batch.volcano")])
def test_a_live_cluster_is_asked_by_kubectl(word, kind, tmp_path, monkeypatch):
    """Without access it is one line."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    items = [kueue("01:00:00Z", count=1 + i, Admitted="03:00:00Z") for i in range(40)]
    (tmp_path / "log").write_text(json.dumps({"apiVersion": "v1", "items": items}))
    program = write_program(tmp_path / "kubectl", 'echo "$@" > asked\ncat log')
    assert fit_waits(Path(word), None, Listener()) == fitted_waits(tmp_path / "log", Listener())
    # As `queue show` does, of the file too.
    assert fitted_waits(Path(word), Listener()).num_jobs == 40
    assert (tmp_path / "asked").read_text().startswith(f"get {kind}.")
    program.write_text('#!/bin/sh\necho "Error from server (Forbidden)" >&2\nexit 1\n')
    with pytest.raises(InputError, match=r"\(kubectl\) refuses: Error from server \(Forbidden\)"):
        fit_waits(Path(word), None, Listener())
