"""What metadata services of AWS and GCP say, and that nobody else's answer counts or lasts."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from advisor.core.values import Market
from advisor.receipt.instance import Instance, this_instance

LONG_S = 30.0
IDENTITY = {"instanceType": "g6.xlarge", "region": "us-east-1", "availabilityZone": "us-east-1c"}
AWS = {
    "/latest/api/token": "a-token",
    "/latest/dynamic/instance-identity/document": json.dumps(IDENTITY),
    "/latest/meta-data/placement/availability-zone-id": "use1-az4",
    "/latest/meta-data/instance-life-cycle": "spot",
}
GCP_MACHINE: dict[str, Any] = {
    "machineType": "projects/123/machineTypes/g2-standard-8",
    "zone": "projects/123/zones/europe-west4-b",
    "scheduling": {"automaticRestart": "FALSE", "preemptible": "TRUE"},
}
GCP_PATH = "/computeMetadata/v1/instance/?recursive=true"


@contextmanager
def service(answers: Mapping[str, str | bytes], *, header: tuple[str, str] | None = None) -> Iterator[str]:
    """The URL of a service that answers these paths, to those who send the header."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_token = self.path.endswith("/token")
            may_ask = is_token or header is None or self.headers[header[0]] == header[1]
            is_right = may_ask and is_token == (self.command == "PUT")
            answer = answers.get(self.path) if is_right else None
            self.send_response(404 if answer is None else 200)
            self.end_headers()
            self.wfile.write(answer.encode() if isinstance(answer, str) else answer or b"")

        do_PUT = do_GET  # noqa: N815 - the names that the server calls

        def log_message(self, *_: Any) -> None:
            """Not on the terminal of the tests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def on_aws(**changes: str | None) -> Instance | None:
    answers = {**AWS, **{f"/latest/{path.replace('__', '/')}": text for path, text in changes.items()}}
    token = ("X-aws-ec2-metadata-token", "a-token")
    with service({path: text for path, text in answers.items() if text is not None}, header=token) as url:
        return this_instance(url, most_s=LONG_S)


def on_gcp(**changes: Any) -> Instance | None:
    with service({GCP_PATH: json.dumps(GCP_MACHINE | changes)}, header=("Metadata-Flavor", "Google")) as url:
        return this_instance(url, most_s=LONG_S)


def test_a_machine_of_aws():
    spot = Instance(
        provider="aws", instance_type="g6.xlarge", region="us-east-1", zone="use1-az4", market=Market.SPOT
    )
    assert on_aws() == spot


@pytest.mark.parametrize(
    ("life_cycle", "market"),
    [
        ("on-demand", Market.ON_DEMAND),
        ("capacity-block", Market.CAPACITY_BLOCK),
        ("scheduled", None),
        (None, None),
    ],
)
def test_a_market_that_nobody_names_is_unknown(life_cycle, market):
    instance = on_aws(**{"meta-data__instance-life-cycle": life_cycle})
    assert instance.market is market


def test_a_machine_of_gcp():
    preemptible = Instance(
        provider="gcp", instance_type="g2-standard-8", region="europe-west4", zone="europe-west4-b",
        market=Market.SPOT,
    )  # fmt: skip
    assert on_gcp() == preemptible
    on_demand = on_gcp(scheduling={"preemptible": "FALSE"})
    assert on_demand.market is Market.ON_DEMAND


@pytest.mark.parametrize(
    "answer",
    [b"", b"{", b"[]", b"null", b"\xff", json.dumps(IDENTITY | {"region": "../../etc"}).encode(),
     json.dumps(IDENTITY | {"instanceType": 7}).encode(), b"x" * 200_000],
)  # fmt: skip
def test_an_answer_of_something_else_is_no_machine(answer):
    path = "/latest/dynamic/instance-identity/document"
    with service(AWS | {path: answer}) as url:
        assert this_instance(url, most_s=LONG_S) is None
    with service({GCP_PATH: answer}) as url:
        assert this_instance(url, most_s=LONG_S) is None


def test_nobody_there_is_no_machine():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert this_instance(f"http://127.0.0.1:{unused.getsockname()[1]}", most_s=LONG_S) is None


@pytest.mark.parametrize("url", ["", "http://", "http://127.0.0.1:99999", "nonsense", "http://[::1"])
def test_an_address_that_is_none_is_no_machine(url):
    assert this_instance(url, most_s=LONG_S) is None


def test_a_service_that_answers_letter_by_letter_is_not_waited_for():
    """Each letter comes before the socket's time is over."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def drip() -> None:
            server.settimeout(60)
            connection, _ = server.accept()
            with connection:
                for letter in b"HTTP/1.1 200 OK\r\nA: " + b"x" * 1000:
                    if over.wait(0.05):
                        return
                    connection.send(bytes([letter]))

        thread = threading.Thread(target=drip)
        thread.start()
        start = time.monotonic()
        assert this_instance(f"http://127.0.0.1:{server.getsockname()[1]}", most_s=0.2) is None
        over.set()
        assert time.monotonic() - start < LONG_S
        thread.join()
