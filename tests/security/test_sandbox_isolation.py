"""What a sandboxed script cannot reach: daemons, keyrings, calls of the kernel; as root and an ordinary user.

Was: the whole file system was there, so a server's socket below /tmp or in a project ran commands outside,
keys of the session could be read, and a user namespace could be made.
"""

import ctypes
import os
import platform
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.profile.readable import special_files
from advisor.profile.sandbox import filter_program
from tests.machine import needs
from tests.security.sandboxes import USERS, python, shell

pytestmark = needs("bubblewrap")
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108
of_each_user = pytest.mark.parametrize("user", USERS)


@pytest.fixture(autouse=True)
def _no_home(monkeypatch):
    """Root's is closed to the ordinary user of these tests."""
    monkeypatch.setenv("HOME", "/nonexistent")


@pytest.fixture
def tmp_path():
    """Open to all: pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="advisor-sandbox-") as folder:
        path = Path(folder).resolve()
        path.chmod(0o777)
        yield path


# --- Sockets and pipes -----------------------------------------------------------------------------

CONNECT = """
import socket
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    try:
        socket.socket(socket.AF_UNIX, kind).connect({path!r})
        print("connected")
    except OSError as error:
        print(type(error).__name__)
"""


def answers(kind: socket.SocketKind, path: Path, user: str, tmp_path: Path) -> bool:
    """Whether a server at the path can be reached from the sandbox; outside it must be."""
    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(str(path))
        path.chmod(0o777)
        if kind == socket.SOCK_STREAM:
            server.listen()
        with socket.socket(socket.AF_UNIX, kind) as outside:
            outside.connect(str(path))
        return "connected" in python(CONNECT.format(path=str(path)), tmp_path, user=user)


@of_each_user
@pytest.mark.parametrize("folder", TEMPORARY)
def test_a_server_in_a_temporary_folder_is_not_reached(folder, user, tmp_path):
    with tempfile.TemporaryDirectory(dir=folder) as own:
        Path(own).chmod(0o777)
        assert not answers(socket.SOCK_STREAM, Path(own) / "server", user, tmp_path)


@of_each_user
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
@pytest.mark.parametrize("where", ["server", "deep/er/server"])
def test_a_server_in_the_project_is_not_reached(where, kind, user, tmp_path, monkeypatch):
    """A read-only mount does not keep anyone from connecting."""
    project = tmp_path / "project"
    path = project / where
    path.parent.mkdir(parents=True)
    monkeypatch.chdir(project)
    assert not answers(kind, path, user, tmp_path)


@of_each_user
def test_a_server_is_found_however_deep_it_listens(user, tmp_path, monkeypatch):
    """By the kernel's list, where a search would end before it came there."""
    monkeypatch.setattr("advisor.profile.readable._MOST_ENTRIES", 1)
    (tmp_path / "project/one/two").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    assert not answers(socket.SOCK_STREAM, tmp_path / "project/one/two/server", user, tmp_path)


def test_a_pipe_in_the_project_is_not_reached(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    os.mkfifo(tmp_path / "project/pipe")
    monkeypatch.chdir(tmp_path / "project")
    assert shell("test -p pipe", tmp_path).returncode == 1


def test_more_pipes_than_can_be_covered_are_one_line(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    for number in range(2001):
        os.mkfifo(tmp_path / f"project/{number}")
    monkeypatch.chdir(tmp_path / "project")
    with pytest.raises(InputError, match="more sockets, named pipes"):
        shell("true", tmp_path)


def test_links_and_files_are_no_special_files(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    ours = [path for path in special_files([tmp_path]) if path.is_relative_to(tmp_path)]
    assert ours == [tmp_path / "pipe"]


@of_each_user
def test_an_abstract_name_is_not_reached(user, tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0advisor-test")
        server.listen()
        assert "connected" not in python(CONNECT.format(path="\0advisor-test"), tmp_path, user=user)


PASSES_A_DESCRIPTOR = """
import os, threading
from multiprocessing.connection import Client, Listener
from multiprocessing.reduction import recv_handle, send_handle
listener = Listener()
def serve():
    with listener.accept() as connection:
        send_handle(connection, os.open("/dev/null", os.O_RDONLY), os.getpid())
threading.Thread(target=serve).start()
with Client(listener.address) as connection:
    print(recv_handle(connection) > 0)
"""


@of_each_user
def test_processes_of_a_script_still_talk_to_each_other(user, tmp_path):
    """As the workers of a DataLoader do: sockets below the temporary folder, and descriptors over them."""
    assert python(PASSES_A_DESCRIPTOR, tmp_path, user=user) == "True\n"


# --- What there is ---------------------------------------------------------------------------------


@of_each_user
def test_temporary_folders_are_its_own(user, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    (tmp_path / "ours").touch()
    code = f"ls /tmp /var/tmp /dev/shm {tmp_path}; touch /tmp/new /var/tmp/new /dev/shm/new"
    done = shell(code, tmp_path, user=user)
    assert done.returncode == 0
    names = {line for line in done.stdout.splitlines() if line and not line.endswith(":")}
    assert names == {tmp_path.name, "job"}
    assert not any(Path(folder, "new").exists() for folder in TEMPORARY)


@of_each_user
def test_devices_are_the_least(user, tmp_path):
    names = set(shell("ls /dev", tmp_path, user=user).stdout.split())
    least = {"console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin"}
    least |= {"stdout", "tty", "urandom", "zero"}
    assert {name for name in names if not name.startswith("nvidia")} <= least


@of_each_user
def test_settings_of_the_machine_are_not_there(user, tmp_path):
    done = shell("ls /etc /var /home /root /srv /boot /sys/kernel", tmp_path, user=user)
    assert not {"shadow", "ssh", "sudoers", "fstab", "environment", "lib", "log"} & set(done.stdout.split())
    assert "/boot" in done.stderr


@of_each_user
def test_nothing_can_be_written_beside_the_mounts(user, tmp_path):
    done = shell(
        "touch /new; touch ~/new; touch /etc/new; mkdir /home/new; ls -d /new ~/new", tmp_path, user=user
    )
    assert done.stdout == ""
    assert done.stderr.count("Read-only file system") >= 3


# --- Calls of the kernel ---------------------------------------------------------------------------

KEYS = """
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
number = 250 if platform.machine() == "x86_64" else 219
found = libc.syscall(number, 10, -3, b"user", b"advisor-test", 0)
print(found, ctypes.get_errno())
try:
    print("advisor-test" in open("/proc/keys").read())
except OSError:
    print(False)
"""


@of_each_user
def test_keys_of_the_session_cannot_be_read(user, tmp_path):
    libc = ctypes.CDLL(None, use_errno=True)
    add = {"x86_64": 248, "aarch64": 217}[platform.machine()]
    # A session of our own (KEYCTL_JOIN_SESSION_KEYRING), and a key in it (KEY_SPEC_SESSION_KEYRING).
    libc.syscall({"x86_64": 250, "aarch64": 219}[platform.machine()], 1, None)
    if libc.syscall(add, b"user", b"advisor-test", b"secret", 6, -3) < 0:
        pytest.skip("this machine has no keyrings")
    printed = python(KEYS, tmp_path, user=user)
    assert printed == "-1 38\nFalse\n"


FAMILIES = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for family in {families}:
    print(family, libc.socket(family, 1, 0) >= 0, ctypes.get_errno() == 97)
"""


@of_each_user
def test_only_families_that_a_namespace_divides_make_sockets(user, tmp_path):
    """AF_VSOCK (40) reaches the host of a virtual machine, whatever network namespace one is in."""
    families = [17, 31, 38, 40, 44]
    printed = python(FAMILIES.format(families=families), tmp_path, user=user).splitlines()
    assert printed == [f"{family} False True" for family in families]
    assert (
        python("import socket; socket.socketpair(); socket.socket(socket.AF_INET6)", tmp_path, user=user)
        == ""
    )


CALLS = """
import ctypes, errno, platform
libc = ctypes.CDLL(None, use_errno=True)
def number_of(call, *arguments):
    ctypes.set_errno(0)
    libc.syscall(call, *arguments)
    return errno.errorcode.get(ctypes.get_errno())
is_x86 = platform.machine() == "x86_64"
calls = {"io_uring_setup": (425, 1, 0), "userfaultfd": (323 if is_x86 else 282, 0),
         "bpf": (321 if is_x86 else 280, 0, 0, 0),
         "perf_event_open": (298 if is_x86 else 241, 0, 0, -1, -1, 0),
         "setns": (308 if is_x86 else 268, 0, 0), "syslog": (103 if is_x86 else 116, 2, 0, 0)}
for name, arguments in calls.items():
    print(name, number_of(*arguments))
new_user = 0x10000000
print("unshare", number_of(272 if is_x86 else 97, new_user))
print("clone", number_of(56 if is_x86 else 220, new_user | 17, 0, 0, 0, 0))
print("clone3", number_of(435, 0, 0))
print("x32", number_of(0x40000000 + 39))
"""


@of_each_user
def test_calls_that_a_script_does_without_are_refused(user, tmp_path):
    answers = dict(line.split() for line in python(CALLS, tmp_path, user=user).splitlines())
    assert answers.pop("unshare") == "EPERM"
    assert answers.pop("clone") == "EPERM"
    assert set(answers.values()) == {"ENOSYS"}


TYPES = """
import errno, fcntl, os, pty, termios
ours, theirs = pty.openpty()
for request in (0x5412, 0x541C, 0x5412 | 1 << 32):
    try:
        fcntl.ioctl(theirs, request & 0xFFFFFFFF, b"x")
        print("typed")
    except OSError as error:
        print(errno.errorcode[error.errno])
print(termios.tcgetattr(theirs) != [], os.getsid(0) != os.getpgid(0) or "leads its session")
"""


@of_each_user
def test_nobody_types_at_a_terminal(user, tmp_path):
    printed = python(TYPES, tmp_path, user=user).splitlines()
    assert printed == ["EPERM", "EPERM", "EPERM", "True leads its session"]


def test_the_filter_knows_two_kinds_of_machines(monkeypatch):
    lengths = []
    for machine in ("x86_64", "aarch64"):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        program = filter_program()
        assert program is not None
        lengths.append(len(program))
    assert lengths[0] == lengths[1]
    assert lengths[0] % 8 == 0
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert filter_program() is None


# --- The run ---------------------------------------------------------------------------------------

STOPS = """
import os, signal
for pid in {pids}:
    try:
        os.kill(pid, signal.SIGSTOP)
        print("stopped", pid)
    except OSError as error:
        print(type(error).__name__)
print(os.getppid())
"""


@of_each_user
def test_no_process_of_outside_can_be_signalled(user, tmp_path):
    """So that ``--timeout`` holds: without a sandbox a script can stop advisor itself."""
    waiting = subprocess.Popen(["sleep", "60"])
    try:
        printed = python(STOPS.format(pids=[waiting.pid, os.getpid()]), tmp_path, user=user)
        state = Path(f"/proc/{waiting.pid}/stat").read_text().rpartition(")")[2].split()[0]
    finally:
        waiting.kill()
        waiting.wait()
    assert printed.count("ProcessLookupError") == 2
    assert state != "T"
