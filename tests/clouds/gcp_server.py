"""A local server that answers as the Cloud Billing Catalog API does, with the faults of a bad day."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PROJECT = "acme-training"
PATH = "/v1/services/6F81-5844-456A/skus"
# What must never be shown: servers repeat such things in their error texts.
SECRETS = ("ya29.secret-token", "AIzaSecretKey", "projects/123456789012")
ERRORS = {
    "401": (401, "UNAUTHENTICATED", "CREDENTIALS_MISSING"),
    "403": (403, "PERMISSION_DENIED", "IAM_PERMISSION_DENIED"),
    "403 disabled": (403, "PERMISSION_DENIED", "SERVICE_DISABLED"),
    "429": (429, "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED"),
    "500": (500, "INTERNAL", "INTERNAL"),
    "503": (503, "UNAVAILABLE", "UNAVAILABLE"),
}
BODIES = {
    "garbled": b"<html>welcome to the hotel network</html>",
    "wrong shape": b'{"skus": [{"pricingInfo": "free"}]}',
    "not text": b"\xff\xfe\x00",
    "empty": b"{}",
}


@dataclass
class Behaviour:
    """What the server does; tests change it while it runs.

    Attributes:
        faults: by number of the call from 0: a name of ERRORS or BODIES, "slow", "cut off" or "loop".
        always: fault of all other calls.
        latency_s: added to each call, for benchmarks.
        quotas: of the project `PROJECT`, by region ("global" for its own) and metric.
        calls: queries so far, and headers of each.
        called: set by each call.
    """

    skus: Sequence[dict[str, Any]]
    faults: dict[int, str] = field(default_factory=dict)
    always: str | None = None
    latency_s: float = 0.0
    quotas: dict[tuple[str, str], int] = field(default_factory=dict)
    calls: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    called: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    largest_page: int = 5000


class Server(ThreadingHTTPServer):
    """Listens on a free port of this machine."""

    daemon_threads = True

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behaviour = behaviour

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that went away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        behaviour = self.server.behaviour
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        fault = behaviour.faults.get(len(behaviour.calls), behaviour.always)
        behaviour.calls.append(query)
        behaviour.headers.append(dict(self.headers.items()))
        behaviour.called.set()
        time.sleep(behaviour.latency_s)
        if address.path.startswith(f"/compute/v1/projects/{PROJECT}"):
            self._quotas(fault, of_regions=address.path.endswith("/regions"))
        elif address.path != PATH:
            self._send(404, b"{}")
        elif fault is None or fault == "loop":
            self._send(200, _page(behaviour, query, loop=fault == "loop"))
        else:
            self._fail(fault, query)

    def _quotas(self, fault: str | None, *, of_regions: bool) -> None:
        """Of a project, or of its regions: a list of ``{"metric", "limit", "usage"}`` each."""
        if fault is not None:
            self._fail(fault, {})
            return
        by_region: dict[str, list[dict[str, Any]]] = {}
        for (region, metric), limit in self.server.behaviour.quotas.items():
            by_region.setdefault(region, []).append({"metric": metric, "limit": float(limit), "usage": 0.0})
        items = [{"name": name, "quotas": quotas} for name, quotas in by_region.items() if name != "global"]
        document = {"items": items} if of_regions else {"quotas": by_region.get("global", [])}
        self._send(200, json.dumps(document).encode())

    def _fail(self, fault: str, query: dict[str, str]) -> None:
        self.close_connection = True
        if fault in ERRORS:
            self._send(ERRORS[fault][0], _error(*ERRORS[fault]))
        elif fault in BODIES:
            self._send(200, BODIES[fault])
        elif fault == "slow":
            self.server.behaviour.released.wait(30)
        elif fault == "cut off":
            body = _page(self.server.behaviour, query)
            self._send(200, body[: len(body) // 2], length=len(body))

    def _send(self, status: int, body: bytes, *, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        if self.close_connection:
            # Else the client's next call may meet the end of this connection.
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *args: Any) -> None:
        """Says nothing."""


def _page(behaviour: Behaviour, query: dict[str, str], *, loop: bool = False) -> bytes:
    start = int(query.get("pageToken", "0"))
    end = start + min(int(query.get("pageSize", "5000")), behaviour.largest_page)
    token = str(start if loop else end) if loop or end < len(behaviour.skus) else ""
    return json.dumps({"skus": behaviour.skus[start:end], "nextPageToken": token}).encode()


def _error(code: int, status: str, reason: str) -> bytes:
    message = f"Request with {SECRETS[0]} and key {SECRETS[1]} for {SECRETS[2]} was refused."
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": {"consumer": SECRETS[2]},
    }
    error = {"code": code, "message": message, "status": status, "details": [info]}
    return json.dumps({"error": error}).encode()


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[Server]:
    """A running server, stopped at the end."""
    server = Server(behaviour)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        behaviour.released.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
