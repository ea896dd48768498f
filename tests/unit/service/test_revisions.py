"""``REVISION:PATH``: laid out whole, gone afterwards, and no hook runs."""

import subprocess
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.service.revisions import laid_out


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """``old`` has a script and a module beside it; the working tree differs."""

    def git(*arguments):
        names = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *names, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("import layers")
    (tmp_path / "src" / "layers.py").write_text("WIDTH = 1")
    git("add", ".")
    git("commit", "-qm", "old")
    git("tag", "old")
    (tmp_path / "src" / "layers.py").write_text("WIDTH = 2")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_revision_has_all_its_files(repository):
    with laid_out("old:src/train.py") as path:
        assert path.read_text() == "import layers"
        assert (path.parent / "layers.py").read_text() == "WIDTH = 1"
    assert not path.exists()
    assert (repository / "src" / "layers.py").read_text() == "WIDTH = 2"


def test_from_a_folder_below_the_path_is_from_the_root(repository, monkeypatch):
    monkeypatch.chdir(repository / "src")
    with laid_out("old:src/train.py") as path:
        assert path.exists()


def test_no_hook_runs(repository):
    for name in ("post-checkout", "post-index-change", "fsmonitor-watchman"):
        hook = repository / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
        hook.chmod(0o755)
    config = repository / ".git" / "config"
    config.write_text(
        f"{config.read_text()}\n[core]\nfsmonitor = {repository}/.git/hooks/fsmonitor-watchman\n"
    )
    with laid_out("old:src/train.py"):
        pass
    assert not (repository / "ran").exists()


def test_a_file_of_such_a_name_comes_first(repository):
    Path("old:src").mkdir()
    Path("old:src/train.py").write_text("here")
    with laid_out("old:src/train.py") as path:
        assert path.read_text() == "here"


@pytest.mark.parametrize("text", ["train.py", "no/such.json.gz", ":train.py"])
def test_what_is_no_revision_is_a_path(tmp_path, text):
    with laid_out(text) as path:
        assert path == Path(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope:src/train.py", "'nope' is no revision of a git repository here"),
        ("--output=x:src/train.py", "is no revision"),
        ("old:train.py", "has no file 'train.py'"),
        ("old:", "has no file ''"),
        ("old:../../etc/passwd", "has no file"),
    ],
)
def test_what_is_not_there_is_said(repository, text, message):
    with pytest.raises(InputError) as raised, laid_out(text):
        pass
    assert message in str(raised.value)


def test_without_a_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(InputError, match="no revision of a git repository here"), laid_out("main:train.py"):
        pass


def test_without_git(repository, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="git is not installed"), laid_out("old:src/train.py"):
        pass
