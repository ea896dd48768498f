"""A real HTTP server on this machine that takes POSTs, and answers as a test wants it."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes out; `resets` drops the connection instead, `hangs` says nothing until the server stops."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    resets: bool = False
    hangs: bool = False


@dataclass(slots=True)
class HttpServer:
    """What it was sent, and how it answers: by its next reply, then by its rule."""

    rule: Callable[[Request], Reply] = lambda _: Reply()
    replies: list[Reply] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    stopped: threading.Event = field(default_factory=threading.Event)
    was_asked: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(server: HttpServer | None = None) -> Iterator[HttpServer]:
    """The server while it runs."""
    server = server or HttpServer()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_port}"
    try:
        yield server
    finally:
        server.stopped.set()
        http.shutdown()
        thread.join()
        http.server_close()


def _handler(server: HttpServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(
                method=self.command, path=self.path, headers=dict(self.headers.items()), body=body
            )
            server.requests.append(request)
            reply = server.replies.pop(0) if server.replies else server.rule(request)
            server.was_asked.set()
            if reply.hangs:
                server.stopped.wait()
                return
            if reply.resets:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        do_POST = do_GET = _take  # noqa: N815 - names of http.server

        def log_message(self, *_: Any) -> None:
            """Not on the terminal of the tests."""

    return Handler
