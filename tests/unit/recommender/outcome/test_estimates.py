"""One estimate for each GPU and count that the plans name."""

from __future__ import annotations

from advisor.core.gpus import resolve_gpu
from advisor.predict.iteration import predict
from recommender.outcome.estimates import estimates_for
from tests.builders import make_plan, make_trace

T4, V100 = resolve_gpu("T4"), resolve_gpu("V100-SXM-16GB")
GPUS = {T4.name: T4, V100.name: V100}


def test_each_pair_of_gpu_and_count_has_its_own_estimate() -> None:
    plans = [
        make_plan(T4.name, num_gpus=4),
        make_plan(T4.name, num_gpus=1),
        make_plan(T4.name, num_gpus=4),
        make_plan(V100.name, num_gpus=8),
    ]
    estimates = estimates_for(make_trace(), plans, GPUS)
    assert {(name, layout.num_gpus) for name, layout in estimates} == {
        (T4.name, 1),
        (T4.name, 4),
        (V100.name, 8),
    }
    for (name, layout), estimate in estimates.items():
        assert (estimate.gpu, estimate.layout) == (name, layout)
        assert estimate == predict(make_trace(), GPUS[name], layout)


def test_no_plans_need_no_estimates() -> None:
    assert estimates_for(make_trace(), [], GPUS) == {}
