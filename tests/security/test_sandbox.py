"""The sandbox: nothing of the machine can be changed, and credentials are out of sight."""

import socket
import tempfile
from pathlib import Path

import pytest

from advisor.core.errors import ProfileError
from advisor.profile import profile
from advisor.profile.readable import CACHES, CREDENTIALS_NAMED_BY, IN_ETC, IN_HOME, SYSTEM, hidden
from advisor.profile.readable import READABLE_NAMED_BY as READABLE_BY
from advisor.profile.sandbox import NOBODY, opened
from tests.machine import needs
from tests.security.sandboxes import IS_ROOT, shell

DOCUMENT = Path(__file__).parents[2] / "docs" / "sandbox.md"


pytestmark = needs("bubblewrap")


@pytest.fixture
def tmp_path():
    """Not in pytest's folder: that is closed, and late in a whole run has more entries than are passed on."""
    with tempfile.TemporaryDirectory(prefix="advisor-sandbox-") as folder:
        yield Path(folder).resolve()


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    for name in (*CREDENTIALS_NAMED_BY, *READABLE_BY):
        monkeypatch.delenv(name, raising=False)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / ".local/share"))
    return home


# --- The machine -----------------------------------------------------------------------------------


def test_settings_of_the_kernel_cannot_be_written(tmp_path):
    code = 'read -r old < /proc/sys/kernel/core_pattern; echo "$old" > /proc/sys/kernel/core_pattern'
    done = shell(code, tmp_path)
    assert done.returncode != 0
    assert "Read-only file system" in done.stderr or "denied" in done.stderr


def test_nothing_of_proc_can_be_written_but_what_is_the_scripts_own(tmp_path):
    files = "find /proc -path '/proc/[0-9]*' -prune -o -path /proc/self -prune -o -type f -writable -print"
    # Some have /dev/null in their place, which a mount without devices does not open.
    code = f'for file in $({files}); do : 2> /dev/null >> "$file" && echo "$file"; done'
    assert shell(code, tmp_path).stdout == ""


def test_nobody_gets_new_privileges(tmp_path):
    status = shell("grep -E 'NoNewPrivs|CapEff|CapPrm|CapInh|CapAmb' /proc/self/status", tmp_path).stdout
    values = {line.split()[0]: int(line.split()[1], 16) for line in status.splitlines()}
    assert values == {"NoNewPrivs:": 1, "CapEff:": 0, "CapPrm:": 0, "CapInh:": 0, "CapAmb:": 0}


# --- Credentials -----------------------------------------------------------------------------------


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("secret")
    return path


# Of a folder the list names, and of a file.
FILES = [".aws/credentials", ".config/gcloud/credentials.db", ".ssh/id_ed25519", ".kube/config", ".netrc",
         ".docker/config.json", ".pgpass", ".git-credentials", ".cache/huggingface/token",
         ".config/advisor/config.yaml", ".local/share/advisor/advisor.db"]  # fmt: skip


def test_files_of_credentials_are_out_of_sight(home, tmp_path):
    for name in FILES:
        put(home / name)
    put(home / ".cache/huggingface/hub/model")
    assert shell(f"grep -rl secret {home}", tmp_path).stdout.split() == [
        str(home / ".cache/huggingface/hub/model")
    ]


def test_files_that_a_variable_names_are_out_of_sight(home, tmp_path, monkeypatch):
    one, two, three = (put(tmp_path / "keys" / name) for name in ("one", "two", "three"))
    monkeypatch.chdir(tmp_path / "keys")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(one))
    monkeypatch.setenv("KUBECONFIG", f"{two}:{tmp_path / 'none'}:{three}")
    assert shell(f"cat {tmp_path}/keys/*", tmp_path).stdout == ""


def test_links_are_followed_to_what_they_hide(home, tmp_path, monkeypatch):
    """A mount on a link fails, and a link beside the mount would lead around it."""
    real = put(home / "dotfiles/netrc")
    (home / ".netrc").symlink_to(real)
    monkeypatch.chdir(home / "dotfiles")
    done = shell(f"cat {real}", tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_key_agent_cannot_be_asked(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind("agent")
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        assert shell(f"test -S {tmp_path}/agent", tmp_path).returncode == 1


def test_what_the_script_needs_stays_in_sight_and_is_told(home):
    script = put(home / ".aws/train.py")
    paths = hidden({}, [script.parent])
    assert paths.left == ((home / ".aws").resolve(),)
    assert paths.left[0] not in paths.paths


# What no list of ours names, as the next program's would not be.
UNKNOWN = [".config/rclone-next/token", ".vastai/api_key", ".modal.toml", ".fly/config.yml", "key.json",
           ".config/op/config", "Documents/passwords.kdbx", "project-of-another/.env", ".mozilla/key4.db",
           ".thunderbird/logins.json", ".cache/unknown/secret", ".local/share/unknown/secret",
           ".env"]  # fmt: skip


def test_of_the_home_folder_only_what_is_listed_is_there(home, tmp_path, monkeypatch):
    for name in (*UNKNOWN, *IN_HOME):
        if not (home / name).is_dir():
            put(home / name)
    wanted = {put(home / name / "weights") for name in CACHES}
    project = put(home / "project/data.csv").parent
    monkeypatch.chdir(project)
    found = shell(f"find {home} -type f -size +0", tmp_path).stdout.split()
    assert {Path(path) for path in found} == wanted | {project / "data.csv"}


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("project", ".git/config"), ("environment", "pip.conf"), ("environment", ".condarc"),
        ("project", ".git/config.worktree"), ("project", ".git/modules/sub/config"),
        ("project", "sub/.git/config"),
        ("project", ".git/worktrees/w/config.worktree"), ("project", ".git/credentials"),
        ("project", "a/b/.hg/hgrc"), ("project", "tools/pip.conf"),
    ],
)  # fmt: skip
def test_passwords_of_remotes_and_indexes_are_hidden(folder, name, home, tmp_path, monkeypatch):
    """What is checked out with a token, as in CI, keeps it there. Was: those of submodules were shown."""
    monkeypatch.chdir(put(home / folder / "there").parent)
    put(home / folder / name)
    assert shell(f"cat there {name}", tmp_path).stdout == "secret"


@pytest.mark.parametrize("name", [*IN_HOME, *CREDENTIALS_NAMED_BY, *CACHES, *READABLE_BY, *IN_ETC, *SYSTEM])
def test_all_that_is_hidden_or_shown_is_documented(name):
    assert f"`{name}`" in DOCUMENT.read_text()


# --- Whole scripts ---------------------------------------------------------------------------------

LOOK = """
import os
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(os.getuid(), os.geteuid(), os.getgroups(), status["CapBnd"], status["NoNewPrivs"])
print(os.listdir(os.path.expanduser("~")))
for path in ({private!r}, os.path.expanduser("~/.aws/credentials")):
    try:
        print(open(path).read())
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.mark.torch
@needs("util-linux")
@pytest.mark.skipif(not IS_ROOT, reason="root's scripts")
def test_roots_scripts_run_as_nobody(home, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    # Closed as /root is; what is in it is needed.
    home.chmod(0o700)
    put(home / ".aws/credentials")
    private = put(tmp_path / "private")
    private.chmod(0o600)
    script = home / "project" / "train.py"
    put(script).write_text(LOOK.format(private=str(private)))
    with pytest.raises(ProfileError) as failed:
        profile(script, sandbox=True, timeout_s=60)
    shown = str(failed.value).partition("last output:\n")[2].splitlines()
    assert shown[0] == f"{NOBODY} {NOBODY} [] {0:016x}\t1".replace("\t", " ")
    assert shown[1:] == ["['project']", "FileNotFoundError", "FileNotFoundError"]
    assert home.stat().st_mode & 0o777 == 0o700


@pytest.mark.torch
@needs("util-linux")
@pytest.mark.skipif(not IS_ROOT, reason="root's scripts")
def test_what_nobody_may_not_read_is_blamed_on_the_sandbox(home, tmp_path):
    pytest.importorskip("torch")
    private = put(home / "project/private.csv")
    private.chmod(0o600)
    script = put(home / "project/train.py")
    script.write_text(f"open({str(private)!r})")
    with pytest.raises(ProfileError, match=r"Permission denied.*run as nobody in the sandbox"):
        profile(script, sandbox=True, timeout_s=60)


@pytest.mark.torch
@pytest.mark.skipif(not IS_ROOT, reason="root's scripts")
def test_what_nobody_cannot_read_is_profiled_as_root_without_capabilities(home, tmp_path):
    pytest.importorskip("torch")
    script = put(home / "project/train.py")
    script.write_text("import os\nprint('user', os.getuid())\nopen('/proc/sys/kernel/core_pattern', 'r+')")
    script.chmod(0o600)
    with pytest.raises(ProfileError, match="Read-only file system") as failed:
        profile(script, sandbox=True, timeout_s=60)
    assert "run as nobody" not in str(failed.value)


def test_a_home_with_too_many_entries_is_not_opened(home):
    for number in range(700):
        (home / f"file{number}").touch()
    home.chmod(0o700)
    assert opened([home], [home]) is None
    # What lies above of what is shown is made anew, and open.
    assert opened([home / "file1"], [home / "file1"]) == []
