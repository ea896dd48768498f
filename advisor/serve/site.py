"""The service as an ASGI application: who asks is checked first, and only then is anything looked up.

It runs on uvicorn, with a limit of time for anyone who asks, and an end that all hear of.
"""

from __future__ import annotations

import asyncio
import hashlib
import signal
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from advisor.core import errors
from advisor.report.document import Document, Lines, PageLink
from advisor.report.words import error_text
from advisor.report.writers.html import to_page, vega_runtime
from advisor.report.writers.pictures import can_draw
from advisor.report.writers.text_formats import to_json
from advisor.serve.access import MOST_HEADER_BYTES, Access, Refusal
from advisor.serve.views import QueryError, Reader, View, api_document, read_query, views_of

if TYPE_CHECKING:
    from starlette.requests import Request

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGI = Callable[[Message, Receive, Send], Awaitable[None]]

FRESH_S = 10.0
"""How long an answer is given again: many readers cost one look at the store."""
# As many times as long it is given while a new one is made.
_STALE = 3
_MOST_KEPT = 256
_MOST_PATH, _MOST_QUERY = 512, 2048
# Answers computed at once; the others wait.
_WORKERS = 2
_MOST_WAITING = 32
_HEADERS = {
    "cache-control": "private, no-store",
    # A page's own policy says which scripts run: those that we wrote.
    "content-security-policy": "frame-ancestors 'none'; object-src 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
_LOG_IN = 'Basic realm="advisor", charset="UTF-8", Bearer realm="advisor"'
# Its address changes with its bytes.
_FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}


class BusyError(errors.AdvisorError):
    """More answers are asked for than can be made."""


_STATUS: Mapping[type[errors.AdvisorError], int] = {
    QueryError: 400,
    # Our own settings are wrong; what is left of wrong inputs is a name that nothing has.
    errors.ConfigError: 500,
    errors.PolicyError: 500,
    errors.BillError: 500,
    errors.InputError: 404,
    errors.NoOfferError: 404,
    errors.StoreError: 503,
    BusyError: 503,
}
# Upper ends of the buckets of the histogram.
_BUCKETS_S = (0.005, 0.025, 0.1, 0.5, 2.5)


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer that is being made or is there, when that began, and the one before, while it is young."""

    task: asyncio.Future[bytes]
    begun: float
    before: bytes | None
    before_until: float


class Answers:
    """Answers of the last seconds. Who asks while one is made has the one before, or waits.

    Args:
        clock: in seconds.
        stale: how many times as long as it is fresh an answer is given while a new one is made.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, stale: int = _STALE) -> None:
        self._kept: dict[object, _Kept] = {}
        self._making: set[asyncio.Future[bytes]] = set()
        self._clock, self._stale = clock, stale
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="answers")

    async def of(self, key: object, make: Callable[[], bytes]) -> bytes:
        """What `make` gives for the key, or gave a moment ago; what it raised is raised again.

        Raises BusyError: too many answers wait to be made.
        """
        kept, now = self._kept.get(key), self._clock()
        if kept is None or (now >= kept.begun + FRESH_S and kept.task.done()):
            before = kept.task.result() if kept and not kept.task.exception() else None
            until = kept.begun + self._stale * FRESH_S if kept else now
            task = self._begin(make)
            self._kept.pop(key, None)
            kept = self._kept[key] = _Kept(task, now, before, until)
            if len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        if kept.before is not None and now < kept.before_until and not kept.task.done():
            return kept.before
        # Anyone who goes away leaves it to the others.
        return await asyncio.shield(kept.task)

    def _begin(self, make: Callable[[], bytes]) -> asyncio.Future[bytes]:
        if len(self._making) >= _MOST_WAITING:
            raise BusyError(f"{_MOST_WAITING} other answers are being made: ask again in a moment.")
        task = asyncio.get_running_loop().run_in_executor(self._pool, make)
        self._making.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Future[bytes]) -> None:
        """Its failure is looked at, whether someone asks again or not."""
        self._making.discard(task)
        _ = task.cancelled() or task.exception()

    def close(self) -> None:
        """Make none any more; what has begun ends by itself."""
        for task in tuple(self._making):
            task.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(slots=True)
class Served:
    """Counts of requests by path of the view and status, and how long they took."""

    num: Counter[tuple[str, int]] = field(default_factory=Counter)
    buckets: Counter[float] = field(default_factory=Counter)
    total_s: float = 0.0

    def add(self, path: str, status: int, took_s: float) -> None:
        """One more."""
        self.num[path, status] += 1
        self.total_s += took_s
        for bound in _BUCKETS_S:
            self.buckets[bound] += took_s <= bound

    def lines(self) -> Iterator[str]:
        """As Prometheus reads them."""
        yield "# TYPE advisor_requests_total counter"
        for (path, status), num in sorted(self.num.items()):
            yield f'advisor_requests_total{{path="{path}",status="{status}"}} {num}'
        yield "# TYPE advisor_request_seconds histogram"
        total = self.num.total()
        for bound in _BUCKETS_S:
            yield f'advisor_request_seconds_bucket{{le="{bound}"}} {self.buckets[bound]}'
        yield f'advisor_request_seconds_bucket{{le="+Inf"}} {total}'
        yield f"advisor_request_seconds_sum {self.total_s:.6f}"
        yield f"advisor_request_seconds_count {total}"


class RequestGuard:
    """First of all: method, sizes, name of the host, and who asks. All answers have headers that are safe."""

    def __init__(self, app: ASGI, access: Access, served: Served) -> None:
        self._app, self._access, self._served = app, access, served

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            raise RuntimeError("only HTTP is spoken here")
        begun, status = time.perf_counter(), 500

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name for name, _ in message["headers"]}
                ours = [header for header in _RAW_HEADERS if header[0] not in given]
                message = {**message, "headers": [*message["headers"], *ours]}
            await send(message)

        refusal = self._refusal(scope)
        try:
            app = self._app
            if refusal is not None:
                headers = {"allow": "GET, HEAD"} if refusal.status == 405 else {}
                headers |= {"www-authenticate": _LOG_IN} if refusal.status == 401 else {}
                app = _json({"error": refusal.why}, refusal.status, headers)
            await app(scope, receive, send_safely)
        finally:
            path = getattr(scope.get("route"), "path", "other")
            self._served.add(path, status, time.perf_counter() - begun)

    def _refusal(self, scope: Message) -> Refusal | None:
        if scope["method"] not in ("GET", "HEAD"):
            return Refusal(405, "only GET and HEAD: nothing can be changed here")
        if len(scope["raw_path"]) > _MOST_PATH or len(scope["query_string"]) > _MOST_QUERY:
            return Refusal(414, f"an address has at most {_MOST_PATH} characters, its query {_MOST_QUERY:,}")
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if (b"sec-fetch-site", b"cross-site") in headers and (b"sec-fetch-dest", b"document") not in headers:
            return Refusal(403, "pages of other sites may link to this one, no more")
        if sum(len(name) + len(value) for name, value in headers) > MOST_HEADER_BYTES:
            return Refusal(431, f"headers have at most {MOST_HEADER_BYTES:,} bytes")
        if any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
            for name, value in headers
        ):
            return Refusal(400, "a request that reads has no body")
        if scope["path"] == "/healthz":  # a health check has no token
            return None
        peer = (scope.get("client") or ("",))[0]
        return self._access.why_not_host(headers) or self._access.why_not(headers, peer)


def _json(
    facts: Mapping[str, object], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(to_json(facts), status, headers, media_type="application/json")


class Site:
    """All addresses of the service."""

    def __init__(self, reader: Reader, access: Access, answers: Answers | None = None) -> None:
        self._reader = reader
        self._answers = answers or Answers()
        # Anyone who watches the service neither waits behind reports nor hears what was.
        self._watched = Answers(stale=1)
        self._views = views_of(reader)
        self._served = Served()
        self._api = to_json(api_document(self._views)).encode()
        # A program makes it, and no request may start one.
        self._vega = ((can_draw() and vega_runtime()) or "").encode()
        self._vega_path = f"/vega-{hashlib.sha256(self._vega).hexdigest()[:16]}.js" if self._vega else None
        routes = [
            Route("/", self._first),
            Route("/healthz", self._health),
            Route("/metrics", self._metrics),
            Route("/api/openapi.json", self._openapi),
            *([Route(self._vega_path, self._vega_script)] if self._vega_path else []),
            *(
                Route(f"{prefix}{view.path}", self._endpoint(view, write, kind))
                for view in self._views
                for prefix, write, kind in (
                    ("", self._page, "text/html"),
                    ("/api", _as_json, "application/json"),
                )
            ),
        ]
        starlette = Starlette(routes=routes, exception_handlers={404: self._nothing_here})
        # What would repeat the host of a request in an address.
        starlette.router.redirect_slashes = False
        self.app = RequestGuard(starlette, access, self._served)

    def close(self) -> None:
        """Make no answer any more."""
        self._answers.close()
        self._watched.close()

    def _endpoint(
        self, view: View, write: Callable[[View, Document], bytes], kind: str
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            names, given = tuple(request.path_params.values()), tuple(request.query_params.multi_items())

            def make() -> bytes:
                query = read_query(view.query, given)
                return write(view, view.document(query, *names))

            try:
                body = await self._answers.of((kind, view.path, names, given), make)
            except errors.AdvisorError as error:
                return self._failed(error, kind)
            return Response(body, media_type=kind)

        return answer

    def _failed(self, error: errors.AdvisorError, kind: str) -> Response:
        status = next((status for type_, status in _STATUS.items() if isinstance(error, type_)), 500)
        why = error_text(error)
        if kind == "application/json":
            return _json({"error": why}, status)
        titles = {400: "This cannot be asked", 404: "Nothing to show", 503: "This cannot be shown now"}
        document = Document(facts={}, blocks=(Lines((why,)),), title=titles.get(status, "This went wrong"))
        return Response(to_page(document, self._links("")), status, media_type=kind)

    def _page(self, view: View, document: Document) -> bytes:
        title = document.title or view.title
        return to_page(replace(document, title=title), self._links(view.path), self._vega_path).encode()

    def _links(self, here: str) -> Sequence[PageLink]:
        return tuple(
            PageLink(view.title, "" if view.path == here else view.path) for view in self._views if view.title
        )

    async def _first(self, _: Request) -> Response:
        return RedirectResponse(self._views[0].path, 302)

    async def _nothing_here(self, request: Request, _: Exception) -> Response:
        is_api = request.url.path.startswith("/api")
        return self._failed(
            errors.InputError("nothing is here."), "application/json" if is_api else "text/html"
        )

    async def _vega_script(self, _: Request) -> Response:
        return Response(self._vega, headers=_FOR_EVER, media_type="text/javascript")

    async def _openapi(self, _: Request) -> Response:
        return Response(self._api, media_type="application/json")

    async def _health(self, _: Request) -> Response:
        """Whether the database can be read; without a token nothing else is shown."""

        def look() -> bytes:
            with self._reader.store():
                return b""

        try:
            await self._watched.of("health", look)
        except errors.StoreError:
            return _json({"status": "the database cannot be read"}, 503)
        return _json({"status": "ok"})

    async def _metrics(self, _: Request) -> Response:
        def look() -> bytes:
            return "".join(f"{line}\n" for line in self._reader.metrics()).encode()

        try:
            gauges = await self._watched.of("metrics", look)
        except errors.StoreError:
            gauges = b"advisor_store_up 0\n"
        counters = "\n".join(self._served.lines()).encode()
        return Response(gauges + counters + b"\n", media_type="text/plain; version=0.0.4; charset=utf-8")


def _as_json(_: View, document: Document) -> bytes:
    return to_json(document.facts).encode()


PATIENCE_S = 10.0
"""How long a connection is held until its first request is there, and from one answer to the next request."""
_MOST_AT_ONCE = 200
_DRAIN_S = 10


class PatientProtocol(H11Protocol):
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
        http=PatientProtocol,
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
