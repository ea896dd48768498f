"""What a hostile script tries in the sandbox; runs there with the system's Python and prints what it reached.

Each probe answers with what it got hold of, and with nothing where it was kept from it. None harms the
machine where it works. The numbers of system calls are those of x86_64.
"""

import ctypes
import fcntl
import glob
import json
import mmap
import os
import signal
import socket
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
FACTS = json.loads(sys.argv[1])
AT_START = [name for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")]


def call(number: int, *arguments: object) -> int:
    """A system call: its answer, or the negative number of its error."""
    ctypes.set_errno(0)
    answer = LIBC.syscall(ctypes.c_long(number), *arguments)
    return -ctypes.get_errno() if answer == -1 else answer


def each(tries: dict[str, object]) -> str:
    """The names of the tries that worked."""
    worked = []
    for name, attempt in tries.items():
        try:
            answer = attempt()
        except (OSError, ValueError, OverflowError):
            continue
        if not (isinstance(answer, int) and answer < 0):
            worked.append(name)
    return " ".join(worked)


def overwrites_what_is_shown() -> str:
    """Through every name that /proc has for a file, and what of it is no content."""
    file = FACTS["script"]
    opened = os.open(file, os.O_RDONLY)
    at = f"/proc/self/fd/{opened}"
    return each(
        {
            "write": lambda: os.open(file, os.O_WRONLY),
            "append": lambda: os.open(file, os.O_WRONLY | os.O_APPEND),
            "reopen": lambda: os.open(at, os.O_RDWR),
            "root": lambda: os.open(f"/proc/self/root{file}", os.O_RDWR),
            "cwd": lambda: os.open(f"/proc/self/cwd/{os.path.basename(file)}", os.O_RDWR),
            "utime": lambda: os.utime(opened),
            "chmod": lambda: os.fchmod(opened, 0o777),
            "xattr": lambda: os.setxattr(opened, "user.x", b"x"),
            "truncate": lambda: os.truncate(file, 0),
            "rename": lambda: os.rename(file, file + "x"),
            "link": lambda: os.link(file, file + "x"),
            "unlink": lambda: os.unlink(file),
            "new": lambda: os.open(os.path.dirname(file) + "/new", os.O_CREAT | os.O_WRONLY),
            "tmpfile": lambda: os.open(os.path.dirname(file), os.O_TMPFILE | os.O_RDWR),
            "flags": lambda: fcntl.ioctl(opened, 0x40086602, struct.pack("l", 0x80)),
        }
    )


def reads_what_is_closed() -> str:
    names = [
        "/etc/shadow", "/etc/gshadow", "/root/.bashrc", "/proc/kcore", "/etc/machine-id", "/etc/hostname",
        "/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/loop0", "/dev/vda",
        "/sys/firmware/dmi/tables/DMI", "/run/docker.sock", "/var/run/docker.sock", "/var/log/dpkg.log",
        "/etc/ssh/sshd_config", "/proc/1/root/etc/shadow", "/proc/self/cwd/../../../etc/shadow",
    ]  # fmt: skip
    return each({name: lambda name=name: os.open(name, os.O_RDONLY | os.O_NONBLOCK) for name in names})


def finds_descriptors() -> str:
    """That it was not given: one of a folder leads out of the sandbox by ``..``."""
    targets = {name: os.path.realpath(f"/proc/self/fd/{name}") for name in AT_START}
    return " ".join(target for name, target in targets.items() if int(name) > 2 and os.path.exists(target))


def mounts() -> str:
    root = ctypes.c_char_p(b"/")
    tmp = ctypes.c_char_p(b"/tmp")
    none = ctypes.c_char_p(b"none")
    return each(
        {
            "mount tmpfs": lambda: call(165, none, tmp, ctypes.c_char_p(b"tmpfs"), 0, None),
            "remount": lambda: call(165, none, root, None, 32, None),
            "bind": lambda: call(165, root, tmp, None, 4096, None),
            "umount": lambda: call(166, ctypes.c_char_p(FACTS["job"].encode()), 2),
            "umount proc": lambda: call(166, ctypes.c_char_p(b"/proc/keys"), 2),
            "pivot_root": lambda: call(155, tmp, tmp),
            "chroot": lambda: os.chroot("/tmp"),
            "fsopen": lambda: call(430, ctypes.c_char_p(b"proc"), 0),
            "open_tree clone": lambda: call(428, -100, root, 1),
            "mount_setattr": lambda: call(442, -100, root, 0, struct.pack("QQQQ", 0, 1, 0, 0), 32),
            "move_mount": lambda: call(429, -100, tmp, -100, tmp, 0),
        }
    )


def makes_namespaces() -> str:
    """Each kind by unshare, and the user's by clone, with bits above the 32 that a filter looks at."""
    kinds = {"user": 0x10000000, "mount": 0x20000, "net": 0x40000000, "pid": 0x20000000, "time": 0x80}
    tries = {name: lambda flag=flag: call(272, ctypes.c_ulong(flag)) for name, flag in kinds.items()}
    tries["high"] = lambda: call(272, ctypes.c_ulong(0x10000000 | 1 << 40))
    tries["clone"] = lambda: cloned(0x10000000 | signal.SIGCHLD)
    tries["clone3"] = lambda: call(435, struct.pack("Q" * 11, 0x10000000, *[0] * 3, 17, *[0] * 6), 88)
    for name in ("user", "mnt", "net", "pid"):
        tries[f"setns {name}"] = lambda name=name: call(308, os.open(f"/proc/1/ns/{name}", os.O_RDONLY), 0)
    return each(tries)


def cloned(flags: int) -> int:
    answer = call(56, ctypes.c_ulong(flags), None, None, None, None)
    if answer == 0:
        os._exit(0)
    return answer


def takes_over_who_holds_it() -> str:
    """Its parents in the sandbox may be traced: what they have and it has not, it would have."""
    left = []
    for pid in {1, os.getppid()} - {0}:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            status = {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
        if int(status["CapEff"], 16) or int(status["CapPrm"], 16):
            left.append("capabilities")
        if (status["Seccomp"], status["NoNewPrivs"]) != ("2", "1"):
            left.append("no filter")
        for name in os.listdir(f"/proc/{pid}/fd"):
            target = os.readlink(f"/proc/{pid}/fd/{name}")
            if not target.startswith(("pipe:", "anon_inode:[eventfd]", "/dev/null", "/dev/pts/")):
                left.append(target)
    return " ".join(left)


def calls_by_other_numbers() -> str:
    """keyctl, as x32 and as a 32-bit program number it; the filter knows neither."""
    reached = []
    if call(0x40000000 + 250, 0, -3, 0) >= 0:
        reached.append("x32")
    # mov eax, 288 (keyctl of i386); xor ebx, ebx; mov ecx, -3; xor edx, edx; int 0x80; ret
    code = b"\x53\xb8\x20\x01\x00\x00\x31\xdb\xb9\xfd\xff\xff\xff\x31\xd2\xcd\x80\x5b\xc3"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    at = ctypes.addressof(ctypes.c_char.from_buffer(page))
    child = os.fork()
    if child == 0:
        answer = ctypes.CFUNCTYPE(ctypes.c_int)(at)()
        os._exit(1 if answer >= 0 else 0)
    if os.waitpid(child, 0)[1] == 256:
        reached.append("int 0x80")
    return " ".join(reached)


def calls_that_few_know() -> str:
    buffer = ctypes.create_string_buffer(256)
    handle = ctypes.create_string_buffer(struct.pack("Ii", 8, 1) + b"\2" + b"\0" * 7, 256)
    return each(
        {
            "open_by_handle_at": lambda: call(304, os.open("/", os.O_RDONLY), handle, 0),
            "fanotify": lambda: call(300, 0x10, 0),
            "quotactl": lambda: call(179, 0x80000700, ctypes.c_char_p(b"/"), 0, buffer),
            "perf": lambda: call(298, buffer, 0, -1, -1, 0),
            "bpf": lambda: call(321, 0, buffer, 32),
            "userfaultfd": lambda: call(323, 1),
            "add_key": lambda: call(248, ctypes.c_char_p(b"user"), ctypes.c_char_p(b"a"), buffer, 1, -3),
            "mknod": lambda: os.mknod("/tmp/device", 0o60600, os.makedev(254, 0)),
            "setuid": lambda: os.setuid(0) if os.getuid() else -1,
            "realtime": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
        }
    )


def types_at_terminals() -> str:
    """Requests with bits above those that the kernel looks at, and terminals that are none of its own."""
    _, own = os.openpty()
    letter = ctypes.c_char_p(b"x")
    tries = {
        f"{number:#x}": lambda number=number: call(16, own, ctypes.c_ulong(number), letter)
        for number in (0x5412, 0x1_0000_5412, 0xFFFF_FFFF_0000_5412, 0x541C, 0x1_0000_541C)
    }
    # Of its own instance there may be as many as it opens.
    others = set(glob.glob("/dev/pts/*")) - {os.ttyname(own), "/dev/pts/ptmx"}
    for path in [*others, "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/ttyS0", "/dev/hvc0"]:
        tries[path] = lambda path=path: os.open(path, os.O_RDWR | os.O_NOCTTY)
    return each(tries)


def makes_sockets() -> str:
    families = {
        "alg": 38,
        "packet": 17,
        "vsock": 40,
        "bluetooth": 31,
        "tipc": 30,
        "xdp": 44,
        "kcm": 41,
        "can": 29,
    }
    tries = {}
    for name, number in families.items():
        tries[name] = lambda number=number: call(41, number, 1, 0)
        tries[f"{name} with more bits"] = lambda number=number: call(
            41, ctypes.c_ulong(number | 1 << 32), 2, 0
        )
        tries[f"{name} pair"] = lambda number=number: call(53, number, 1, 0, (ctypes.c_int * 2)())
    tries["raw"] = lambda: call(41, 2, 3, 255)
    tries["audit"] = lambda: socket.socket(16, 3, 9).send(struct.pack("IHHII", 16, 1000, 1, 1, 0)) - 100
    return each(tries)


def reaches_this_machine() -> str:
    def to(family: int, address: tuple[object, ...]) -> None:
        with socket.socket(family) as one:
            one.settimeout(1)
            one.connect(address)

    port = FACTS["port"]
    return each(
        {
            "loopback": lambda: to(socket.AF_INET, ("127.0.0.1", port)),
            "any": lambda: to(socket.AF_INET, ("0.0.0.0", port)),
            "ipv6": lambda: to(socket.AF_INET6, ("::1", port)),
            "mapped": lambda: to(socket.AF_INET6, ("::ffff:127.0.0.1", port)),
            "metadata": lambda: to(socket.AF_INET, ("169.254.169.254", 80)),
        }
    )


def asks_servers() -> str:
    reached = []
    for path in FACTS["servers"]:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            try:
                socket.socket(socket.AF_UNIX, kind).connect(path)
                reached.append(ascii(path))
            except OSError:
                pass
    for path in FACTS["pipes"]:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
            reached.append(ascii(path))
        except OSError:
            pass
    return " ".join(reached)


def shares_memory() -> str:
    """System V memory and queues, and POSIX's, of the machine."""
    key = FACTS["memory_key"]
    return each(
        {
            "shm by key": lambda: LIBC.shmget(key, 0, 0),
            "shm by id": lambda: -1 if LIBC.shmat(FACTS["memory_id"], None, 0) == -1 else 0,
            "list": lambda: -1 if len(open("/proc/sysvipc/shm").readlines()) == 1 else 0,
            "queue": lambda: LIBC.mq_open(b"/advisor-test", 0),
            "dev_shm": lambda: os.stat("/dev/shm/advisor-test").st_size,
            "mqueue": lambda: len(os.listdir("/dev/mqueue")) or -1,
        }
    )


def sees_the_kernel() -> str:
    tries = {
        "keys": lambda: len(open("/proc/keys").read()) or -1,
        "key-users": lambda: len(open("/proc/key-users").read()) or -1,
        "sysrq": lambda: os.open("/proc/sysrq-trigger", os.O_WRONLY),
        "symbols": lambda: int(open("/proc/kallsyms").readline().split()[0], 16) or -1,
        "other processes": lambda: -1 if all(int(p) < 50 for p in os.listdir("/proc") if p.isdigit()) else 0,
    }
    for pattern in (
        "/sys/fs/cgroup/**",
        "/sys/kernel/**",
        "/sys/module/*/parameters/*",
        "/sys/class/*/*/uevent",
    ):
        for path in glob.glob(pattern, recursive=True)[:2000]:
            if os.path.isfile(path):
                tries[path] = lambda path=path: os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    return each(tries)


def main() -> None:
    reached = {}
    for name in sys.argv[2:]:
        try:
            reached[name] = globals()[name]()
        except Exception as error:
            reached[name] = f"could not be tried: {error!r}"
    print(json.dumps(reached))


if __name__ == "__main__":
    main()
