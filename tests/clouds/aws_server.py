"""A fake AWS on a port of this machine: a real HTTP server that boto3 reaches by ``AWS_ENDPOINT_URL_*``.

with running(small_world()) as aws:
    aws.fail("DescribeRegions", DENIED)
"""

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl

import botocore.loaders

from tests.clouds.aws_replies import EC2, PAGED, page, products, xml_reply
from tests.clouds.aws_world import World

# It keeps the descriptions of services that it has read, and each session would read megabytes anew.
_loader_of = cache(botocore.loaders.create_loader)
# What no message may repeat.
SECRET = "arn:aws:iam::123456789012:user/bob AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """How a call goes wrong: an error reply, or a body that is none.

    Attributes:
        body: sent as it is with the status.
        missing_bytes: promised in the header and never sent.
        hangs: no answer until the server stops.
        drips: a byte of an endless body every fifth of a second until then.

    Status 0 closes the connection without an answer.
    """

    status: int = 200
    code: str = ""
    body: bytes = b""
    missing_bytes: int = 0
    hangs: bool = False
    drips: bool = False


DENIED = Fault(status=403, code="UnauthorizedOperation")
DENIED_JSON = Fault(status=400, code="AccessDeniedException")
THROTTLED = Fault(status=429, code="RequestLimitExceeded")
BROKEN = Fault(status=500, code="InternalError")
SLOW = Fault(hangs=True)
DRIPPING = Fault(drips=True)
DROPPED = Fault(status=0)
CUT_OFF = Fault(body=b"<?xml", missing_bytes=1000)
GARBLED = Fault(body=b"<html><body>proxy</body></html>")


@dataclass(slots=True)
class FakeAws:
    """The state of the server.

    Attributes:
        url: where it listens.
        calls: operation and region of each call, in order of arrival.
        latency_s: waited before each answer, for measurements.
        page_size: rows of a page at most.
        honours_filters: whether the price list looks at more than the region, and EC2 at filters at all.
        meets: calls of the price list that must have come in before the first is answered.
        answers: rows that were asked for already, so that pages of a long list cost little.
    """

    world: World
    latency_s: float = 0.0
    page_size: int = 1000
    honours_filters: bool = True
    url: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    meets: int = 0
    answers: dict[tuple[Any, ...], list[Any]] = field(default_factory=dict)
    stopped: threading.Event = field(default_factory=threading.Event)
    _faults: dict[tuple[str, str | None], list[Fault]] = field(default_factory=dict)
    _met: threading.Condition = field(default_factory=threading.Condition)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fail(self, operation: str, fault: Fault, *, region: str | None = None, times: int = 1000) -> None:
        """Lets the next calls of an operation go wrong, in one region or in all."""
        self._faults[operation, region] = [fault] * times

    def noted(self, operation: str, region: str) -> Fault | None:
        """Notes a call; the fault that it shall have, if any."""
        with self._lock:
            self.calls.append((operation, region))
            left = self._faults.get((operation, region)) or self._faults.get((operation, None))
            return left.pop() if left else None

    def meet(self) -> None:
        """Waits for the other calls of the price list that must come in at the same time."""
        with self._met:
            self.meets -= 1
            self._met.notify_all()
            self._met.wait_for(lambda: self.meets <= 0, timeout=60)

    def environment(self) -> dict[str, str]:
        """What leads boto3 here, with made-up credentials."""
        return {
            "AWS_ENDPOINT_URL_EC2": self.url,
            "AWS_ENDPOINT_URL_PRICING": self.url,
            "AWS_ENDPOINT_URL_SERVICE_QUOTAS": self.url,
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }


@contextmanager
def running(world: World, **options: Any) -> Iterator[FakeAws]:
    """A server until the end of the block."""
    aws = FakeAws(world=world, **options)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"aws": aws}))
    aws.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with patch.object(botocore.loaders, "create_loader", _loader_of):
            yield aws
    finally:
        aws.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True
    block_on_close = False


class _Handler(BaseHTTPRequestHandler):
    aws: FakeAws
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        scope = re.search(r"Credential=[^/]+/\d+/([^/]+)/", self.headers.get("Authorization", ""))
        region = scope[1] if scope else ""
        if self.aws.latency_s:
            time.sleep(self.aws.latency_s)
        try:
            if target := self.headers.get("X-Amz-Target"):
                self._json(target.partition(".")[2], region, json.loads(content))
            else:
                arguments = dict(parse_qsl(content.decode()))
                self._ec2(arguments["Action"], region, arguments)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _ec2(self, operation: str, region: str, arguments: Mapping[str, str]) -> None:
        if fault := self.aws.noted(operation, region):
            error = f"<Error><Code>{fault.code}</Code><Message>{SECRET}</Message></Error>"
            self._fail(fault, f"<Response><Errors>{error}</Errors></Response>".encode())
            return
        key, rows_of = EC2[operation]
        size = self.aws.page_size if operation in PAGED else len(self.aws.world.zones) + 1000
        size = min(size, int(arguments.get("MaxResults", size)))
        if not self.aws.honours_filters:
            arguments = {key: value for key, value in arguments.items() if not key.startswith("Filter.")}
        question = (operation, region, *(arg for arg in arguments.items() if arg[0] != "NextToken"))
        if question not in self.aws.answers:
            self.aws.answers[question] = rows_of(self.aws.world, region, arguments)
        rows, token = page(self.aws.answers[question], arguments.get("NextToken", ""), size)
        self._send(200, xml_reply(operation, {key: rows, "nextToken": token}))

    def _json(self, operation: str, region: str, request: Mapping[str, Any]) -> None:
        if operation == "GetProducts":
            self.aws.meet()
            region = next(f["Value"] for f in request["Filters"] if f["Field"] == "regionCode")
        if fault := self.aws.noted(operation, region):
            self._fail(fault, json.dumps({"__type": fault.code, "Message": SECRET}).encode())
        elif operation == "GetProducts":
            products_named = products(self.aws.world, request, honours_filters=self.aws.honours_filters)
            size = min(int(request.get("MaxResults", 100)), 100, self.aws.page_size)
            rows, token = page(products_named, request.get("NextToken", ""), size)
            reply = {"FormatVersion": "aws_v1", "PriceList": rows} | ({"NextToken": token} if token else {})
            self._send(200, json.dumps(reply).encode())
        else:
            self._quota(request["QuotaCode"])

    def _quota(self, code: str) -> None:
        if code in self.aws.world.quotas:
            quota = {"QuotaCode": code, "ServiceCode": "ec2", "Value": self.aws.world.quotas[code]}
            self._send(200, json.dumps({"Quota": quota}).encode())
        else:
            self._send(400, json.dumps({"__type": "NoSuchResourceException", "Message": SECRET}).encode())

    def _fail(self, fault: Fault, error: bytes) -> None:
        if fault.hangs or not fault.status:
            self.close_connection = True
            if fault.hangs:
                self.aws.stopped.wait()
            return
        if fault.drips:
            self._send(200, b"<", missing_bytes=10**9)
            while not self.aws.stopped.wait(0.2):
                self.wfile.write(b" ")
        body = error if fault.code else fault.body
        self._send(fault.status, body, missing_bytes=fault.missing_bytes)

    def _send(self, status: int, body: bytes, *, missing_bytes: int = 0) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + missing_bytes))
        self.end_headers()
        self.wfile.write(body)
        if missing_bytes:
            self.close_connection = True
