"""Ways to feed a GPU faster: each is a trace, and none is offered where it cannot help."""

from dataclasses import replace

import pytest

from advisor.core.findings.about_estimates import EditScript
from advisor.core.input_time import input_s
from advisor.core.values import TensorSpec, Trace
from advisor.predict.loading import faster_feeding, input_work
from tests.builders import make_op, make_trace


def loads(cpu_s: float | None = 0.02, wait_s: float = 0.0, **changes: object) -> Trace:
    """64 images, each of which takes the CPU so long; and so long for the disk all together."""
    copy = make_op("advisor::h2d_copy", flops=0)
    images = replace(copy, inputs=(TensorSpec(shape=(64, 3, 224, 224), dtype="float32"),))
    facts = {"ops": (make_op(), images), "num_workers": 4, "loader_cpu_s_per_sample": cpu_s}
    facts["data_loading_s"] = None if cpu_s is None else 64 * cpu_s + wait_s
    return make_trace(**facts | changes)


def seconds_by_way(trace: Trace, vcpus: float = 16) -> dict[str, float]:
    works = {name: input_work(changed) for name, (changed, _) in faster_feeding(trace).items()}
    return {name: 0.0 if work is None else input_s(work, vcpus).p50 for name, work in works.items()}


def test_workers_for_every_vcpu_share_the_work():
    assert seconds_by_way(loads())["workers"] == pytest.approx(64 * 0.02 / 16)
    assert seconds_by_way(loads(num_workers=0))["workers"] == pytest.approx(64 * 0.02 / 16)


def test_where_the_number_of_workers_is_unknown_more_are_no_change():
    assert "workers" not in seconds_by_way(loads(num_workers=None))


def test_packed_images_are_read_and_not_decoded():
    seconds = seconds_by_way(loads())
    assert 0 < seconds["packed"] < 64 * 0.02 / 4 / 5
    assert seconds_by_way(loads(None))["packed"] == pytest.approx(seconds["packed"])


def test_what_is_read_that_fast_already_is_not_packed():
    assert "packed" not in seconds_by_way(loads(1e-4))


def test_a_disk_that_keeps_nobody_waiting_is_offered_where_one_does():
    assert "nvme" not in seconds_by_way(loads())
    assert seconds_by_way(loads(wait_s=4.0))["nvme"] == pytest.approx(64 * 0.02 / 4)


def test_nothing_is_offered_to_a_script_that_loads_nothing():
    assert faster_feeding(make_trace()) == {}


def test_each_way_says_what_to_do():
    steps = [step for _, step in faster_feeding(loads(wait_s=1.0)).values()]
    assert steps == [
        EditScript(what="use-workers"),
        EditScript(what="pack-data"),
        EditScript(what="use-nvme"),
    ]
