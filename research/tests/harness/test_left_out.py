"""A GPU left out: which kernels a calibration measures, which files are used, and what is scored."""

import hashlib

import numpy as np
import pytest

from advisor.core.errors import InputError, UnknownGpuError
from advisor.predict.knowledge import read_knowledge, shipped
from benchmarks.accuracy.knowledge_files import by_name, check_hashes, group, hashes, left_out_groups
from benchmarks.accuracy.left_out import MeasuredKernels, drawn, leave_one_out
from research.tests.harness.builders import make_measured, make_samples, make_workload
from research.training.samples import Samples
from tests.builders import make_trace

SIZES = np.arange(1, 101) * 1000


def kernels_of(kinds, gpu="T4", split="train"):
    return Samples.joined(
        [make_samples(SIZES, SIZES * 1e-9, gpu=gpu, kind=kind, split=split) for kind in kinds]
    )


def counted(samples):
    kinds, counts = np.unique(samples.kinds, return_counts=True)
    return dict(zip(kinds.tolist(), counts.tolist(), strict=True))


def test_twenty_kernels_are_drawn_of_the_larger_half_and_of_this_gpu():
    samples = Samples.joined(
        [kernels_of(["linear", "add", "softmax", "conv"]), kernels_of(["linear"], gpu="P4"),
         kernels_of(["add"], split="test")]
    )  # fmt: skip
    sample = drawn(samples, "T4")
    assert counted(sample) == {"linear": 8, "add": 6, "softmax": 6}
    assert set(sample.gpus) == {"T4"}
    assert set(sample.splits) == {"train"}
    assert min(op.flops for op in sample.ops) >= np.median(SIZES)


def test_the_draw_is_always_the_same():
    samples = kernels_of(["bmm", "gelu", "ln"])
    assert drawn(samples, "T4").time_s.tolist() == drawn(samples, "T4").time_s.tolist()


def test_convolutions_fill_up_and_a_kind_without_training_rows_is_taken_from_the_rest():
    assert counted(drawn(kernels_of(["linear", "conv"]), "T4")) == {"linear": 8, "conv": 4}
    assert counted(drawn(kernels_of(["linear"], split="test"), "T4")) == {"linear": 8}
    assert counted(drawn(kernels_of(["linear"], gpu="P4"), "T4")) == {}


def knowledge_folder(path, text="[gpu]\n"):
    path.mkdir(parents=True)
    (path / "fitted.toml").write_text(text)
    return path


def test_a_folder_is_one_knowledge_or_its_seeds(tmp_path):
    single = knowledge_folder(tmp_path / "single")
    assert group(single) == [single]
    seeds = [knowledge_folder(tmp_path / "many" / name) for name in ("s1", "s2")]
    assert group(tmp_path / "many") == seeds
    assert list(by_name(seeds)) == ["s1", "s2"]
    assert list(by_name([single, single / ".." / "single"])) == [str(single), str(single / ".." / "single")]


def test_left_out_gpus_are_named_by_folders(tmp_path):
    knowledge_folder(tmp_path / "T4")
    knowledge_folder(tmp_path / "Tesla V100-PCIE-32GB" / "s1")
    groups = left_out_groups(tmp_path)
    assert {gpu: list(seeds) for gpu, seeds in groups.items()} == {"T4": ["T4"], "V100-PCIE-32GB": ["s1"]}
    knowledge_folder(tmp_path / "B9000")
    with pytest.raises(UnknownGpuError, match="B9000"):
        left_out_groups(tmp_path)


def test_no_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no folder named by a GPU"):
        left_out_groups(tmp_path)


def test_hashes_are_those_of_sha256sum(tmp_path):
    folder = knowledge_folder(tmp_path / "T4", "x = 1\n")
    digest = hashlib.sha256(b"x = 1\n").hexdigest()
    assert hashes(folder) == {"fitted.toml": digest}
    (tmp_path / "SHA256SUMS").write_text(f"{digest}  T4/fitted.toml\n")
    check_hashes(tmp_path)
    assert list(left_out_groups(tmp_path)) == ["T4"]


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ("0" * 64 + "  T4/fitted.toml\n", "T4/fitted.toml"),
        ("00  none.npz\n", "none.npz"),
        ("garbage\n", "sha256sum"),
    ],
)
def test_other_files_than_listed_are_refused(tmp_path, listed, words):
    knowledge_folder(tmp_path / "T4")
    (tmp_path / "SHA256SUMS").write_text(listed)
    with pytest.raises(InputError, match=words):
        left_out_groups(tmp_path)


@pytest.fixture
def scene():
    row = make_measured(measured_s=1.0)
    samples = kernels_of(["linear", "add", "softmax"])
    floors_s = dict.fromkeys([("T4", kind) for kind in ("linear", "add", "softmax")], 0.0)
    kernels = MeasuredKernels(samples=samples, floors_s=floors_s)
    return [row, make_measured("P4")], {make_workload(): make_trace()}, kernels


def test_only_rows_and_kernels_of_the_gpu_are_scored(scene):
    rows, traces, kernels = scene
    left_out = leave_one_out({"T4": {"s1": shipped()}}, rows, traces, [None, None], kernels)
    assert list(left_out["T4"]) == ["unseen"]
    assert [row["gpu"] for row in left_out["T4"]["unseen"]["rows"]] == ["T4"]
    assert {errors["gpu"] for errors in left_out["T4"]["unseen"]["kernels"]} == {"T4"}


def test_a_gpu_without_rows_and_without_kernels_is_empty(scene):
    rows, traces, _ = scene
    left_out = leave_one_out({"L4": {"s1": shipped()}}, rows, traces, [None, None], None)
    assert left_out["L4"]["unseen"] == {"rows": [], "summary": {}, "kernels": []}


def test_a_calibration_gets_twenty_kernels_of_the_gpu(scene, tmp_path):
    rows, traces, kernels = scene
    calls = []
    other = read_knowledge(shipped_folder())

    def calibrate(knowledge, gpu, samples, floors_s):
        calls.append((knowledge, gpu.name, len(samples.ops)))
        return other

    left_out = leave_one_out(
        {"T4": {"s1": shipped(), "s2": shipped()}}, rows, traces, [None, None], kernels, calibrate
    )
    assert calls == [(shipped(), "T4", 20)] * 2
    assert list(left_out["T4"]) == ["unseen", "calibrated"]
    assert {row["knowledge"] for row in left_out["T4"]["calibrated"]["rows"]} == {"s1", "s2"}


def shipped_folder():
    from advisor.core.gpus import catalog_path

    return catalog_path("fitted.toml").parent
