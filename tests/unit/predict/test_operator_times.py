"""Operators by name and part of the iteration: what the estimate's own sum holds, in other heaps."""

from advisor.core.gpus import load_gpus
from advisor.core.values import Phase
from advisor.predict.iteration import predict
from advisor.predict.methods import Called, operator_times
from tests.builders import make_op, make_trace

GPU = load_gpus()["A100-SXM-80GB"]


def test_they_add_up_to_the_estimate():
    trace = make_trace()
    times = operator_times(trace, GPU)
    estimate = predict(trace, GPU)
    waits = sum(s for name, s in estimate.by_operator.items() if name.startswith("waiting"))
    assert abs(sum(calls.time_s for calls in times.values()) - (estimate.device_s.p50 - waits)) < 1e-9


def test_calls_are_counted_by_phase():
    ops = (
        make_op("aten::add", phase=Phase.FORWARD, count=3),
        make_op("aten::add", phase=Phase.FORWARD, count=2),
        make_op("aten::add", phase=Phase.BACKWARD, count=1),
    )
    times = operator_times(make_trace(ops=ops), GPU)
    counts = {called: calls.count for called, calls in times.items()}
    assert counts == {Called("add", Phase.FORWARD): 5, Called("add", Phase.BACKWARD): 1}
    one, other = times[Called("add", Phase.FORWARD)], times[Called("add", Phase.BACKWARD)]
    assert one.flops == 5 * other.flops
