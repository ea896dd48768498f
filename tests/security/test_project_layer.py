"""A repository whose .advisor.yaml wants more than it may, as a person meets it at the terminal."""

import os
import socket
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import Answer, Shell, assert_plain_error
from tests.machine import needs
from tests.programs import write_program

JOB = ("recommend", "t.json.gz", "--iterations", "5000", "--gpu", "A100-SXM-80GB", "--offline", "--json")
NOTHING_BUT_GCP = "version: 1\nname: acme\nlayer: organisation\nallow: {providers: [gcp]}\n"

# Root may read everything but for these two; to others the file's mode is enough.
_RIGHTS = "-dac_override,-dac_read_search"
WITHOUT_ROOTS_RIGHTS = (
    [] if os.geteuid() else ["setpriv", f"--bounding-set={_RIGHTS}", f"--inh-caps={_RIGHTS}"]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A cloned folder and the home of who cloned it."""

    shell: Shell
    home: Path

    def run(self, *arguments: str, **environ: str) -> Answer:
        """A command in the repository."""
        home = {
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_DATA_HOME": str(self.home / "data"),
        }
        return self.shell.run(*arguments, **home | environ)

    def project(self, text: str) -> Path:
        """What the repository brings."""
        return self.shell.write(".advisor.yaml", text)

    def user(self, text: str) -> None:
        """What its user has set."""
        path = self.home / "config" / "advisor" / "config.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "repository").mkdir()
    (tmp_path / "home").mkdir()
    return Repository(shell=Shell(folder=tmp_path / "repository"), home=tmp_path / "home")


@pytest.fixture
def listener():
    """A server of the attacker's; whoever connects waits to be taken by ``visitors``."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def visitors(listener: socket.socket) -> int:
    count = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def interpreter_that_tells(folder: Path) -> Path:
    """A program that works as Python and leaves a mark that it was run."""
    write_program(folder / "evil", f'touch "{folder}/was-run"\nexec "{sys.executable}" "$@"')
    return folder / "was-run"


# --- The four ways in -------------------------------------------------------------------------------


def test_it_cannot_switch_the_sandbox_off(repository):
    repository.user("profile: {sandbox: true, backend: fake}\n")
    path = repository.project("# trains\nprofile:\n  sandbox: false\n")
    mark = repository.shell.folder / "written"
    repository.shell.write("train.py", f"open({str(mark)!r}, 'w').close()\n")
    answer = repository.run("profile", "train.py")
    assert f"{path}:3: profile.sandbox: false is refused" in answer.err
    assert f"advisor trust {path.parent}" in answer.err
    assert answer.err.count("is refused") == 1
    assert not mark.exists()
    assert repository.run("trust", ".").code == 0
    trusted = repository.run("profile", "train.py")
    assert "is refused" not in trusted.err
    assert mark.exists(), trusted.err


def test_it_cannot_have_the_password_of_the_database(repository, listener):
    port = listener.getsockname()[1]
    path = repository.project(
        f"store: {{url: 'postgresql://me:s3cret@127.0.0.1:{port}/x?connect_timeout=2'}}\n"
    )
    write_trace(make_trace(), repository.shell.folder / "t.json.gz")
    for command in (
        JOB,
        ("doctor",),
        ("prices", "history", "--gpu", "T4"),
        ("run", "list"),
        ("config", "show"),
    ):
        answer = repository.run(*command, PGPASSWORD="hunter2")
        assert f"{path}:1: store.url" in answer.err + " ".join(answer.out.split()), command
        assert "s3cret" not in answer.out + answer.err
        assert visitors(listener) == 0, command
    listing = repository.run("trust")
    assert "store.url" in listing.out
    assert "s3cret" not in listing.out
    repository.run("run", "list", PGPASSWORD="hunter2")
    assert visitors(listener) > 0


def test_it_cannot_bring_its_own_interpreter(repository):
    mark = interpreter_that_tells(repository.shell.folder)
    repository.project("profile: {python: ./evil, backend: fake}\n")
    repository.shell.write("train.py", "print('hello')\n")
    for command in (("profile", "train.py"), ("doctor",), ("recommend", "train.py", "--iterations", "5")):
        answer = repository.run(*command)
        assert "profile.python" in answer.err + answer.out
        assert not mark.exists(), command
    assert repository.run("trust").code == 0
    repository.run("doctor")
    assert mark.exists()


def test_it_cannot_drop_policies(repository):
    repository.user("policy: {files: [org.yaml]}\n")
    (repository.home / "config" / "advisor" / "org.yaml").write_text(NOTHING_BUT_GCP)
    write_trace(make_trace(), repository.shell.folder / "t.json.gz")
    repository.project("policy:\n  files: []\n")
    answer = repository.run(*JOB)
    assert ".advisor.yaml:2: policy.files: [] is refused: a project may only add to it" in answer.err
    assert providers(answer) == {"gcp"}
    assert repository.run("trust").code == 0
    assert len(providers(repository.run(*JOB))) > 1


def providers(answer: Answer) -> set[str]:
    options = answer.document["options"]
    return {o["provider"] for o in options if o["tier"] == "cloud" and o["removed_by"] is None}


def test_it_adds_policies_to_those_of_its_user(repository):
    repository.user("policy: {files: [org.yaml]}\n")
    (repository.home / "config" / "advisor" / "org.yaml").write_text(NOTHING_BUT_GCP)
    write_trace(make_trace(), repository.shell.folder / "t.json.gz")
    repository.shell.write("own.yaml", "version: 1\nname: own\nlayer: project\nspot: {allowed: false}\n")
    repository.project("policy: {files: [own.yaml]}\n")
    answer = repository.run(*JOB)
    assert "refused" not in answer.err
    assert providers(answer) == {"gcp"}
    kept = [o for o in answer.document["options"] if o["removed_by"] is None]
    assert {o["market"] for o in kept} == {"on-demand"}


# --- Trust ------------------------------------------------------------------------------------------


def test_trust_ends_with_a_change_and_can_be_taken_back(repository):
    path = repository.project("local: {usd_per_gpu_h: 0}\n")
    first = repository.run("trust")
    assert first.out == (f"trusted {path} until it changes\n  line 1, from now on: local.usd_per_gpu_h: 0\n")
    assert "trusted already" in repository.run("trust").out
    assert local_price(repository) == 0
    path.write_text("local: {usd_per_gpu_h: 0.0}\n")
    assert local_price(repository) is None
    assert [f["state"] for f in trusted_files(repository)] == ["changed since"]
    assert repository.run("trust").code == 0
    assert local_price(repository) == 0
    assert repository.run("trust", "--revoke", ".").code == 0
    assert local_price(repository) is None
    assert trusted_files(repository) == []
    assert_plain_error(repository.run("trust", "--revoke"), 2, "is not trusted", "--list")


def local_price(repository: Repository) -> float | None:
    settings = repository.run("config", "show", "--json").document["settings"]
    price: float | None = settings["local.usd_per_gpu_h"]["value"]
    return price


def trusted_files(repository: Repository) -> list[dict[str, str]]:
    trusted: list[dict[str, str]] = repository.run("trust", "--list", "--json").document["trusted"]
    return trusted


def test_trust_is_of_the_folder_that_is_named(repository):
    path = repository.project("profile: {backend: cpu}\n")
    (path.parent / "inner").mkdir()
    assert_plain_error(repository.run("trust", "inner"), 2, "no .advisor.yaml in 'inner'", str(path.parent))
    path.write_text("cloud: {max_gps: 1}\n")
    assert_plain_error(repository.run("trust"), 2, "Did you mean")
    assert trusted_files(repository) == []


@pytest.mark.parametrize(
    ("arguments", "value", "counts"),
    [
        (("--trust-project",), "", True),
        ((), "1", True),
        ((), "true", True),
        ((), "0", False),
        ((), "", False),
    ],
)
def test_trust_for_ci(repository, arguments, value, counts):
    repository.project("local: {usd_per_gpu_h: 0}\n")
    answer = repository.run(*arguments, "config", "show", "--json", ADVISOR_TRUST_PROJECT=value)
    document = answer.document
    assert document["project"]["is_trusted"] is counts
    assert (document["settings"]["local.usd_per_gpu_h"]["value"] == 0) is counts
    assert ("is refused" in answer.err) is not counts
    assert document["warnings"] == []


def test_a_misspelt_trust_is_none(repository):
    answer = repository.run("config", "show", ADVISOR_TRUST_PROJECT="perhaps")
    assert_plain_error(answer, 2, "ADVISOR_TRUST_PROJECT", "'perhaps'")


def test_config_show_names_who_set_what_and_what_was_refused(repository):
    repository.user("cloud: {max_gpus: 4}\n")
    path = repository.project("cloud:\n  max_gpus: 8\n  dataset_gb: 3\nprofile: {timeout: 1m}\n")
    answer = repository.run("config", "show", "--json")
    document = answer.document
    assert document["settings"]["cloud.max_gpus"]["value"] == 4
    assert document["settings"]["profile.timeout"] == {"value": "1m", "origin": str(path)}
    assert document["settings"]["cloud.dataset_gb"]["origin"] == str(path)
    assert document["refused"] == [
        {
            "setting": "cloud.max_gpus", "value": 8, "file": str(path), "line": 2,
            "project_may": "lower", "why": "not-allowed",
        }
    ]  # fmt: skip
    table = repository.run("config", "show", "--format", "csv").out.splitlines()
    (row,) = (line for line in table if line.startswith("cloud.max_gpus"))
    assert row.endswith(",8 (.advisor.yaml:2)")


def test_explain_warns_once_of_a_line(repository):
    repository.project("local: {usd_per_gpu_h: 0}\n")
    repository.shell.write("org.yaml", NOTHING_BUT_GCP)
    plan = "gcp/a2-highgpu-1g/us-central1/on-demand"
    answer = repository.run("policy", "explain", "org.yaml", "--plan", plan)
    assert answer.code == 0, answer
    assert answer.err.count("is refused") == 1


# --- What a file can be besides text -----------------------------------------------------------------


def test_a_pipe_does_not_hang(repository):
    path = repository.shell.folder / ".advisor.yaml"
    os.mkfifo(path)
    assert_plain_error(show(repository), 2, "no regular file")
    path.unlink()
    os.mkfifo(repository.shell.folder / "pipe")
    path.symlink_to("pipe")
    assert_plain_error(show(repository), 2, "is a symbolic link")


def show(repository: Repository) -> Answer:
    answer = repository.run("config", "show")
    assert len(answer.err.splitlines()) == 1, answer.err
    return answer


def test_a_link_is_not_followed(repository, tmp_path):
    (tmp_path / "secret").write_text("password: hunter2: [\n")
    (repository.shell.folder / ".advisor.yaml").symlink_to(tmp_path / "secret")
    answer = show(repository)
    assert_plain_error(answer, 2, "is a symbolic link")
    assert "hunter2" not in answer.err


def test_a_link_to_the_users_own_file_is_that_file(repository):
    repository.user("local: {usd_per_gpu_h: 0.5}\n")
    (repository.shell.folder / ".advisor.yaml").symlink_to(repository.home / "config/advisor/config.yaml")
    assert local_price(repository) == 0.5
    assert "refused" not in repository.run("config", "show").err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [" + "0," * 40_000 + "]", "larger than 64 kB"),
        ("a: " + "[" * 30_000, "nested too deeply"),
        ("a: &a [1]\nb: *a\n", "aliases are not allowed"),
        ("store: {url: 'postgresql://me:hunter2@db/x'} x\n", "line 1"),
    ],
)
def test_a_bomb_is_one_line_that_quotes_nothing(repository, text, words):
    repository.project(text)
    answer = show(repository)
    assert_plain_error(answer, 2, words)
    assert "hunter2" not in answer.err


def test_faults_of_a_huge_file_are_not_all_told(repository):
    repository.project("".join(f"k{i}: 1\n" for i in range(2000)))
    answer = repository.run("config", "show")
    assert_plain_error(answer, 2, "There are 1980 more of these")
    assert len(answer.err.splitlines()) == 21


@needs("util-linux")
def test_an_unreadable_file_is_one_line(repository):
    repository.project("cloud: {max_gpus: 1}\n").chmod(0)
    command = [*WITHOUT_ROOTS_RIGHTS, sys.executable, "-m", "advisor", "config", "show"]
    done = subprocess.run(
        command, cwd=repository.shell.folder, env=repository.shell.environ(), capture_output=True, text=True
    )
    assert_plain_error(Answer(code=done.returncode, out=done.stdout, err=done.stderr), 2, "cannot read")


# --- Who may read what we write ----------------------------------------------------------------------


def test_what_is_written_is_for_its_owner_alone(repository):
    repository.project("local: {usd_per_gpu_h: 0}\n")
    for command in (("init",), ("trust",), ("run", "list")):
        assert repository.run(*command).code == 0
    run = ("run", "record", "--provider", "aws", "--gpu", "T4:1", "--start", "2026-11-01", "--duration", "1h")
    assert repository.run(*run, "--market", "on-demand", "--cost", "1").code == 0
    files = [path for path in repository.home.rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert {"config.yaml", "advisor.db"} <= names
    assert [path for path in files if path.suffix == ".json"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_the_doctor_notes_a_password_that_others_may_read(repository):
    repository.user("prices: {options: {acme: {api_key: hunter2}}, sources: [snapshot]}\n")
    path = repository.home / "config" / "advisor" / "config.yaml"
    for mode, state in ((0o644, "note"), (0o600, "ok")):
        path.chmod(mode)
        answer = repository.run("doctor", "--json")
        (check,) = (c for c in answer.document["checks"] if c["name"] == "settings")
        assert check["state"] == state, check
        assert "hunter2" not in answer.out
        assert (f"chmod 600 {path}" in check["detail"]) is (state == "note")
