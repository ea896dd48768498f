"""What kubectl prints of jobs that queue -> rows of a job log: Workloads of Kueue, Jobs of Volcano.

Types: https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta1, https://volcano.sh/en/docs/vcjob.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from advisor.formats.foreign_files import read_members

KUEUE = ("kubectl", "get", "workloads.kueue.x-k8s.io", "--all-namespaces", "--output=json")
VOLCANO = ("kubectl", "get", "jobs.batch.volcano.sh", "--all-namespaces", "--output=json")
_ENDED = {"Completed", "Failed", "Terminated", "Aborted"}


def rows_of(text: TextIO) -> Iterator[tuple[int, dict[str, str] | ValueError]]:
    """Number of each item of a list, and its row or what is wrong with it; one item without a list.

    Raises ValueError: no JSON.
    """
    alone: dict[str, Any] = {}
    for name, value in read_members(text, streamed="items"):
        alone[name] = value
        for number, item in enumerate(value if name == "items" and isinstance(value, Iterator) else (), 1):
            yield number, _row_of(item)
    if "items" not in alone:
        yield 1, _row_of(alone)


def _row_of(item: Any) -> dict[str, str] | ValueError:
    try:
        return _ROWS[item["apiVersion"].partition("/")[0], item["kind"]](item)
    except (KeyError, TypeError, AttributeError, ValueError):
        return ValueError(
            "it is neither a Workload of Kueue nor a Job of Volcano, as `kubectl get -o json` prints them"
        )


def _workload(item: dict[str, Any]) -> dict[str, str]:
    """One that was evicted waits anew from when it was put back; one that is not active is held."""
    spec, conditions = item["spec"], _conditions(item)
    since = {one["type"]: one["lastTransitionTime"] for one in conditions if one["status"] == "True"}
    eligible = since.get("Requeued", since.get("Evicted"))
    if spec.get("active") is False:
        eligible = ""
    pods = [(one.get("count", 1), one["template"]["spec"]) for one in spec["podSets"] or ()]
    return _row(
        item,
        pods,
        queue=spec.get("queueName", ""),
        walltime=spec.get("maximumExecutionTimeSeconds"),
        start=since.get("Admitted", ""),
        end=since.get("Finished", ""),
    ) | ({} if eligible is None else {"eligible": eligible})


def _volcano_job(item: dict[str, Any]) -> dict[str, str]:
    """One that was restarted counts with its first start."""
    spec, conditions = item["spec"], _conditions(item)
    times = [(one["status"], one["lastTransitionTime"]) for one in conditions]
    pods = [(one.get("replicas", 1), one["template"]["spec"]) for one in spec["tasks"] or ()]
    return _row(
        item,
        pods,
        queue=spec.get("queue", ""),
        start=next((time for status, time in times if status == "Running"), ""),
        end=times[-1][1] if times and times[-1][0] in _ENDED else "",
    )


def _row(
    item: dict[str, Any],
    pods: Sequence[tuple[int, dict[str, Any]]],
    *,
    walltime: int | None = None,
    **facts: object,
) -> dict[str, str]:
    """Without a walltime of its own, that of the pod that may run longest."""
    metadata, limits = item["metadata"], [pod.get("activeDeadlineSeconds") or 0 for _, pod in pods]
    row = {
        "submit": metadata["creationTimestamp"],
        "user": metadata["namespace"],
        "gpus": sum(count * _gpus(container) for count, pod in pods for container in pod["containers"]),
        "walltime": walltime or max(limits, default=0) or None,
        **facts,
    }
    return {name: "" if value is None else str(value) for name, value in row.items()}


def _conditions(item: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """None yet, or null, of what was just made."""
    return (item.get("status") or {}).get("conditions") or ()


def _gpus(container: dict[str, Any]) -> int:
    """Requests of such a resource are its limits, and either may stand alone."""
    resources = container.get("resources") or {}
    asked = (resources.get("requests") or {}) | (resources.get("limits") or {})
    return sum(int(count) for name, count in asked.items() if name.endswith("/gpu"))


_ROWS = {("kueue.x-k8s.io", "Workload"): _workload, ("batch.volcano.sh", "Job"): _volcano_job}
