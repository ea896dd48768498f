"""``advisor diff REVISION:FILE`` in a hostile repository: git reads, and runs and fetches nothing.

Each attack leaves a marker where it works. Those of `PLAIN_GIT` did with the version before.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from advisor.core.errors import InputError
from advisor.service.revisions import laid_out
from tests.programs import write_program

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git: apt install git")


def git(folder, *arguments, content=None):
    names = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "tag.gpgsign=false",
    )
    done = subprocess.run(
        ["git", *names, *arguments], cwd=folder, check=True, capture_output=True, input=content
    )
    return done.stdout.decode().strip()


def committed(folder):
    git(folder, "init", "-q", "-b", "main")
    (folder / "train.py").write_text("print('old')")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "old")
    git(folder, "tag", "old")
    return folder


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(committed(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "marker"


def lacks_a_file(repository, **settings):
    """A partial clone that does not hold train.py; what it lacks is at the remote ``origin``."""
    blob = git(repository, "rev-parse", "old:train.py")
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    settings = {"remote.origin.promisor": "true", "extensions.partialClone": "origin"} | settings
    git(repository, "config", "core.repositoryFormatVersion", "1")
    for name, value in settings.items():
        git(repository, "config", name, value)


def program(path, marker):
    return write_program(path, f"touch {marker}")


def check_refused(match="fetch them"):
    with pytest.raises(InputError, match=match), laid_out("old:train.py"):
        pass


def check_read():
    with laid_out("old:train.py") as version:
        assert version.path.read_text() == "print('old')"


def by_ext(marker):
    return {"remote.origin.url": f"ext::touch {marker}", "protocol.ext.allow": "always"}


def by_uploadpack(marker):
    return {"remote.origin.url": str(marker.parent), "remote.origin.uploadpack": f"touch {marker}; false"}


def by_file_url(marker):
    return by_uploadpack(marker) | {"remote.origin.url": f"file://{marker.parent}"}


def by_ssh(marker):
    return {"remote.origin.url": "ssh://host/x", "core.sshCommand": f"touch {marker}; false"}


def by_scp(marker):
    return {"remote.origin.url": "host:x", "core.sshCommand": f"touch {marker}; false"}


def by_git_proxy(marker):
    return {
        "remote.origin.url": "git://host/x",
        "core.gitProxy": str(program(marker.parent / "proxy", marker)),
    }


def by_include(marker):
    file = marker.parent / "settings"
    file.write_text(f'[core]\nsshCommand = touch {marker}; false\n[remote "origin"]\nurl = ssh://host/x\n')
    return {"include.path": str(file)}


def by_instead_of(marker):
    return {
        "remote.origin.url": "x:y",
        f"url.ext::touch {marker} .insteadOf": "x:",
        "protocol.ext.allow": "always",
    }


PLAIN_GIT = [by_ext, by_uploadpack, by_file_url, by_ssh, by_scp, by_git_proxy, by_include, by_instead_of]


@pytest.mark.parametrize("attack", PLAIN_GIT)
def test_nothing_is_fetched(repository, marker, attack):
    """A file that a partial clone lacks was fetched, by a program that the repository names."""
    lacks_a_file(repository, **attack(marker))
    check_refused()
    assert not marker.exists()


def test_settings_of_a_working_tree_count_no_more(repository, marker):
    lacks_a_file(repository, **{"extensions.worktreeConfig": "true"})
    (repository / ".git" / "config.worktree").write_text(
        f'[core]\nsshCommand = touch {marker}; false\n[remote "origin"]\nurl = ssh://host/x\n'
    )
    check_refused()
    assert not marker.exists()


@pytest.mark.parametrize("name", ["evil", "none"])
def test_a_helper_in_the_folder_is_not_found(repository, marker, name, monkeypatch):
    """With an empty entry in PATH; ``none`` is the protocol that git may use."""
    program(repository / f"git-remote-{name}", marker)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:")
    lacks_a_file(repository, **{"remote.origin.url": f"{name}::x"})
    check_refused()
    assert not marker.exists()


def test_git_is_not_taken_from_the_folder(repository, marker, monkeypatch):
    program(repository / "git", marker)
    for path in (".", "", "bin"):
        monkeypatch.setenv("PATH", f"{path}:{os.environ['PATH']}")
        check_read()
    assert not marker.exists()


def test_no_web_server_is_asked(repository, marker):
    """Not even for its 401, upon which a helper would be asked for credentials."""
    asked = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        helper = f"!touch {marker}; false"
        url = f"http://127.0.0.1:{server.server_port}/x"
        lacks_a_file(repository, **{"remote.origin.url": url, "credential.helper": helper})
        check_refused()
        server.shutdown()
    assert not asked
    assert not marker.exists()


def test_no_git_server_is_asked(repository):
    asked = []

    def serve():
        with contextlib.suppress(OSError):
            while True:
                asker, _ = server.accept()
                asked.append(asker)
                asker.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        lacks_a_file(repository, **{"remote.origin.url": f"git://127.0.0.1:{server.getsockname()[1]}/x"})
        check_refused()
        server.shutdown(socket.SHUT_RDWR)
    assert not asked


def test_a_bare_repository_in_a_folder_of_a_clone(repository, marker, tmp_path, monkeypatch):
    """It comes with a plain ``git clone``, its settings included."""
    inner = repository / "data"
    shutil.copytree(repository / ".git", inner)
    git(inner, "config", "core.bare", "true")
    monkeypatch.chdir(inner)
    (inner / "config").write_text(
        f"[core]\nbare = true\nfsmonitor = {program(tmp_path / 'monitor', marker)}\n"
    )
    check_refused("bare repository")
    assert not marker.exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"core.fsmonitor": "{program}"},
        {"core.hooksPath": "{folder}"},
        {"core.pager": "{program}", "pager.cat-file": "true", "pager.rev-parse": "{program}"},
        {"alias.cat-file": "!{program}", "alias.rev-parse": "!{program}", "alias.ls-tree": "!{program}"},
        {
            "filter.evil.smudge": "{program}",
            "filter.evil.clean": "{program}",
            "filter.evil.process": "{program}",
        },
        {"diff.evil.textconv": "{program}", "diff.evil.command": "{program}", "diff.external": "{program}"},
        {"core.askPass": "{program}", "core.editor": "{program}", "gpg.program": "{program}"},
        {"log.showSignature": "true", "core.alternateRefsCommand": "{program}"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_no_program_that_the_settings_name_runs(repository, marker, tmp_path, settings):
    folder = tmp_path / "programs"
    for name in (
        "program",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "fsmonitor-watchman",
    ):
        program(folder / name, marker)
    for name, value in settings.items():
        git(repository, "config", name, value.format(program=folder / "program", folder=folder))
    (repository / ".git" / "info" / "attributes").write_text("*.py filter=evil diff=evil\n")
    check_read()
    assert not marker.exists()


@pytest.mark.parametrize(
    "variables",
    [
        {"GIT_SSH_COMMAND": "touch {marker}; false", "GIT_SSH": "{program}"},
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.sshCommand", "GIT_CONFIG_VALUE_0": "{program}"},
        {"GIT_CONFIG_PARAMETERS": "'core.sshCommand={program}'"},
        {"GIT_TRACE": "{marker}"},
        {"GIT_TRACE2_EVENT": "{marker}"},
        {"GIT_EXEC_PATH": "{folder}"},
        {"GIT_EXTERNAL_DIFF": "{program}", "GIT_PAGER": "{program}", "PAGER": "{program}"},
        {"GIT_ALLOW_PROTOCOL": "ssh:ext"},
        {"GIT_OBJECT_DIRECTORY": "{folder}"},
        {"GIT_INDEX_FILE": "{program}", "GIT_ASKPASS": "{program}", "SSH_ASKPASS": "{program}"},
    ],
    ids=lambda variables: next(iter(variables)),
)
def test_variables_of_git_count_no_more(repository, marker, tmp_path, variables, monkeypatch):
    """They are the user's, but what one says for all of git is not meant for this."""
    made = {"program": program(tmp_path / "programs" / "program", marker), "marker": marker}
    program(tmp_path / "programs" / "git-cat-file", marker)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(**made, folder=tmp_path / "programs"))
    check_read()
    lacks_a_file_without_variables(repository, monkeypatch, variables)
    check_refused()
    assert not marker.exists()


def lacks_a_file_without_variables(repository, monkeypatch, variables):
    with monkeypatch.context() as plain:
        for name in variables:
            plain.delenv(name)
        lacks_a_file(repository, **{"remote.origin.url": "ssh://127.0.0.1:1/x"})


def test_settings_of_the_user_count_no_more(repository, marker, tmp_path):
    (tmp_path / ".gitconfig").write_text(f"[core]\nsshCommand = touch {marker}; false\n")
    lacks_a_file(repository, **{"remote.origin.url": "ssh://host/x"})
    check_refused()
    assert not marker.exists()


def test_a_revision_is_what_its_commit_says(repository):
    """Not what a replacement says in its place."""
    old = git(repository, "rev-parse", "old:train.py")
    other = git(repository, "hash-object", "-w", "--stdin", content=b"print('replaced')")
    git(repository, "replace", old, other)
    check_read()


def belongs_to_another(repository):
    for path in (repository, *repository.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user, which root can")
def test_another_users_repository_is_read_if_the_user_trusts_it(repository, tmp_path, monkeypatch):
    monkeypatch.delenv("SUDO_UID", raising=False)
    belongs_to_another(repository)
    check_refused("belongs to another user.*safe.directory")
    (tmp_path / ".gitconfig").write_text(f"[safe]\ndirectory = {repository}\n")
    check_read()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user, which root can")
def test_a_repository_cannot_say_that_it_is_trusted(repository, monkeypatch):
    monkeypatch.delenv("SUDO_UID", raising=False)
    git(repository, "config", "safe.directory", "*")
    git(repository, "config", "safe.bareRepository", "all")
    belongs_to_another(repository)
    check_refused("belongs to another user")
