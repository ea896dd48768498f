"""``REVISION:PATH``: laid out whole, gone afterwards, and no hook runs."""

import subprocess
import tracemalloc
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.core.gpus import resolve_gpu
from advisor.predict.exchange.data_parallel import COMMUNICATION
from advisor.predict.iteration import predict
from advisor.predict.step_time import OTHERS
from advisor.service import revisions
from advisor.service.recommend.comparing import _parts
from advisor.service.revisions import ScriptOrTrace, laid_out
from tests.builders import make_trace
from tests.programs import write_program
from tests.recommendations import make_option

NAMES = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


def git(repository, *arguments, content=b""):
    command = ["git", *NAMES, *arguments]
    done = subprocess.run(command, cwd=repository, input=content, check=True, capture_output=True)
    return done.stdout.decode().strip()


def commit(repository, *, tag):
    for arguments in (("add", "."), ("commit", "-qm", tag), ("tag", tag)):
        git(repository, *arguments)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """``old`` has a script and a module beside it; the working tree differs."""
    git(tmp_path, "init", "-q")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("import layers")
    (tmp_path / "src" / "layers.py").write_text("WIDTH = 1")
    commit(tmp_path, tag="old")
    (tmp_path / "src" / "layers.py").write_text("WIDTH = 2")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_revision_has_all_its_files(repository):
    with laid_out("old:src/train.py") as version:
        assert version.path.read_text() == "import layers"
        assert (version.path.parent / "layers.py").read_text() == "WIDTH = 1"
    assert not version.path.exists()
    assert (repository / "src" / "layers.py").read_text() == "WIDTH = 2"


def test_the_path_is_from_the_root_or_begins_with_a_dot_and_the_script_runs_in_the_same_folder(
    repository, monkeypatch
):
    monkeypatch.chdir(repository / "src")
    for text in ("old:src/train.py", "old:./train.py", "old:../src/train.py"):
        with laid_out(text) as version:
            assert version.path.read_text() == "import layers"
            assert (version.folder / "layers.py").read_text() == "WIDTH = 1"


def test_attributes_and_filters_change_nothing(repository):
    """Files kept out of archives are laid out, and no program of the configuration runs."""
    ran = repository.parent / f"{repository.name}-ran"
    (repository / ".gitattributes").write_text("src/layers.py export-ignore\n*.py filter=evil\n")
    commit(repository, tag="filtered")
    git(repository, "config", "filter.evil.smudge", f"touch {ran}; cat")
    with laid_out("filtered:src/train.py") as version:
        assert (version.path.parent / "layers.py").read_text() == "WIDTH = 2"
    assert not ran.exists()


def test_names_modes_and_links_are_kept(repository):
    (repository / "a name\nof two lines.py").write_bytes(b"\0\xff")
    write_program(repository / "run.sh", "#!/bin/sh")
    (repository / "data").symlink_to("/nowhere/data")
    (repository / "loop.py").symlink_to("loop.py")
    (repository / "shell").symlink_to("/bin/sh")
    commit(repository, tag="odd")
    with laid_out("odd:a name\nof two lines.py") as version:
        assert version.path.read_bytes() == b"\0\xff"
        assert (version.folder / "run.sh").stat().st_mode & 0o111
        assert (version.folder / "data").readlink() == Path("/nowhere/data")
    for outside in ("odd:loop.py", "odd:shell"):
        with pytest.raises(InputError, match="has no file"), laid_out(outside):
            pass


def test_a_tree_cannot_name_a_file_outside(repository):
    """As only a hostile repository has it."""
    head = tree_with(repository, (b"40000", b"..", [(b"100644", b"out.py", b"evil")]))
    with (
        pytest.raises(InputError, match=r"names a file '../out.py', which lies outside"),
        laid_out(f"{head}:x"),
    ):
        pass


def tree_with(repository, *entries):
    """A commit whose tree git itself would not make.

    Args:
        repository: where.
        entries: mode, name and contents, or the entries of a folder.
    """

    def write(kind, content):
        return git(repository, "hash-object", "-t", kind, "-w", "--stdin", "--literally", content=content)

    def tree(entries):
        raw = b""
        for mode, name, content in entries:
            kept = write("blob", content) if isinstance(content, bytes) else tree(content)
            raw += b"%s %s\0" % (mode, name) + bytes.fromhex(kept)
        return write("tree", raw)

    return git(repository, "commit-tree", "-m", "evil", tree(entries))


def test_a_link_with_a_zero_byte(repository):
    """Was a traceback."""
    head = tree_with(repository, (b"120000", b"data", b"a\0b"), (b"100644", b"train.py", b""))
    with pytest.raises(InputError, match="link 'data' of the revision"), laid_out(f"{head}:train.py"):
        pass


def test_nothing_is_written_through_a_link(repository, tmp_path_factory):
    """A link and a folder of one name: the link in the folder was made where the first one leads."""
    outside = tmp_path_factory.mktemp("outside")
    below = [(b"120000", b"b", b"/bin/sh")]
    link = (b"120000", b"a", str(outside).encode())
    head = tree_with(repository, link, (b"40000", b"a", below))
    with pytest.raises(InputError, match="lies outside"), laid_out(f"{head}:x"):
        pass
    assert not list(outside.iterdir())


def test_a_repository_within_a_revision(repository):
    head = tree_with(repository, (b"40000", b".GIT", [(b"100644", b"config", b"")]))
    with pytest.raises(InputError, match="do not use this repository"), laid_out(f"{head}:x"):
        pass


def test_a_working_folder_that_is_a_link_of_the_revision(repository, tmp_path_factory, monkeypatch):
    outside = tmp_path_factory.mktemp("outside")
    head = tree_with(repository, (b"120000", b"src", str(outside).encode()), (b"100644", b"x.py", b""))
    monkeypatch.chdir(repository / "src")
    with laid_out(f"{head}:x.py") as version:
        assert version.folder == version.path.parent


@pytest.mark.parametrize("limit", ["_MOST_BYTES", "_MOST_LISTED_BYTES"])
def test_a_revision_without_end_is_refused(repository, monkeypatch, limit):
    monkeypatch.setattr(revisions, limit, 10)
    with pytest.raises(InputError, match="holds more than is laid out"), laid_out("old:src/train.py"):
        pass


def test_a_file_that_unpacks_to_a_hundred_times_its_size_takes_no_memory(repository, monkeypatch):
    """Was: held in memory as a whole, of the 4 GiB that a revision may hold."""
    monkeypatch.setattr(revisions, "_MOST_LISTED_BYTES", 2**18)
    size_bytes = 100 * 2**18
    head = tree_with(repository, (b"100644", b"x.py", b""), (b"100644", b"zeros", bytes(size_bytes)))
    tracemalloc.start()
    try:
        with laid_out(f"{head}:x.py") as version:
            assert (version.folder / "zeros").stat().st_size == size_bytes
        assert tracemalloc.get_traced_memory()[1] < size_bytes / 10
    finally:
        tracemalloc.stop()


def test_a_link_of_a_megabyte_is_none(repository):
    head = tree_with(repository, (b"100644", b"x.py", b""), (b"120000", b"link", b"a" * 2**20))
    with pytest.raises(InputError, match="leads to no path"), laid_out(f"{head}:x.py"):
        pass


def test_contents_that_were_never_fetched(repository):
    name = git(repository, "rev-parse", "old:src/layers.py")
    (repository / ".git" / "objects" / name[:2] / name[2:]).unlink()
    with pytest.raises(InputError, match="fetch them"), laid_out("old:src/train.py"):
        pass


def clone(repository, kind, *arguments):
    folder = repository.parent / f"{repository.name}-{kind}"
    git(repository, "clone", "-q", *arguments, f"file://{repository}", str(folder))
    return folder


def test_a_bare_repository_has_to_be_named(repository, monkeypatch):
    """One in a subfolder of a clone has a configuration that its writer chose."""
    monkeypatch.chdir(clone(repository, "bare", "--bare"))
    with pytest.raises(InputError, match=r"bare repository.*GIT_DIR=\."), laid_out("HEAD:src/train.py"):
        pass
    monkeypatch.setenv("GIT_DIR", ".")
    with laid_out("HEAD:src/train.py") as version:
        assert version.path.read_text() == "import layers"


def test_a_shallow_repository(repository, monkeypatch):
    commit(repository, tag="new")
    monkeypatch.chdir(clone(repository, "shallow", "--depth", "1"))
    with laid_out("HEAD:src/train.py") as version:
        assert version.path.read_text() == "import layers"
    with pytest.raises(InputError, match="'HEAD~1' is no revision"), laid_out("HEAD~1:src/train.py"):
        pass


def test_no_hook_runs(repository):
    for name in ("post-checkout", "post-index-change", "fsmonitor-watchman"):
        write_program(repository / ".git/hooks" / name, f"touch {repository}/ran")
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
    with laid_out("old:src/train.py") as version:
        assert version.path.read_text() == "here"


@pytest.mark.parametrize("text", ["train.py", "sub/t.json.gz", ":train.py"])
def test_what_is_no_revision_is_a_path(tmp_path, text, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    Path(text).touch()
    with laid_out(text) as version:
        assert version == ScriptOrTrace(path=Path(text), folder=Path.cwd())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("old", "there is no file 'old'. Give a script, a trace, or REVISION:PATH such as main:train.py."),
        (":src/train.py", "there is no file ':src/train.py'. Give a script"),
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


def test_without_a_repository_and_without_git(repository, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("none"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(Path.cwd().parent))
    with pytest.raises(InputError, match="no revision of a git repository here"), laid_out("main:train.py"):
        pass
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="git is not installed"), laid_out("old:src/train.py"):
        pass


def test_git_that_never_ends_is_stopped(repository, monkeypatch):
    opened = revisions.Repository()
    monkeypatch.setattr(revisions, "_GIT", ("tail",))
    monkeypatch.setattr(revisions, "_SETTINGS", ())
    monkeypatch.setattr(revisions, "_LIMIT_S", 0.01)
    with (
        pytest.raises(InputError, match=r"took more than 0.01 s"),
        opened.reading("-f", "/dev/null") as (process, answer),
    ):
        assert not answer.read(1)
    assert process.returncode


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
