"""What each operator and wait takes of a job whose script changed."""

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.predict.exchange.data_parallel import COMMUNICATION
from advisor.predict.iteration import predict
from advisor.predict.step_time import OTHERS
from advisor.service.recommend.comparing import _parts
from tests.builders import make_trace
from tests.recommendations import make_option

GPU = "A100-SXM-80GB"


@pytest.mark.parametrize("num_gpus", [1, 8])
def test_operators_and_waits_of_several_gpus_are_all_of_the_job(num_gpus):
    estimate = predict(make_trace(), resolve_gpu(GPU), num_gpus)
    option = make_option(GPU, 1.0, 1.0, estimate=estimate)
    parts = _parts(make_trace(), option)
    whole_s = option.iterations * estimate.iteration_s.p50
    assert sum(seconds for seconds, _ in parts.values()) == pytest.approx(whole_s)
    waits = {name for name, phase in parts if phase is None}
    assert waits == ({COMMUNICATION, OTHERS} if num_gpus > 1 else set())
