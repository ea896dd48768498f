"""The system calls that a sandboxed script does without, as a program for the kernel's filter (seccomp).

Namespaces do not divide everything: keyrings and vsock are the machine's, and a user namespace of the
script's own would give it back the capabilities that it lost. What is refused looks to the script like a
kernel that does not have it, so that libraries do without.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

# Offsets in the kernel's struct seccomp_data; of arguments the lower half, on little-endian machines.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_ANY_BIT, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NEW_USER_NAMESPACE = 0x10000000
# Unix, IPv4, IPv6 and netlink, which lists network interfaces. Of these the network namespace has its own.
_FAMILIES = (1, 2, 10, 16)
# Typing at a terminal (TIOCSTI), or pasting into a console (TIOCLINUX).
_TERMINAL_REQUESTS = (0x5412, 0x541C)
# Numbers of system calls from here on are those of x32, which the rules would not know.
_X32 = 0x40000000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """What the kernel calls an architecture, and the numbers of its system calls."""

    audit: int
    calls: dict[str, int]


# Their numbers are the same everywhere.
_EVERYWHERE = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435}
_MACHINES = {
    "x86_64": _Machine(
        audit=0xC000003E,
        calls=_EVERYWHERE
        | {
            "socket": 41, "socketpair": 53, "clone": 56, "unshare": 272, "ioctl": 16, "keyctl": 250,
            "add_key": 248, "request_key": 249, "userfaultfd": 323, "bpf": 321, "perf_event_open": 298,
            "setns": 308, "syslog": 103,
        },
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        calls=_EVERYWHERE
        | {
            "socket": 198, "socketpair": 199, "clone": 220, "unshare": 97, "ioctl": 29, "keyctl": 219,
            "add_key": 217, "request_key": 218, "userfaultfd": 282, "bpf": 280, "perf_event_open": 241,
            "setns": 268, "syslog": 116,
        },
    ),
}  # fmt: skip
# io_uring makes sockets without the call of that name. The C library takes clone where there is no clone3,
# whose flags a filter cannot see.
_MISSING = (
    "keyctl", "add_key", "request_key", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "userfaultfd", "bpf", "perf_event_open", "setns", "syslog", "clone3",
)  # fmt: skip


def filter_program() -> bytes | None:
    """The program for this machine; None where the numbers of its system calls are not known here."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return None
    calls = machine.calls
    program = [
        _step(_LOAD, _ARCHITECTURE),
        # A 32-bit program has other numbers.
        _step(_JUMP_IF_EQUAL, machine.audit, then=1),
        _refuse(errno.ENOSYS),
        _step(_LOAD, _NUMBER),
        _step(_JUMP_IF_AT_LEAST, _X32, otherwise=1),
        _refuse(errno.ENOSYS),
    ]
    for name in _MISSING:
        program += [_step(_JUMP_IF_EQUAL, calls[name], otherwise=1), _refuse(errno.ENOSYS)]
    for name in ("clone", "unshare"):
        namespace = [_step(_JUMP_IF_ANY_BIT, _NEW_USER_NAMESPACE, otherwise=1), _refuse(errno.EPERM)]
        program += _of_call(calls[name], 0, namespace)
    for name in ("socket", "socketpair"):
        known = [
            _step(_JUMP_IF_EQUAL, family, then=len(_FAMILIES) - at) for at, family in enumerate(_FAMILIES)
        ]
        program += _of_call(calls[name], 0, [*known, _refuse(errno.EAFNOSUPPORT)])
    for request in _TERMINAL_REQUESTS:
        typing = [_step(_JUMP_IF_EQUAL, request, otherwise=1), _refuse(errno.EPERM)]
        program += _of_call(calls["ioctl"], 1, typing)
    return b"".join([*program, _step(_RETURN, _ALLOW)])


def _of_call(number: int, argument: int, rules: list[bytes]) -> list[bytes]:
    """Rules on an argument of one call; the call's number is loaded before and after."""
    body = [_step(_LOAD, _ARGUMENTS + 8 * argument), *rules, _step(_LOAD, _NUMBER)]
    return [_step(_JUMP_IF_EQUAL, number, otherwise=len(body)), *body]


def _refuse(number: int) -> bytes:
    return _step(_RETURN, _REFUSE | number)


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction of classic BPF; the jumps count the instructions to leave out."""
    return struct.pack("=HBBI", code, then, otherwise, value)
