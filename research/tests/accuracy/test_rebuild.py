"""The weights behind docs/accuracy: listed by their hashes, trained again by one command."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.core.gpus import load_gpus
from benchmarks.accuracy.knowledge_files import check_hashes, group, left_out_groups
from research.accuracy import rebuild as module
from research.accuracy.rebuild import FOLDS, Training, rebuild, trainings

ROOT = Path(__file__).resolve().parents[3]
FILES = ("fitted.toml", "learned.json", "learned.npz")


def text_of(folder: Path, file: str) -> bytes:
    return f"{folder.parent.name} {folder.name} {file}".encode()


@pytest.fixture
def folds(tmp_path: Path) -> Path:
    """Two groups, of which nothing but the lists is there."""
    for name in ("five/seed-0", "five/seed-1", "without/T4"):
        folder = tmp_path / name
        folder.parent.mkdir(exist_ok=True)
        lines = (f"{hashlib.sha256(text_of(folder, f)).hexdigest()}  {folder.name}/{f}\n" for f in FILES)
        with (folder.parent / "SHA256SUMS").open("a") as listed:
            listed.writelines(lines)
    return tmp_path


def train(each: Training) -> None:
    each.out.mkdir()
    for file in FILES:
        (each.out / file).write_bytes(text_of(each.out, file))


def test_the_lists_say_what_is_trained(folds: Path) -> None:
    assert list(trainings(folds)) == [
        Training(fold="five", seed=0, out=folds / "five/seed-0"),
        Training(fold="five", seed=1, out=folds / "five/seed-1"),
        Training(fold="without:T4", seed=0, out=folds / "without/T4"),
    ]


@pytest.mark.parametrize("jobs", [1, 2])
def test_all_that_is_missing_is_trained_and_no_more(folds: Path, jobs: int) -> None:
    train(Training(fold="five", seed=1, out=folds / "five/seed-1"))
    trained: list[str] = []

    def noted(each: Training) -> None:
        trained.append(each.out.name)
        train(each)

    rebuild(noted, folds=folds, jobs=jobs)
    assert sorted(trained) == ["T4", "seed-0"]
    for name in ("five", "without"):
        check_hashes(folds / name)


def test_a_file_that_differs_is_trained_again(folds: Path) -> None:
    rebuild(train, folds=folds)
    (folds / "without/T4/learned.npz").write_bytes(b"damaged")
    again: list[Training] = []
    with pytest.raises(InputError, match=r"T4/learned\.npz"):
        rebuild(again.append, folds=folds)
    assert [each.out.name for each in again] == ["T4"]


def test_a_training_that_gives_other_weights_is_not_taken_for_the_recorded_one(folds: Path) -> None:
    def otherwise(each: Training) -> None:
        train(each)
        (each.out / "learned.npz").write_bytes(b"rounded otherwise")

    with pytest.raises(InputError, match="another torch or processor may round otherwise"):
        rebuild(otherwise, folds=folds)


@pytest.mark.parametrize("read", [group, left_out_groups])
def test_who_needs_missing_weights_learns_how_to_get_them(folds: Path, read) -> None:
    with pytest.raises(InputError, match=r"not committed.*python -m research\.accuracy\.rebuild"):
        read(folds / "without")


def test_the_training_is_called_as_documented(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: calls.append(list(map(str, command))))
    module._run(Training(fold="without:T4", seed=0, out=tmp_path / "T4"), Path("kernels"))
    options = ["--kernels", "kernels", "--fold", "without:T4", "--seed", "0", "--out", str(tmp_path / "T4")]
    assert calls == [[sys.executable, "-m", "research.training", *options]]


def test_the_folds_of_the_documents() -> None:
    by_fold = [(each.fold, each.seed) for each in trainings()]
    left_out = {fold.removeprefix("without:") for fold, _ in by_fold if fold.startswith("without:")}
    assert left_out <= load_gpus().keys()
    assert len(left_out) == 6
    others = {each for each in by_fold if not each[0].startswith("without:")}
    assert others == {("five", 0), ("five", 1), ("five", 2), ("unseen-dims", 0)}


def test_no_weights_but_the_shipped_are_committed() -> None:
    ignored = (ROOT / ".gitignore").read_text().split()
    assert f"{FOLDS.relative_to(ROOT)}/*/*/" in ignored
    listed = subprocess.run(
        ["git", "ls-files", "*.npz"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    # Where this is no checkout of git there is nothing to commit.
    assert listed.returncode or listed.stdout.split() == ["catalogs/learned.npz"]
