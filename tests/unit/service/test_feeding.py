"""What settings say of an input pipeline goes before what the trace knows."""

from dataclasses import replace

import pytest

from advisor.config.settings import InputSettings
from advisor.core.errors import InputError
from advisor.core.values import Trace
from advisor.predict.loading import input_work
from advisor.service.listening import Listener
from advisor.service.traces import with_input
from tests.builders import make_trace

MEASURED = make_trace(data_loading_s=2.0, loader_cpu_s_per_sample=0.02, num_workers=8)


def fed(trace: Trace = MEASURED, **settings: object) -> tuple[float, float, int | None]:
    """CPU seconds and seconds of waiting of one iteration, and its workers."""
    work = input_work(with_input(trace, InputSettings(**settings), Listener()))
    assert work is not None
    return work.cpu_s.p50, work.wait_s, work.num_workers


def test_without_settings_the_trace_stays_as_it_is():
    assert with_input(MEASURED, InputSettings(), Listener()) == MEASURED
    old = make_trace(data_loading_s=2.0)
    assert with_input(old, InputSettings(), Listener()) == old


def test_given_seconds_replace_measured_ones_and_their_waits():
    assert fed(loader_s_per_sample=0.1) == (pytest.approx(6.4), 0.0, 8)


def test_no_seconds_at_all_are_none_to_load():
    trace = with_input(MEASURED, InputSettings(loader_s_per_sample=0), Listener())
    assert input_work(trace) is None


def test_faster_vcpus_shorten_the_work_and_not_the_wait():
    assert fed(vcpu_speed=2) == (pytest.approx(0.64), pytest.approx(0.72), 8)
    assert fed(make_trace(data_loading_s=2.0), vcpu_speed=0.5)[0] == pytest.approx(4.0)


def test_workers_are_as_many_as_is_said():
    assert fed(num_workers=3)[2] == 3


def test_seconds_of_a_sample_need_a_number_of_samples():
    unknown = replace(MEASURED, batch_size=None)
    with pytest.raises(InputError, match="loader_s_per_sample is of one sample"):
        with_input(unknown, InputSettings(loader_s_per_sample=0.1), Listener())
