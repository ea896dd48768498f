"""``advisor serve`` on a free port of this machine, over a store that a test has filled."""

import http.client
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import uvicorn

from advisor.config.layers import load_config
from advisor.serve import site
from advisor.serve.hosting import Hosting, host
from advisor.serve.views import Reader
from advisor.store.database import open_store
from advisor.store.ledger import record_recommendation, record_run
from tests.pages import EVIL
from tests.team import make_entry, make_offered, make_run

TOKEN = "0123456789abcdef-of-a-test"
OPTIONS = (
    *(make_offered(f"aws/p{i}", 1.5**i, 900 / 1.9**i) for i in range(6)),
    *(make_offered(f"aws/q{i}", 20.0 + i, 950.0 + i, on_frontier=False) for i in range(30)),
)


def fill(url: str, **changes: Any) -> None:
    """Three jobs, one of which has the worst names there are, and a run of the first."""
    with open_store(url) as store:
        for entry_id, name in (("one", "train.py"), ("two", "tune.py"), ("evil", EVIL)):
            facts = {"script": name, "project": name, "command": f"advisor recommend {name}", "note": name}
            entry = make_entry(entry_id, plan_id="aws/p2", options=OPTIONS, **facts, **changes)
            record_recommendation(store, entry)
        record_run(store, make_run(id="run", recommendation_id="one"))
        record_run(store, make_run(id="evil", project=EVIL, script=EVIL, note=EVIL))


@dataclass(frozen=True)
class Served:
    """Where it listens."""

    port: int

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers by their names in lower case, and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def raw(self, request: bytes) -> bytes:
        """All that is answered to these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(request)
            parts = []
            while part := connection.recv(65_536):
                parts.append(part)
        return b"".join(parts)


@contextmanager
def served(url: str, settings: Mapping[str, object] | None = None, **options: Any) -> Iterator[Served]:
    """The service in a thread, until the end of the block."""
    with patch.dict(os.environ, {"T": TOKEN}):
        config = load_config({"store.url": url, "prices.offline": True, **(settings or {})}, environ={})
        servers: list[uvicorn.Server] = []
        ready, addresses = threading.Event(), []

        def told(address: str) -> None:
            addresses.append(address)
            ready.set()

        made = site.server_of

        def remembered(*arguments: Any) -> uvicorn.Server:
            servers.append(made(*arguments))
            return servers[0]

        with patch.object(site, "server_of", remembered):
            asked = Hosting(port=0, **options)
            thread = threading.Thread(target=host, args=(Reader(config), asked, told), daemon=True)
            thread.start()
            assert ready.wait(60)
        try:
            yield Served(int(addresses[0].rstrip("/").rpartition(":")[2]))
        finally:
            servers[0].should_exit = True
            thread.join()
