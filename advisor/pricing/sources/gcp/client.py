"""Calls of the Cloud Billing Catalog API, and errors in words that say what to do."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as HTTPTimeoutError

from advisor.core.deadlines import LateError, left_s, within
from advisor.core.units import format_duration
from advisor.pricing.sources.gcp.skus import PriceTier, Pricing, Sku, recognise
from advisor.pricing.sources.http_downloads import Allowance, LongReplyError, read_whole
from advisor.pricing.sources.protocol import Credentials

if TYPE_CHECKING:
    from google.auth.transport.requests import AuthorizedSession
    from google.cloud.billing_v1 import CloudCatalogClient
    from google.cloud.billing_v1.types import ListSkusResponse, PricingInfo

API = "cloudbilling.googleapis.com"
_LOGIN = (
    "Log in with `gcloud auth application-default login`, name a key file in"
    " GOOGLE_APPLICATION_CREDENTIALS, or set an API key as GOOGLE_API_KEY."
)
_BY_STATUS = {
    401: f"Google refused the credentials: they are expired or revoked. {_LOGIN}",
    429: "too many requests (429): the quota of the Cloud Billing API is used up. Try again in a minute.",
}
_DISABLED = (
    "the Cloud Billing API is not enabled in the project of the credentials: run"
    f" `gcloud services enable {API}` there and wait a few minutes."
)
_DENIED = (
    f"permission denied (403): enable {API} in the project that is billed for calls, and give the account the"
    " role roles/serviceusage.serviceUsageConsumer there. A key in GOOGLE_API_KEY must be allowed to call it."
)
_UNREACHABLE = f"cannot reach {API}: check the network, the proxy and the firewall."
_TIMEOUT = "the Cloud Billing API did not answer in time. Try again later."
_TOO_LATE = (
    "The call was given up after {limit}, retries included. Try again later; check the network and the proxy."
)
_TOO_LONG = (
    "the reply of the Cloud Billing API was given up: it holds {error}, which no true one does."
    " Check the proxy."
)
_BROKEN = "the Cloud Billing API sent a reply that is cut off or cannot be read. Try again; check the proxy."


class BrokenReplyError(Exception):
    """A reply that can be parsed, but is no page of the price list."""


def passes_by_itself(error: Exception) -> bool:
    """Whether the same call may succeed in a moment."""
    from google.api_core.exceptions import ServerError, TooManyRequests
    from google.auth.exceptions import TransportError
    from google.protobuf.json_format import ParseError

    # A reply that was cut off is parsed as far as it goes.
    passing = (ServerError, TooManyRequests, ParseError, UnicodeDecodeError, TransportError)
    is_of_network = isinstance(error, requests.RequestException) and not isinstance(error, ValueError)
    return is_of_network or isinstance(error, passing)


def failure_in_words(error: Exception) -> str:
    """Why there is no price list, and what to do about it."""
    from google.api_core.exceptions import GoogleAPICallError, RetryError
    from google.auth.exceptions import (
        DefaultCredentialsError,
        GoogleAuthError,
        InvalidOperation,
        TransportError,
    )

    if isinstance(error, LateError):
        return _TOO_LATE.format(limit=format_duration(error.limit_s))
    if isinstance(error, LongReplyError):
        return _TOO_LONG.format(error=error)
    if isinstance(error, RetryError):
        return failure_in_words(error.cause) if isinstance(error.cause, Exception) else _TIMEOUT
    if isinstance(error, GoogleAPICallError):
        if error.code == 403:
            return _DISABLED if error.reason == "SERVICE_DISABLED" else _DENIED
        other = f"the Cloud Billing API answered with the error {error.code}. Try again later."
        return _BY_STATUS.get(error.code or 0, other)
    texts: dict[type[Exception], str] = {
        InvalidOperation: _BY_STATUS[401],  # anonymous ones cannot be refreshed after a 401
        DefaultCredentialsError: f"no usable credentials of Google Cloud. {_LOGIN}",
        requests.Timeout: _TIMEOUT,
        requests.ConnectionError: _UNREACHABLE,
        TransportError: _UNREACHABLE,
        GoogleAuthError: _BY_STATUS[401],
    }
    return next((text for kind, text in texts.items() if isinstance(error, kind)), _BROKEN)


_LOGIN_RETRIES = 3  # google.auth's own number


class LimitedAdapter(HTTPAdapter):
    """Reads each body within a time and a size; ``max_retries`` where no connection comes about."""

    def __init__(self, allowance: Allowance, reply_s: float, *, max_retries: int = 0) -> None:
        super().__init__(max_retries=max_retries)
        self._allowance = allowance
        self._reply_s = reply_s

    # What else there is depends on the version of requests.
    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """The response, its body read and unpacked.

        Raises BrokenReplyError (a redirect: Google's interfaces know none), LongReplyError, and what requests
        raises.
        """
        if left_s() <= 0:
            raise LateError(self._reply_s)
        response = super().send(request, *args, **kwargs | {"stream": True})
        if response.is_redirect:
            response.close()
            raise BrokenReplyError("a redirect to another address")
        try:
            body = read_whole(response.raw, self._allowance, within_s=self._reply_s, unpacks=True)
        except (LateError, HTTPTimeoutError) as error:
            raise requests.ReadTimeout(error, request=request) from None
        except HTTPError as error:
            raise requests.exceptions.ChunkedEncodingError(error, request=request) from None
        response.raw = BytesIO(body)
        return response


def limit(session: AuthorizedSession, allowance: Allowance, reply_s: float) -> None:
    """Limit the replies that a session of google.auth gets, those to its own refreshes included."""
    for scheme in ("https://", "http://"):
        session.mount(scheme, LimitedAdapter(allowance, reply_s))
        adapter = LimitedAdapter(allowance, reply_s, max_retries=_LOGIN_RETRIES)
        session._auth_request_session.mount(scheme, adapter)


COMPUTE_ENGINE = "services/6F81-5844-456A"
# For the libraries and credentials; a metadata server that exists answers within a second.
_LOGIN_WITHIN_S = 30.0
PAGE_SIZE = 5000  # the most the API gives
MAX_PAGES = 100  # the list has about ten

# gcloud's own variable, for tests and mirrors; without credentials, as with Google's emulators.
ENDPOINT_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBILLING"
# The list is public: any key of a project with the API enabled opens it. A login goes first.
KEY_VARIABLE = "GOOGLE_API_KEY"
_CREDENTIALS_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
_GCLOUD_FOLDER_VARIABLE = "CLOUDSDK_CONFIG"
_METADATA_TIMEOUT_S = 1.0
# What the firmware of Google's machines calls them: one of them has a metadata server that gives credentials.
PRODUCT_NAME = Path("/sys/class/dmi/id/product_name")


class PullError(Exception):
    """The price list could not be had; the text says why and what to do, without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPatience:
    """How long to wait for the API."""

    call_s: float = 20.0
    """For one reply."""
    first_wait_s: float = 1.0
    """Before the first retry; doubles with each."""
    longest_wait_s: float = 8.0
    # Who waits for a recommendation would rather have yesterday's prices than stare at a broken cloud.
    total_s: float = 30.0
    """For one page as a whole, connecting and retries included."""


def endpoint() -> str | None:
    """The server that stands in for Google's, if one is set."""
    return os.environ.get(ENDPOINT_VARIABLE, "").rstrip("/") or None


def local_credentials() -> Credentials:
    """Whether credentials or an API key lie on this machine, or it is one of Google's; no request is made."""
    if endpoint():
        return Credentials.NOT_NEEDED
    return Credentials.FOUND if has_login() or os.environ.get(KEY_VARIABLE) else Credentials.MISSING


def has_login() -> bool:
    """Whether application-default credentials lie on this machine, or it is one of Google's."""
    if path := os.environ.get(_CREDENTIALS_VARIABLE):
        return Path(path).is_file()
    # Where `gcloud auth application-default login` leaves credentials.
    folder = Path(os.environ.get(_GCLOUD_FOLDER_VARIABLE) or Path.home() / ".config" / "gcloud")
    if (folder / "application_default_credentials.json").is_file():
        return True
    with suppress(OSError):
        return PRODUCT_NAME.read_text(encoding="utf-8").startswith("Google")
    return False


def pull_skus(patience: ApiPatience) -> list[Sku]:
    """All SKUs of Compute Engine that we know, in USD. Raises PullError: some page could not be had."""
    passing: list[Exception] = []
    try:
        skus = [sku for page in _pages(patience, passing.append) for sku in _known(page)]
    except LateError as error:
        causes = [failure_in_words(cause) for cause in passing[-1:]]
        raise PullError(" ".join([*causes, failure_in_words(error)])) from None
    except Exception as error:  # noqa: BLE001 - a reply of another shape may raise anything
        raise PullError(failure_in_words(error)) from None
    if not skus:
        raise PullError(failure_in_words(BrokenReplyError("no SKU of ours")))
    return skus


def _pages(patience: ApiPatience, on_error: Callable[[Exception], None]) -> Iterator[ListSkusResponse]:
    """Raw pages of the list, each with its own retries; errors that are tried again are reported."""
    from google.api_core.retry import Retry
    from google.cloud.billing_v1.types import ListSkusRequest, ListSkusResponse

    retry = Retry(
        predicate=passes_by_itself,
        initial=patience.first_wait_s,
        maximum=patience.longest_wait_s,
        timeout=patience.total_s,
        on_error=on_error,
    )
    request = ListSkusRequest(parent=COMPUTE_ENGINE, page_size=PAGE_SIZE, currency_code="USD")
    with within(_LOGIN_WITHIN_S, _client) as client:
        # The library offers no choice of a client's session.
        limit(client.transport._session, Allowance(), patience.call_s)
        seen: set[str] = set()
        ask = partial(client.list_skus, request=request, retry=retry, timeout=patience.call_s)
        pages = within(patience.total_s, lambda: iter(ask().pages))
        while (page := within(patience.total_s, lambda: next(pages, None))) is not None:
            raw = ListSkusResponse.pb(page)
            if raw.next_page_token in seen or len(seen) >= MAX_PAGES:
                raise BrokenReplyError("pages without an end")
            seen.add(raw.next_page_token)
            yield raw


def _client() -> CloudCatalogClient:
    import google.auth.api_key
    import google.auth.transport.requests
    from google.api_core.client_options import ClientOptions
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.billing_v1 import CloudCatalogClient

    class Impatient(google.auth.transport.requests.Request):  # type: ignore[misc]
        """Waits for a metadata server no longer than one that exists needs."""

        def __call__(self, *args: object, timeout: float = _METADATA_TIMEOUT_S, **kwargs: object) -> object:
            return super().__call__(*args, timeout=min(timeout, _METADATA_TIMEOUT_S), **kwargs)

    if server := endpoint():
        options = ClientOptions(api_endpoint=server)
        return CloudCatalogClient(
            transport="rest", credentials=AnonymousCredentials(), client_options=options
        )
    key = os.environ.get(KEY_VARIABLE)
    if key and not has_login():
        return CloudCatalogClient(transport="rest", credentials=google.auth.api_key.Credentials(key))
    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
    with warnings.catch_warnings():  # a missing quota project matters only if Google then refuses the call
        warnings.simplefilter("ignore", UserWarning)
        credentials, _ = google.auth.default(scopes=scopes, request=Impatient())
    return CloudCatalogClient(transport="rest", credentials=credentials)


def _known(page: ListSkusResponse) -> Iterator[Sku]:
    """SKUs of a page that price something of ours: a small share of some tens of thousands."""
    for raw in page.skus:
        usage_type = raw.category.usage_type
        if recognise(raw.description, usage_type):
            yield Sku(
                sku_id=raw.sku_id,
                description=raw.description,
                usage_type=usage_type,
                regions=tuple(raw.service_regions),
                pricing=tuple(map(_pricing, raw.pricing_info)),
            )


def _pricing(raw: PricingInfo) -> Pricing:
    expression, begins_s = raw.pricing_expression, raw.effective_time.seconds
    rates = sorted(expression.tiered_rates, key=lambda rate: rate.start_usage_amount)
    prices = (rate.unit_price for rate in rates)
    return Pricing(
        effective_at=datetime.fromtimestamp(begins_s, UTC) if raw.HasField("effective_time") else None,
        usage_unit=expression.usage_unit,
        base_units=expression.base_unit_conversion_factor,
        tiers=tuple(PriceTier(currency=p.currency_code, units=p.units, nanos=p.nanos) for p in prices),
    )
