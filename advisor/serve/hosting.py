"""Where the service listens, and how it begins and ends."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from advisor.core.errors import InputError
from advisor.delivery.channel import SecretError, Secrets
from advisor.serve.access import HOST_NAME, LOOPBACK, Access
from advisor.store.database import existing_store, open_store

if TYPE_CHECKING:
    from advisor.config.settings import StoreSettings
    from advisor.serve.views import Reader

_SHORTEST_TOKEN = 16
_HEADER = re.compile(r"[a-z][a-z0-9-]{0,63}")
# What browsers and proxies send of anybody.
_OF_ANYBODY = re.compile(
    r"authorization|connection|cookie|forwarded|host|keep-alive|origin|pragma|priority|range|referer|te|"
    r"user-agent|via|x-forwarded-(by|for|host|port|prefix|proto|scheme|server|ssl)|x-real-ip|x-request-id|"
    r"(accept|cache|content|if|proxy|sec|transfer|upgrade)(-.*)?"
)
_SWITCH_S = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosting:
    """Where to listen, and who may read."""

    address: str = "127.0.0.1"
    """Of an interface; a port of 0 is any free one."""
    port: int = 8321
    token: str | None = None
    """``env:NAME`` or ``file:PATH``."""
    proxies: tuple[str, ...] = ()
    """Addresses or networks whose `user_header` is believed."""
    user_header: str = "X-Forwarded-User"
    names: tuple[str, ...] = ()
    """Host names under which the service is called, besides those of this machine's loopback."""

    def access(self) -> Access:
        """Who may read.

        Raises InputError: a token, network, name or header cannot be, or everybody could read from elsewhere.
        """
        header = self.user_header.lower()
        if not _HEADER.fullmatch(header) or _OF_ANYBODY.fullmatch(header):
            raise InputError(
                f"`user_header` {self.user_header!r} names no header of a user such as X-Forwarded-User."
            )
        names = {name.lower().rstrip(".") for name in self.names}
        if wrong := sorted(name for name in names if not HOST_NAME.fullmatch(name)):
            raise InputError(f"`name` {wrong[0]!r}: write a host's name alone, such as gpu.example.org.")
        try:
            interface = ip_address(self.address)
            proxies = tuple(ip_network(one) for one in self.proxies)
        except ValueError as error:
            raise InputError(f"{error}: write an address (127.0.0.1) or a network (10.0.0.0/24).") from None
        own = f"[{interface}]" if interface.version == 6 else str(interface)
        access = Access(
            token_sha256=None if self.token is None else _digest(self.token),
            proxies=proxies,
            user_header=header,
            hosts=LOOPBACK | {own} | names,
        )
        if access.is_open and not interface.is_loopback:
            raise InputError(
                f"others reach {self.address}, so say who may read, with `token` or `proxy` (docs/serve.md),"
                " or listen on 127.0.0.1."
            )
        return access

    def listen(self) -> socket.socket:
        """A socket that clients can connect to.

        Raises InputError: the port is in use, or the address is not this machine's.
        """
        family = socket.AF_INET6 if ":" in self.address else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((self.address, self.port))
            bound.listen()
        except OSError as error:
            bound.close()
            is_used = error.errno == errno.EADDRINUSE
            why = "another program listens there" if is_used else error.strerror
            raise InputError(
                f"cannot listen on {self.address} port {self.port}: {why}. Choose another `port`."
            ) from None
        return bound


def _digest(reference: str) -> bytes:
    if not reference.startswith(("env:", "file:")):
        raise InputError("`token` is env:NAME or file:PATH: others can read a command line.")
    try:
        token = Secrets(os.environ).read(reference)
    except SecretError as error:
        raise InputError(f"`token`: {error}.") from None
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or " " in token:
        raise InputError(
            f"`token` needs at least {_SHORTEST_TOKEN} letters and digits: `openssl rand -hex 32`."
        )
    return hashlib.sha256(token.encode()).digest()


def check_store(database: StoreSettings, *, may_make: bool) -> None:
    """Refuse to serve a database that is not there.

    Raises:
        InputError: there is none, and it may not be made.
        StoreError: it cannot be read.
    """
    with open_store(database.url) if may_make else existing_store(database.url) as store:
        if store is None:
            raise InputError(
                "there is no database to show yet: `advisor recommend --record` and `advisor run` fill it;"
                " store.url names another one."
            )


@dataclass(frozen=True, slots=True)
class Beside:
    """What runs in a thread of its own meanwhile, until it is stopped."""

    run: Callable[[], None]
    stop: Callable[[], object]


def host(reader: Reader, hosting: Hosting, told: Callable[[str], None], beside: Beside | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        told: called with the address.
        beside: such as the schedules; the service ends where it fails.

    Raises:
        Exception: what runs beside it failed.
        InputError: it cannot listen there, or the extra is not installed.
    """
    try:
        from advisor.serve.site import server_of
    except ImportError as error:
        raise InputError(
            f"the service needs starlette and uvicorn ({error}): pip install 'gpu-advisor[serve]' in"
            " advisor's own environment."
        ) from error
    server = server_of(reader, hosting.access(), beside.stop if beside else lambda: None)
    with hosting.listen() as bound:
        address, port = bound.getsockname()[:2]
        failures: list[Exception] = []

        def run_beside(one: Beside) -> None:
            try:
                one.run()
            except Exception as error:  # noqa: BLE001 -- is raised by the thread that waits for it
                failures.append(error)
            finally:
                server.should_exit = True

        thread = None if beside is None else threading.Thread(target=run_beside, args=(beside,))
        told(f"http://{f'[{address}]' if ':' in address else address}:{port}/")
        if thread is not None:
            thread.start()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, server.handle_exit)
        # A thread that makes an answer must not hold up answers that are there already.
        sys.setswitchinterval(_SWITCH_S)
        try:
            server.run(sockets=[bound])
        finally:
            if beside is not None and thread is not None:
                if not server.is_asked:
                    beside.stop()
                thread.join()
    for failure in failures:
        raise failure
