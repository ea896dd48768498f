"""The HTTP server: uvicorn's, with a limit of time for anyone who asks, and an end that all hear of."""

import asyncio
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from advisor.serve.access import MOST_HEADER_BYTES, Access
from advisor.serve.site import Site
from advisor.serve.views import Reader

PATIENCE_S = 10.0
"""How long a connection is held until its first request is there, and from one answer to the next request."""
_MOST_AT_ONCE = 200
_DRAIN_S = 10


class Protocol(H11Protocol):
    """uvicorn waits for ever for a first request, and for the rest of one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._patience = self.loop.call_later(PATIENCE_S, self._cut_off)

    def on_response_complete(self) -> None:
        """Wait for the next one."""
        self._patience.cancel()
        self._patience = self.loop.call_later(PATIENCE_S, self._cut_off)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._patience.cancel()
        super().connection_lost(exc)

    def _cut_off(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


class Server(uvicorn.Server):
    """A signal reaches what runs beside it, too, the second one as well."""

    def __init__(self, config: uvicorn.Config, site: Site, stop_beside: Callable[[], object]) -> None:
        super().__init__(config)
        self._site, self._stop_beside = site, stop_beside
        self.is_asked = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- as signals call it
        """End. uvicorn would raise the signal again once it has ended, which would count as the second."""
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = self.is_asked = True
        self._stop_beside()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Who waits still has no answer."""
        await super().shutdown(sockets)
        self._site.close()


def server_of(reader: Reader, access: Access, stop_beside: Callable[[], object]) -> Server:
    """The service, ready to run."""
    site = Site(reader, access)
    # Of a proxy only the header of the user is believed, and by us: uvicorn would change the peer's address.
    config = uvicorn.Config(
        site.app,
        http=Protocol,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        limit_concurrency=_MOST_AT_ONCE,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    return Server(config, site, stop_beside)
