"""Operators of whole models: what is read, what timing costs, layers, and the noise of labels."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import InputError, UnknownGpuError
from benchmarks.accuracy.label_noise import LabelNoise, noise_of, pass_times_s
from benchmarks.accuracy.op_traces import floor_s, read_op_traces, with_counts, without_floor
from benchmarks.accuracy.rows import read_rows
from research.tests.harness.builders import make_measured, make_node, node_line, write_op_trace
from tests.shared import SHARED, needs_shared


@pytest.fixture
def traces(tmp_path):
    write_op_trace(tmp_path, "T4--tiny-inf-32-2")
    write_op_trace(tmp_path, "V100-PCIE-32GB--tiny-train-32-2")
    return read_op_traces(tmp_path, {"tiny": 3})


def test_names_of_files_say_gpu_and_workload(traces):
    assert [(trace.gpu, str(trace.workload)) for trace in traces] == [
        ("T4", "tiny inf 32 x 2"),
        ("V100-PCIE-32GB", "tiny train 32 x 2"),
    ]


def test_functions_modules_and_shapes_are_read(traces):
    targets = [node.target for node in traces[0].nodes]
    assert targets[2:6] == ["getitem", "h.0.ln_1", "h.0.weight", "addmm"]
    product = traces[0].nodes[5]
    assert (product.input_shapes, product.output_shape) == (((64,), (8, 32), (32, 64)), (8, 64))
    assert product.dtype == "float32"


def test_the_cost_of_timing_is_taken_off(traces):
    forward_ms = [1e3 * node.forward_s for node in traces[0].nodes]
    assert forward_ms == pytest.approx([0, 0, 0, 1, 0, 2, 0, 0, 4, 0])


def test_only_the_layer_repeats(traces):
    # From ln_1 to the last node before lm_head; the view between is of the layer, and takes nothing.
    assert [node.count for node in traces[0].nodes] == [1, 1, 1, 3, 3, 3, 3, 3, 1, 1]


def test_times_of_the_passes(traces):
    inference, training = traces
    assert pass_times_s(inference) == pytest.approx((3 * 3e-3 + 4e-3, 0.0))
    backward_ms = 3 * (0.5 + 0.1 + 4) + 8 + 1
    assert pass_times_s(training) == pytest.approx((13e-3, backward_ms * 1e-3))


def test_without_a_layer_every_node_runs_once():
    nodes = (make_node(), make_node(target="lm_head", kind="call_module"))
    assert with_counts(nodes, 24) == nodes


def test_the_floor_is_robust_and_zero_without_shape_nodes(traces):
    assert floor_s([]) == 0.0
    nodes = [make_node(output=(1,), forward_s=time_s) for time_s in (1e-5, 1e-5, 1e-5, 0.5)]
    assert floor_s([type(traces[0])(gpu="T4", workload=traces[0].workload, nodes=tuple(nodes))]) == 1e-5


@given(floor=st.floats(0, 1), time_s=st.floats(0, 1))
def test_no_time_falls_below_zero(floor, time_s):
    trace = noisy_trace(forward_s=time_s)
    (node,) = without_floor(trace, floor).nodes
    assert node.forward_s == max(time_s - floor, 0.0)


def noisy_trace(**times):
    from benchmarks.accuracy.op_traces import OpTrace
    from research.tests.harness.builders import make_workload

    return OpTrace(gpu="T4", workload=make_workload(), nodes=(make_node(**times),))


def test_models_without_rows_are_left_out(tmp_path):
    write_op_trace(tmp_path, "T4--other-inf-32-2")
    with pytest.raises(InputError, match="no operator traces of these models"):
        read_op_traces(tmp_path, {"tiny": 2})


@pytest.mark.parametrize(
    "content", [b"", b"not gzip", gzip.compress(b"a,b\n1,2\n", mtime=0), gzip.compress(b"x", mtime=0)[:12]]
)
def test_a_broken_file_is_named(tmp_path, content):
    path = tmp_path / "T4--tiny-inf-32-2.csv.gz"
    path.write_bytes(content)
    if content == b"":
        # Nothing is an empty table.
        assert read_op_traces(tmp_path, {"tiny": 2})[0].nodes == ()
        return
    with pytest.raises(InputError, match="T4--tiny-inf-32-2"):
        read_op_traces(tmp_path, {"tiny": 2})


@pytest.mark.parametrize("time", ["nan", "-1", "fast", "inf"])
def test_a_broken_time_is_named(tmp_path, time):
    write_op_trace(tmp_path, "T4--tiny-inf-32-2", [node_line("call_method", "view", forward=time)])
    with pytest.raises(InputError, match="is no operator trace"):
        read_op_traces(tmp_path, {"tiny": 2})


def test_an_unknown_gpu_is_named(tmp_path):
    write_op_trace(tmp_path, "B9000--tiny-inf-32-2")
    with pytest.raises(UnknownGpuError, match="B9000"):
        read_op_traces(tmp_path, {"tiny": 2})


def test_noise_is_the_sum_of_operators_against_the_iteration(traces):
    noise = noise_of(make_measured(measured_s=12.5e-3, forward_s=12.5e-3), traces)
    assert noise is not None
    assert noise.iteration == pytest.approx(0.04)
    assert noise.forward == pytest.approx(0.04)
    assert noise.backward is None
    assert noise.label == "clean"


def test_training_tells_its_passes_apart(traces):
    row = make_measured(
        gpu="V100-PCIE-32GB", mode="train", measured_s=35.8e-3, forward_s=26e-3, backward_s=9.8e-3
    )
    noise = noise_of(row, traces)
    assert noise is not None
    assert noise.iteration == pytest.approx(0.0, abs=1e-9)
    assert (noise.forward, noise.backward) == pytest.approx((-0.5, 22.8 / 9.8 - 1))
    # The label of the row is the iteration's.
    assert noise.label == "clean"


def test_no_trace_of_gpu_and_workload_is_neither_clean_nor_noisy(traces):
    assert noise_of(make_measured(gpu="P4"), traces) is None
    assert noise_of(make_measured(batch_size=4), traces) is None


@pytest.mark.parametrize(
    ("noise", "label"), [(0.06, "clean"), (-0.06, "clean"), (0.061, "noisy"), (-0.3, "noisy")]
)
def test_six_per_cent_is_clean(noise, label):
    assert LabelNoise(iteration=noise, forward=None, backward=None).label == label


@pytest.mark.shared
@needs_shared
def test_the_noise_of_the_published_labels():
    """The worst are those that the data's README names: A100-40 BERT and GPT-2, A100-80 forward."""
    folder = SHARED / "measurements"
    rows = read_rows(folder / "end_to_end.csv", folder / "model_configs")
    layers = {row.workload.model: row.num_layers for row in rows if row.num_layers}
    traces = read_op_traces(folder / "op_traces", layers)
    noises = {(row.gpu.name, str(row.workload)): noise_of(row, traces) for row in rows}
    known = {key: noise for key, noise in noises.items() if noise is not None}
    assert len(known) == len(traces) == 42
    assert sum(noise.label == "clean" for noise in known.values()) == 24
    assert known["A100-PCIE-40GB", "bert_large inf 512 x 8"].iteration == pytest.approx(0.507, abs=0.005)
    assert known["A100-PCIE-80GB", "gpt3_27 train 2048 x 1"].forward == pytest.approx(-0.395, abs=0.005)
    assert known["A100-PCIE-80GB", "gpt3_27 train 2048 x 1"].backward == pytest.approx(0.0, abs=0.01)
    assert all(abs(noise.iteration) < 0.12 for (gpu, _), noise in known.items() if gpu == "T4")
    assert all(
        abs(noise.iteration) < 0.03 for (gpu, _), noise in known.items() if gpu in ("P4", "P100-PCIE-16GB")
    )
