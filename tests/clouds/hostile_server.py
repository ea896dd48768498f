"""A server on this machine that answers every call in one way that no honest cloud would.

with attacking(dripping_body) as url:
    ...
"""

import gzip
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STEP_S = 0.1


class Handler(BaseHTTPRequestHandler):
    """Reads the call, and leaves the answer to the attack of its server."""

    protocol_version = "HTTP/1.1"
    server: "_Server"

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.close_connection = True
        with suppress(OSError):
            self.server.attack(self)

    do_GET = answer  # noqa: N815 - the name that http.server calls
    do_POST = answer  # noqa: N815

    def drip(self, chunk: bytes) -> None:
        """A chunk now and then, until the server stops."""
        while not self.server.stopped.wait(STEP_S):
            self.wfile.write(chunk)

    def reply(self, body: bytes, *, status: int = 200, **headers: str) -> None:
        """A whole reply, after which the next call may come."""
        self.close_connection = False
        self.head(status, **{"Content-Length": str(len(body))} | headers)
        self.wfile.write(body)

    def head(self, status: int = 200, **headers: str) -> None:
        """What comes before the body; underscores of names stand for hyphens."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()


Attack = Callable[[Handler], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    attack: Attack
    stopped: threading.Event

    def handle_error(self, *_: Any) -> None:
        """Clients that went away are what is wanted."""


@contextmanager
def attacking(attack: Attack) -> Iterator[str]:
    """Where a server answers so until the end of the block."""
    server = _Server(("127.0.0.1", 0), Handler)
    server.attack, server.stopped = attack, threading.Event()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()


# --- Attacks -----------------------------------------------------------------------------------------


def dripping_body(call: Handler) -> None:
    call.head(Content_Length="1000000000")
    call.drip(b" ")


def dripping_head(call: Handler) -> None:
    call.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    call.drip(b"x")


def silent(call: Handler) -> None:
    call.server.stopped.wait()


SLOW = (dripping_body, dripping_head, silent)
"""What only a limit of time ends."""


def closing(call: Handler) -> None:
    """Takes the call and closes the connection."""


def endless_body(call: Handler) -> None:
    call.head(Transfer_Encoding="chunked")
    chunk = b" " * 2**20
    while not call.server.stopped.is_set():
        call.wfile.write(b"100000\r\n" + chunk + b"\r\n")


def zip_bomb(call: Handler) -> None:
    """A tenth of a megabyte that unpacks to a hundred."""
    call.reply(gzip.compress(bytes(10**8)), Content_Encoding="gzip", Content_Type="application/json")


def redirecting(call: Handler) -> None:
    call.reply(b"", status=302, Location="http://127.0.0.1:9/elsewhere")


def web_page(call: Handler) -> None:
    call.reply(b"<!doctype html><h1>Please log in</h1>", Content_Type="text/html")


def image(call: Handler) -> None:
    call.reply(b"\x89PNG\r\n\x1a\n" + bytes(1000), Content_Type="image/png")


def cut_off(call: Handler) -> None:
    call.reply(b'{"skus": [{"skuId": "A', Content_Type="application/json")


def deep(call: Handler) -> None:
    call.reply(b"[" * 10**6, Content_Type="application/json")


def entities(call: Handler) -> None:
    """XML whose entities stand for a thousand million others."""
    levels = (f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    call.reply(f'<!DOCTYPE x [<!ENTITY e0 "x">{"".join(levels)}]><x>&e9;</x>'.encode())


def throttling(call: Handler) -> None:
    error = {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}
    body = b"<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></Response>"
    is_google = call.command == "GET"
    call.reply(json.dumps({"error": error}).encode() if is_google else body, status=429)


_NUMBERS = itertools.count()


def endless_pages(call: Handler) -> None:
    """Each page names another one, and holds nothing."""
    token = f"page-{next(_NUMBERS)}"
    if call.command == "GET":
        call.reply(json.dumps({"skus": [], "nextPageToken": token}).encode(), Content_Type="application/json")
    else:
        call.reply(f"<R><regionInfo/><spotPriceHistorySet/><nextToken>{token}</nextToken></R>".encode())


def pages_in_a_ring(call: Handler) -> None:
    """Two pages that name each other."""
    token = "ab"[next(_NUMBERS) % 2]
    body = {"skus": [], "nextPageToken": token}
    is_google = call.command == "GET"
    xml = f"<R><spotPriceHistorySet/><nextToken>{token}</nextToken></R>"
    call.reply(json.dumps(body).encode() if is_google else xml.encode())
