"""Schedules as CronJobs of Kubernetes (batch/v1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.core.values import Schedule
from advisor.schedule.cron import parse_cron
from advisor.schedule.exports.exported import ExportedFile, cron_text, exported_words, unit_name
from advisor.schedule.exports.yaml_text import yaml_text

_HEADER = """\
# Written by `advisor schedule export`: kubectl apply -f FILE
# The image holds advisor and the files that the command names; it runs in the image's own folder.
# Secrets come from a Secret named advisor, if there is one:
#   kubectl create secret generic advisor --from-env-file=FILE
"""
# A deadline of less would let the controller miss every run.
_LEAST_DEADLINE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CronJobPlan:
    """How jobs are made.

    Attributes:
        image: that holds advisor.
        timeout_s: of one run.
        catch_up_s: how late a missed run may still begin.
    """

    image: str
    timeout_s: float
    catch_up_s: float


def cron_jobs(schedules: Sequence[Schedule], plan: CronJobPlan) -> tuple[ExportedFile, ...]:
    """A CronJob for each schedule."""
    return tuple(
        ExportedFile(name=f"{unit_name(s)}.yaml", text=_HEADER + yaml_text(_cron_job(s, plan)))
        for s in schedules
    )


def _cron_job(schedule: Schedule, plan: CronJobPlan) -> dict[str, object]:
    container = {
        "name": "advisor",
        "image": plan.image,
        "command": ["advisor"],
        "args": [_literal(word) for word in exported_words(schedule)],
        "envFrom": [{"secretRef": {"name": "advisor", "optional": True}}],
    }
    job = {
        "backoffLimit": 1,
        "activeDeadlineSeconds": max(1, round(plan.timeout_s)),
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": unit_name(schedule)},
        "spec": {
            "schedule": cron_text(parse_cron(schedule.cron)),
            "timeZone": schedule.zone,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": max(_LEAST_DEADLINE_S, round(plan.catch_up_s)),
            "jobTemplate": {"spec": job},
        },
    }


def _literal(word: str) -> str:
    """Text in which Kubernetes puts no variable."""
    return word.replace("$(", "$$(")
