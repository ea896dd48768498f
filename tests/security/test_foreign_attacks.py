"""Attacks by testers who had read the promises and not the code; attacks.md lists all eighty.

What runs in the sandbox is in ``probes.py``. It runs once for each user; each probe is a case.
"""

import ctypes
import json
import os
import platform
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from advisor.config.layers import load_config
from advisor.core.errors import AdvisorError, InputError
from advisor.service.revisions import laid_out
from tests.machine import needs
from tests.security.sandboxes import USERS, in_sandbox
from tests.security.test_git import committed, git

PROBES = Path(__file__).with_name("probes.py")
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin")
# Outside these reach something and harm nothing.
HARMLESS = ("overwrites_what_is_shown", "reaches_this_machine", "asks_servers", "shares_memory")
ALL = (
    *HARMLESS, "reads_what_is_closed", "finds_descriptors", "mounts", "makes_namespaces",
    "takes_over_who_holds_it", "calls_by_other_numbers", "calls_that_few_know", "types_at_terminals",
    "makes_sockets", "sees_the_kernel",
)  # fmt: skip
_MEMORY_KEY, _MODE = 0x0AD51508, 0o1666
in_the_sandbox = [
    needs("bubblewrap"),
    pytest.mark.skipif(
        platform.machine() != "x86_64" or not PYTHON, reason="for x86_64 and a system's Python"
    ),
]


# --- Scripts in the sandbox ------------------------------------------------------------------------


@contextmanager
def a_machine(folder: Path) -> Iterator[dict[str, Any]]:
    """A project with servers and pipes of odd names, a port, and shared memory; all open to everybody."""
    project = folder / "project"
    (project / "unlisted").mkdir(parents=True)
    script = project / "train.py"
    script.touch()
    with ExitStack() as stack:
        kinds = {
            "stream": socket.SOCK_STREAM,
            "datagram": socket.SOCK_DGRAM,
            "packets": socket.SOCK_SEQPACKET,
        }
        odd = ("-with\nline", "\udcff bytes", " blank ", "unlisted/server", "form\x0cfeed")
        servers = {name: kinds.get(name, socket.SOCK_STREAM) for name in (*kinds, *odd)}
        for name, kind in servers.items():
            server = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            server.bind(os.fspath(project / name))
            if kind != socket.SOCK_DGRAM:
                server.listen()
        os.mkfifo(project / "pipe")
        for path in (project, *project.rglob("*")):
            path.chmod(0o777)
        (project / "unlisted").chmod(0o311)
        libc = ctypes.CDLL(None)
        memory = libc.shmget(_MEMORY_KEY, 4096, _MODE)
        stack.callback(libc.shmctl, memory, 0, None)
        port = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        yield {
            "script": str(script), "job": str(folder / "job"), "port": port, "memory_id": memory,
            "servers": [str(project / name) for name in servers], "pipes": [str(project / "pipe")],
            "memory_key": _MEMORY_KEY,
        }  # fmt: skip


@pytest.fixture(scope="module")
def reached():
    """What each probe reached: outside, and in the sandbox of each user."""
    with (
        tempfile.TemporaryDirectory(prefix="advisor-attack-") as name,
        pytest.MonkeyPatch.context() as patch,
        a_machine(Path(name).resolve()) as facts,
    ):
        folder = Path(name).resolve()
        folder.chmod(0o777)
        patch.setenv("HOME", "/nonexistent")
        patch.chdir(folder / "project")
        command = [str(PYTHON), "-I", "-c", PROBES.read_text(), json.dumps(facts)]
        answers = {}
        for user in USERS:
            done = in_sandbox([*command, *ALL], folder / "job", user=user)
            answers[user] = json.loads(done.stdout or json.dumps({"": done.stderr}))
        outside = subprocess.run([*command, *HARMLESS], capture_output=True, text=True, check=True)
        yield answers | {"outside": json.loads(outside.stdout)}


@pytest.mark.parametrize("probe", ALL)
@pytest.mark.parametrize("user", USERS)
@pytest.mark.usefixtures("reached")
class TestSandbox:
    """As root, whose script stays root here, and as an ordinary user."""

    pytestmark = in_the_sandbox

    def test_nothing_is_reached(self, probe, user, reached):
        assert reached[user][probe] == ""


@pytest.mark.parametrize("probe", HARMLESS)
def test_outside_the_same_is_reached(probe, reached):
    assert reached["outside"][probe] not in ("", "could not be tried")


test_outside_the_same_is_reached.pytestmark += in_the_sandbox  # type: ignore[attr-defined]


# --- Revisions that a repository makes up ----------------------------------------------------------


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(committed(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git: apt install git")
@pytest.mark.parametrize(
    "text",
    [
        "--output=/tmp/x:train.py", "-cx=y:train.py", "--upload-pack=x:train.py", "old^{tree}:train.py",
        "old:../../etc/passwd", "old:/etc/passwd", "old:./../../../etc/passwd", "old:.git/config", "old:",
        "old:\x1b[2J\ud800", "\x1b[2J:train.py", "old..HEAD:train.py", "^old:train.py", "old\n:train.py",
        "*:train.py",
    ],
)  # fmt: skip
def test_a_revision_is_no_option_and_no_path_outside(repository, text):
    with pytest.raises(InputError), laid_out(text):
        pass
    assert not Path("/tmp/x").exists()  # noqa: S108


ODD_TREES = {
    "parent": (b"100644", b".."), "itself": (b"100644", b"."), "absolute": (b"100644", b"/tmp/x"),
    "git in capitals": (b"100644", b".GIT"), "no name": (b"100644", b""), "long": (b"100644", b"a" * 5000),
    "submodule": (b"160000", b"train.py"), "folder that is a file": (b"40000", b"train.py"),
    "link outside": (b"120000", b"train.py"), "unknown mode": (b"777777", b"train.py"),
}  # fmt: skip


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git: apt install git")
@pytest.mark.parametrize("mode_and_name", ODD_TREES.values(), ids=ODD_TREES)
def test_a_made_up_tree_is_one_line(repository, mode_and_name):
    blob = git(repository, "hash-object", "-w", "--stdin", content=b"/etc/passwd")
    tree = b"%s %s\0%s" % (*mode_and_name, bytes.fromhex(blob))
    name = git(repository, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", content=tree)
    head = git(repository, "commit-tree", name, "-m", "odd")
    with pytest.raises(InputError), laid_out(f"{head}:train.py"):
        pass


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git: apt install git")
def test_grafts_do_not_change_what_a_revision_is(repository):
    for name in ("new", "evil"):
        (repository / "train.py").write_text(name)
        git(repository, "commit", "-qam", name)
    evil = git(repository, "rev-parse", "HEAD")
    git(repository, "reset", "-q", "--hard", "HEAD~1")
    new = git(repository, "rev-parse", "HEAD")
    (repository / ".git/info").mkdir(exist_ok=True)
    (repository / ".git/info/grafts").write_text(f"{new} {evil}\n")
    with laid_out("HEAD~1:train.py") as version:
        assert version.path.read_text() == "print('old')"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git: apt install git")
def test_attributes_change_no_file(repository):
    written = "$Id$ $Format:%H$\n"
    (repository / ".gitattributes").write_text(
        "*.py working-tree-encoding=UTF-16 ident eol=crlf export-subst text\n"
    )
    (repository / "train.py").write_text(written)
    blob = git(repository, "hash-object", "-w", "--no-filters", "train.py")
    git(repository, "update-index", "--cacheinfo", f"100644,{blob},train.py")
    git(repository, "commit", "-qm", "attributes")
    with laid_out("HEAD:train.py") as version:
        assert version.path.read_text() == written


# --- Settings of a project -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"x: !!python/object/apply:os.system ['true']\n",
        b"a: &a {sandbox: false}\nprofile: {<<: *a}\n",
        b"<<: {profile: {sandbox: false}}\n",
        b"Profile: {sandbox: false}\n",
        b"profile: {Sandbox: false}\n",
        "\uff50rofile: {sandbox: false}\n".encode(),
        b"profile: {sandbox: null}\n",
        "profile: {sandbox: false}\n".encode("utf-16"),
        b"profile:\0 {sandbox: false}\n",
        b"profile: {arguments: ['--x=/home/u/.aws/']}\n",
        b"args: ['/etc/']\n",
        b"profile: {timeout: 100d}\n",
        b"clusters:\n" + b"".join(b"  c%d: {}\n" % number for number in range(4000)),
    ],
)
def test_a_projects_settings_are_refused(text, tmp_path):
    (tmp_path / ".advisor.yaml").write_bytes(text)
    with pytest.raises(AdvisorError):
        load_config(environ={}, cwd=tmp_path)


@pytest.mark.parametrize("text", [b"profile.sandbox: false\n", b"\xef\xbb\xbfprofile: {sandbox: false}\n"])
def test_no_spelling_switches_the_sandbox_off(text, tmp_path, monkeypatch):
    user = tmp_path / "config/advisor/config.yaml"
    user.parent.mkdir(parents=True)
    user.write_text("profile: {sandbox: true}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / ".advisor.yaml").write_bytes(text)
    config = load_config(environ={}, cwd=tmp_path)
    assert config.settings.profile.sandbox
    assert [refused.setting for refused in config.refused] == ["profile.sandbox"]


@pytest.mark.parametrize(
    "name",
    [".advisor.yml", "advisor.yaml", ".advisor.json", ".advisor/config.yaml", ".env", "pyproject.toml"],
)
def test_no_other_file_holds_settings(name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "ADVISOR_STORE__URL=x\n[tool.advisor.store]\nurl='x'\n" if name != "advisor.yaml" else "a: b: c"
    )
    assert load_config(environ={}, cwd=tmp_path).project is None
