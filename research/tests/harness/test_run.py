"""What a run makes of its inputs, without profiling: which knowledge, which pairs, which hashes."""

import gzip

import pytest

from advisor.core.errors import AdvisorError, InputError
from advisor.core.gpus import catalog_path
from advisor.predict.knowledge import shipped
from benchmarks.accuracy import run as harness
from benchmarks.accuracy.label_noise import LabelNoise
from benchmarks.accuracy.run import Inputs, run, tell
from benchmarks.accuracy.scaling import Scaled
from research.tests.harness.builders import line, make_measured, write_measurements, write_op_trace
from tests.builders import make_trace


@pytest.fixture
def unprofiled(monkeypatch):
    """Traces come from nowhere; remembers which were asked for."""
    asked = []

    def traces_of(workloads, configs):
        distinct = dict.fromkeys(workloads)
        asked.extend(distinct)
        return ((workload, make_trace()) for workload in distinct)

    monkeypatch.setattr(harness, "traces_of", traces_of)
    return asked


def evaluated(path, messages=None, **options):
    parts = ("kernels", "op_traces", "third_party", "leave_one_out", "unseen_dims")
    given = {**dict.fromkeys(parts), "knowledge": ()}
    inputs = Inputs(end_to_end=path, configs=path.parent / "model_configs", **(given | options))
    return run(inputs, command="python -m benchmarks.accuracy", date="2026-01-02",
               say=(messages if messages is not None else []).append)  # fmt: skip


def test_each_workload_is_profiled_once_for_all_gpus(tmp_path, unprofiled):
    lines = [line(gpu=gpu, batch_size=batch) for gpu in ("T4", "P4", "L4") for batch in (2, 4)]
    messages = []
    results = evaluated(write_measurements(tmp_path, *lines), messages)
    assert [str(workload) for workload in unprofiled] == ["tiny inf 32 x 2", "tiny inf 32 x 4"]
    assert messages[:3] == [
        "profiling 2 workloads",
        "profiled tiny inf 32 x 2: 1 of 2",
        "profiled tiny inf 32 x 4: 2 of 2",
    ]
    assert results.end_to_end["summary"]["all"]["advisor"]["rows"] == 6


def test_without_options_the_shipped_knowledge_is_evaluated_alone(tmp_path, unprofiled):
    results = evaluated(write_measurements(tmp_path, line()))
    assert list(results.hashes) == ["shipped"]
    assert results.evaluated == "as shipped"
    assert set(results.hashes["shipped"]) >= {"fitted.toml"}
    assert {row["label"] for row in results.end_to_end["rows"]} == {"unknown"}
    parts = (results.kernels, results.scaled, results.scaled_clean, results.left_out, results.throughput)
    assert not any(parts)


def test_operator_traces_give_labels_and_pairs(tmp_path, unprofiled):
    (tmp_path / "op_traces").mkdir()
    for gpu in ("T4", "P4"):
        write_op_trace(tmp_path / "op_traces", f"{gpu}--tiny-inf-32-2")
    lines = [line(gpu="T4"), line(gpu="P4", measured_ms=20), line(gpu="L4")]
    results = evaluated(write_measurements(tmp_path, *lines), op_traces=tmp_path / "op_traces")
    labels = {row["gpu"]: row["label"] for row in results.end_to_end["rows"]}
    assert labels == {"T4": "clean", "P4": "noisy", "L4": "unknown"}
    pairs = {(pair.origin, pair.row.gpu.name) for pair in results.scaled}
    assert pairs == {("T4", "P4"), ("P4", "T4"), ("T4", "L4"), ("P4", "L4")}
    # Only one end of each is clean.
    assert results.scaled_clean == []


def test_pairs_are_clean_where_both_ends_are():
    rows = [make_measured("T4"), make_measured("P4"), make_measured("L4")]
    clean = LabelNoise(iteration=0.0, forward=None, backward=None)
    noisy = LabelNoise(iteration=0.2, forward=None, backward=None)
    pairs = [Scaled(origin="T4", row=row, scaled_s=1.0, direct_s=1.0) for row in rows[1:]]
    assert harness._clean(pairs, rows, [clean, clean, noisy]) == pairs[:1]
    assert harness._clean(pairs, rows, [None, clean, clean]) == []


def test_seeds_and_left_out_gpus_are_hashed(tmp_path, unprofiled):
    text = catalog_path("fitted.toml").read_text()
    for name in ("seeds/s1", "seeds/s2", "without/T4/s1"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "fitted.toml").write_text(text)
    results = evaluated(
        write_measurements(tmp_path, line(), line(gpu="P4")),
        knowledge=(tmp_path / "seeds",),
        leave_one_out=tmp_path / "without",
    )
    assert list(results.hashes) == ["s1", "s2", "without T4, s1"]
    assert results.evaluated == "knowledge 's1' and knowledge 's2'"
    assert len({tuple(files.items()) for files in results.hashes.values()}) == 1
    assert results.left_out["T4"]["unseen"]["summary"]["all"]["advisor"]["rows"] == 1


def test_what_is_missing_is_told_before_anything_is_profiled(tmp_path, unprofiled):
    path = write_measurements(tmp_path, line())
    empty = tmp_path / "empty"
    empty.mkdir()
    for part in ("kernels", "op_traces", "third_party", "leave_one_out"):
        with pytest.raises(InputError, match="empty"):
            evaluated(path, **{part: empty})
    with pytest.raises(AdvisorError, match="empty"):
        evaluated(path, knowledge=(empty,))
    with pytest.raises(AdvisorError, match="empty"):
        evaluated(path, unseen_dims=empty)
    assert unprofiled == []


def test_a_truncated_recording_of_kernels_is_an_input_error(tmp_path, unprofiled):
    (tmp_path / "add.csv.gz").write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(InputError, match="cannot read measured kernels"):
        evaluated(write_measurements(tmp_path, line()), kernels=tmp_path)


def test_every_left_out_gpu_is_scored_again_after_a_calibration(tmp_path, unprofiled):
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    lines = [f"T4,train,{0.03 + size * 1e-6},{size},64" for size in range(100, 200)]
    (kernels / "add.csv").write_text("\n".join(["gpu,split,latency_ms,B,H", *lines]))

    (kernels / "add.csv.gz").write_bytes(gzip.compress((kernels / "add.csv").read_bytes()))
    (tmp_path / "without" / "T4").mkdir(parents=True)
    (tmp_path / "without" / "T4" / "fitted.toml").write_text(catalog_path("fitted.toml").read_text())
    results = evaluated(
        write_measurements(tmp_path, line()), kernels=kernels, leave_one_out=tmp_path / "without"
    )
    states = results.left_out["T4"]
    assert states["calibrated"]["summary"] == states["unseen"]["summary"]
    assert [errors.kind for errors in results.kernels] == ["add", "all"]


def test_unseen_dimensions_are_scored_on_what_was_held_out(tmp_path, unprofiled):
    kernels, fold = tmp_path / "kernels", tmp_path / "unseen"
    kernels.mkdir()
    fold.mkdir()
    lines = [
        f"T4,{split},{0.03 + size * 1e-6},{size},64" for size in range(1, 1001) for split in ("train", "test")
    ]
    text = "\n".join(["gpu,split,latency_ms,B,H", *lines])
    (kernels / "add.csv.gz").write_bytes(gzip.compress(text.encode()))
    (fold / "fitted.toml").write_text(catalog_path("fitted.toml").read_text())
    results = evaluated(write_measurements(tmp_path, line()), kernels=kernels, unseen_dims=fold)
    assert list(results.hashes) == ["shipped", "unseen-dims, unseen"]
    assert [(errors.kind, errors.split) for errors in results.unseen_dims] == [
        ("add", "train"),
        ("all", "train"),
    ]
    assert 100 < results.unseen_dims[0].rows < 200
    assert results.to_json()["unseen_dims"][0]["rows"] == results.unseen_dims[0].rows
    assert not evaluated(write_measurements(tmp_path, line()), unseen_dims=fold).unseen_dims


def test_progress_is_lines_where_nobody_watches(capsys):
    tell("one")
    tell("two")
    assert capsys.readouterr().err == "one\ntwo\n"


def test_the_shipped_knowledge_is_read_once():
    assert harness._read({"shipped": catalog_path("fitted.toml").parent})["shipped"] is shipped()
