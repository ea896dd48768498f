"""The command line of the training: what it writes, and one line where something is missing."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from advisor.core.gpus import resolve_gpu
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import read_knowledge, shipped
from advisor.predict.learned import learned_times
from tests.builders import make_gpu
from tests.recordings import make_measurement, write_recording
from tests.unit.predict.learned.values import EXACT, EXAMPLES

torch = pytest.importorskip("torch")
pd = pytest.importorskip("pandas")
from research.training import __main__ as command  # noqa: E402 - it needs torch
from research.training.fit import fit  # noqa: E402
from research.training.neusight import KINDS, read_kernels  # noqa: E402 - it needs pandas

pytestmark = pytest.mark.torch
Main = Callable[..., None]
GPUS = ("Tesla T4", "NVIDIA A100-PCIE-40GB")


def write_kernels(folder: Path) -> Path:
    """A few rows of four kinds, as NeuSight's files have them."""
    folder.mkdir()
    sizes = [64, 128, 256, 512, 1024, 2048]
    rows = [(gpu, split, b) for gpu in GPUS for split in ("train", "test") for b in sizes]
    base = pd.DataFrame(rows, columns=["gpu", "split", "B"])
    base["latency_ms"] = 0.03 + 1e-4 * base.B
    convolution = {
        "in_channels": 16, "out_channels": 32, "kernel_size": 3, "input_size": 14, "stride": 1, "padding": 1,
    }  # fmt: skip
    base.assign(H=512).to_csv(folder / "add.csv.gz", index=False)
    base.assign(H=512).to_csv(folder / "softmax.csv.gz", index=False)
    base.assign(M=base.B, N=96, K=80).to_csv(folder / "linear.csv.gz", index=False)
    base.assign(**convolution).to_csv(folder / "conv.csv.gz", index=False)
    return folder


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_kernels(tmp_path_factory.mktemp("measured") / "kernels")


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Main:
    """The command with a few steps for each family."""
    monkeypatch.setattr(command, "fit", lambda table, **knobs: fit(table, **{**knobs, "steps": 3}))

    def run(*arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", ["training", *map(str, arguments)])
        command.main()

    return run


@pytest.fixture
def refused(main: Main, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*arguments: object) -> str:
        with pytest.raises(SystemExit) as caught:
            main(*arguments)
        assert caught.value.code == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    return run


def test_a_missing_folder_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    arguments = ["--kernels", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]
    answer = subprocess.run(
        [sys.executable, "-m", "research.training", *arguments],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert answer.returncode == 2
    assert answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    assert line.startswith(f"no measured kernels in {str(tmp_path / 'nowhere')!r}")
    assert not (tmp_path / "out").exists()


def test_an_unknown_fold_is_one_line(kernels: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    line = refused("--kernels", kernels, "--out", tmp_path / "out", "--fold", "six")
    assert "unknown fold 'six'" in line
    assert not (tmp_path / "out").exists()


def test_a_missing_recording_is_one_line(kernels: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    line = refused("--kernels", kernels, "--out", tmp_path / "out", "--recording", tmp_path / "no.jsonl")
    assert "no recording at" in line


def test_a_recording_of_a_cpu_is_one_line(kernels: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    path = write_recording(tmp_path / "cpu.jsonl", [make_measurement()], backend="cpu", gpu=None)
    assert "not of a GPU" in refused("--kernels", kernels, "--out", tmp_path / "out", "--recording", path)


def test_a_training_writes_what_predictions_read(kernels: Path, tmp_path: Path, main: Main) -> None:
    out = tmp_path / "deep" / "out"
    main("--kernels", kernels, "--out", out)
    assert sorted(path.name for path in out.iterdir()) == ["fitted.toml", "learned.json", "learned.npz"]
    knowledge = read_knowledge(out)
    assert knowledge.networks.keys() == EXAMPLES.keys()
    facts = json.loads((out / "learned.json").read_text())
    assert (facts["fold"], facts["seed"]) == ("all", 0)
    assert sum(facts["rows"].values()) == 4 * 12
    assert "recordings" not in facts["source"]
    assert facts["rows"]["T4 add train"] == 6
    assert facts["parameters"].keys() == EXAMPLES.keys()


def test_one_network_alone_leaves_the_others_as_they_ship(kernels: Path, tmp_path: Path, main: Main) -> None:
    for name, arguments in (("all", ()), ("one", ("--network", "norm"))):
        main("--kernels", kernels, "--out", tmp_path / name, *arguments)
    every, one = (read_knowledge(tmp_path / name).networks for name in ("all", "one"))
    for name, network in shipped().networks.items():
        expected = every[name] if name == "norm" else network
        assert all((a == b).all() for a, b in zip(one[name].weights, expected.weights, strict=True))


def test_the_same_seed_writes_the_same_bytes(kernels: Path, tmp_path: Path, main: Main) -> None:
    for name, seed in (("first", 3), ("second", 3), ("other", 4)):
        main("--kernels", kernels, "--out", tmp_path / name, "--seed", seed)
    first, second, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("first", "second", "other")
    )
    assert first == second
    assert first["learned.npz"] != other["learned.npz"]
    assert first["fitted.toml"] == other["fitted.toml"]


def test_a_gpu_that_is_left_out_is_in_nothing_that_is_written(
    kernels: Path, tmp_path: Path, main: Main
) -> None:
    main("--kernels", kernels, "--out", tmp_path / "out", "--fold", "without:T4")
    facts = json.loads((tmp_path / "out" / "learned.json").read_text())
    assert {row.partition(" ")[0] for row in facts["rows"]} == {"A100-PCIE-40GB"}
    assert not any(row.endswith(" test") for row in facts["rows"])
    assert "T4" not in read_knowledge(tmp_path / "out").tables.get("gpu", {})


def test_recordings_are_learned_from_too(kernels: Path, tmp_path: Path, main: Main) -> None:
    recording = write_recording(tmp_path / "l4.jsonl", [make_measurement("aten::add", time_s=1e-3)])
    main("--kernels", kernels, "--out", tmp_path / "out", "--recording", recording)
    facts = json.loads((tmp_path / "out" / "learned.json").read_text())
    assert facts["rows"]["L4 recorded add train"] == 1
    assert facts["source"].endswith(" and recordings of L4")
    knowledge = read_knowledge(tmp_path / "out")
    assert constants_for(resolve_gpu("L4"), knowledge).is_measured
    assert not constants_for(resolve_gpu("L40S"), knowledge).is_measured


def test_kernels_are_calls_as_a_profile_has_them(kernels: Path) -> None:
    samples = read_kernels(kernels)
    assert set(samples.kinds.tolist()) == {"add", "softmax", "linear", "conv"}
    assert set(samples.gpus.tolist()) == {"T4", "A100-PCIE-40GB"}
    calls = dict(zip(samples.kinds.tolist(), samples.ops, strict=True))
    assert (calls["linear"].name, calls["linear"].flops) == ("aten::addmm", 2 * 2048 * 96 * 80)
    assert calls["conv"].flops == 2 * 2048 * 32 * 14**2 * 16 * 9
    assert calls["add"].bytes == 3 * 4 * 2048 * 512
    assert samples.time_s.min() == pytest.approx(1e-3 * (0.03 + 1e-4 * 64))
    assert len({id(op) for op in samples.ops}) == 4 * 6  # equal calls share one value


def test_the_column_n_of_a_product_is_its_inner_size(tmp_path: Path) -> None:
    sizes = {"B": 7, "M": 5, "N": 3, "K": 2}
    row = pd.DataFrame({"gpu": ["T4"], "split": ["train"], "latency_ms": [1.0], **sizes})
    for kind in ("linear", "bmm"):
        row.to_csv(tmp_path / f"{kind}.csv.gz", index=False)
    linear, batched = read_kernels(tmp_path).ops
    assert [tensor.shape for tensor in (*linear.inputs, *linear.outputs)] == [(2,), (5, 3), (3, 2), (5, 2)]
    shapes = [tensor.shape for tensor in (*batched.inputs, *batched.outputs)]
    assert shapes == [(7, 5, 3), (7, 3, 2), (7, 5, 2)]
    assert (linear.flops, batched.flops) == (2 * 5 * 3 * 2, 7 * 2 * 5 * 3 * 2)


def test_one_kind_may_be_read_alone(kernels: Path) -> None:
    assert set(read_kernels(kernels, ["add", "bmm"]).kinds.tolist()) == {"add"}
    with pytest.raises(FileNotFoundError, match="no measured kernels"):
        read_kernels(kernels, ["bmm"])
    assert {"add", "softmax", "linear", "conv"} < set(KINDS)


def test_trained_times_are_positive_on_boards_that_were_never_seen(
    kernels: Path, tmp_path: Path, main: Main
) -> None:
    main("--kernels", kernels, "--out", tmp_path / "out")
    knowledge = read_knowledge(tmp_path / "out")
    tables = {"gpu": {}} | dict(knowledge.tables)
    knowledge = type(knowledge)(tables=tables, networks=knowledge.networks)
    gpu = make_gpu(compute_capability="12.0", tdp_w=1200.0)
    times = learned_times(tuple(EXAMPLES.values()), gpu, constants_for(gpu, knowledge), EXACT, knowledge)
    assert np.isfinite(times.time_s).all()
    assert (times.time_s > 0).all()


def test_a_file_in_place_of_the_folder_is_refused_before_the_training(
    kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    (tmp_path / "out").write_text("x")
    monkeypatch.setattr(command, "train", lambda *_: {})
    assert "out" in refused("--kernels", kernels, "--out", tmp_path / "out")


@pytest.mark.parametrize(
    "payload",
    [b"", gzip.compress(b"gpu,split\nT4,train\n", mtime=0), b"\x1f\x8bno"],
    ids=["empty", "columns", "gzip"],
)
def test_broken_kernels_are_one_line(
    kernels: Path, tmp_path: Path, payload: bytes, refused: Callable[..., str]
) -> None:
    (tmp_path / "add.csv.gz").write_bytes(payload)
    assert "add.csv.gz" in refused("--kernels", tmp_path, "--out", tmp_path / "out")


def test_constants_of_a_small_training_can_be_used(kernels: Path, tmp_path: Path, main: Main) -> None:
    main("--kernels", kernels, "--out", tmp_path / "out")
    assert constants_for(make_gpu(), read_knowledge(tmp_path / "out")).measured == frozenset()
