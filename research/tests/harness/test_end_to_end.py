"""Rows and their predictions: what the document holds of each, by one knowledge or several."""

import pytest

from advisor.predict.iteration import predict
from advisor.predict.knowledge import shipped
from benchmarks.accuracy.end_to_end import evaluate, predicted
from benchmarks.accuracy.label_noise import LabelNoise
from research.tests.harness.builders import make_measured, make_workload
from tests.builders import make_trace

TRACE = make_trace()
NOISY = LabelNoise(iteration=0.5, forward=0.5, backward=None)
CLEAN = LabelNoise(iteration=0.01, forward=None, backward=None)


def test_a_row_keeps_its_columns_and_gains_the_estimate():
    row = make_measured("V100-PCIE-32GB")
    estimated = predicted(row, TRACE, shipped())
    estimate = predict(TRACE, row.gpu)
    assert {name: estimated[name] for name in row.columns} == row.columns
    interval = estimate.iteration_s
    assert [estimated[name] for name in ("p10_ms", "predicted_ms", "p90_ms")] == pytest.approx(
        [1e3 * interval.p10, 1e3 * interval.p50, 1e3 * interval.p90]
    )
    assert estimated["by_method"] == {str(method): s for method, s in estimate.by_method.items()}


@pytest.mark.parametrize(("noise", "label"), [(None, "unknown"), (NOISY, "noisy"), (CLEAN, "clean")])
def test_a_row_tells_the_noise_of_its_label(noise, label):
    row = predicted(make_measured(), TRACE, shipped(), noise)
    assert row["label"] == label
    assert row["label_noise"] == (
        None if noise is None else {"iteration": noise.iteration, "forward": noise.forward, "backward": None}
    )


def test_one_knowledge_is_the_plain_contract():
    rows = [make_measured("T4"), make_measured("P4")]
    document = evaluate(rows, {make_workload(): TRACE}, {"shipped": shipped()}, [CLEAN, None])
    assert [row["gpu"] for row in document["rows"]] == ["T4", "P4"]
    assert document["summary"] == document["by_knowledge"]["shipped"]
    assert document["summary"]["clean"]["advisor"]["rows"] == 1
    assert document["summary"]["all"]["other"]["rows"] == 2


def test_each_of_several_predicts_every_row():
    rows = [make_measured("T4"), make_measured("P4")]
    members = {"s1": shipped(), "s2": shipped(), "s3": shipped()}
    document = evaluate(rows, {make_workload(): TRACE}, members, [None, None])
    assert [row["knowledge"] for row in document["rows"]] == ["s1", "s1", "s2", "s2", "s3", "s3"]
    assert list(document["by_knowledge"]) == ["s1", "s2", "s3"]
    # Rows are counted once, however many predicted them.
    assert document["summary"]["all"]["advisor"]["rows"] == 2


def test_each_workload_is_predicted_from_its_own_trace():
    small, large = make_workload(batch_size=2), make_workload(batch_size=64)
    rows = [make_measured(batch_size=2), make_measured(batch_size=64)]
    op = TRACE.ops[0]
    many = make_trace(ops=tuple([op] * 1000))
    document = evaluate(
        rows, {small: make_trace(ops=(op,)), large: many}, {"shipped": shipped()}, [None, None]
    )
    first, second = (row["predicted_ms"] for row in document["rows"])
    assert second == pytest.approx(1000 * first, rel=0.01)
