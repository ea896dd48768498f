"""Calls of the Cloud Billing Catalog API, and errors in words that say what to do."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
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
from advisor.pricing.sources.downloads import Allowance, LongReplyError, read_whole
from advisor.pricing.sources.gcp.prices import Pricing, Sku, Tier, recognise
from advisor.pricing.sources.protocol import Credentials

if TYPE_CHECKING:
    from google.auth.transport.requests import AuthorizedSession

API = "cloudbilling.googleapis.com"
_LOGIN = (
    "Log in with `gcloud auth application-default login`, or name a key file in"
    " GOOGLE_APPLICATION_CREDENTIALS."
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
    " role roles/serviceusage.serviceUsageConsumer there."
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
    """A reply that is no page of the price list; one that was cut off may be whole the next time."""

    def __init__(self, what: str, *, may_pass: bool = False) -> None:
        super().__init__(what)
        self.may_pass = may_pass


class RefusedError(Exception):
    """The API answered with an error.

    Args:
        status: of HTTP.
        is_disabled: the API is not enabled in the project of the credentials.
    """

    def __init__(self, status: int, *, is_disabled: bool = False) -> None:
        super().__init__(status)
        self.status = status
        self.is_disabled = is_disabled


def passes_by_itself(error: BaseException) -> bool:
    """Whether the same call may succeed in a moment."""
    from google.auth.exceptions import TransportError

    if isinstance(error, RefusedError):
        return error.status == 429 or error.status >= 500
    if isinstance(error, BrokenReplyError):
        return error.may_pass
    is_address_wrong = isinstance(error, requests.RequestException) and isinstance(error, ValueError)
    return isinstance(error, (requests.RequestException, TransportError)) and not is_address_wrong


def failure_in_words(error: BaseException) -> str:
    """Why there is no price list, and what to do about it."""
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
    if isinstance(error, RefusedError):
        if error.status == 403:
            return _DISABLED if error.is_disabled else _DENIED
        other = f"the Cloud Billing API answered with the error {error.status}. Try again later."
        return _BY_STATUS.get(error.status, other)
    if isinstance(error, InvalidOperation):  # anonymous ones cannot be refreshed after a 401
        return _BY_STATUS[401]
    if isinstance(error, DefaultCredentialsError):
        return f"no usable credentials of Google Cloud. {_LOGIN}"
    if isinstance(error, requests.Timeout):
        return _TIMEOUT
    if isinstance(error, (requests.ConnectionError, TransportError)):
        return _UNREACHABLE
    if isinstance(error, GoogleAuthError):
        return _BY_STATUS[401]
    return _BROKEN


_LOGIN_RETRIES = 3  # google.auth's own number


class LimitedAdapter(HTTPAdapter):
    """Reads each body within a time and a size.

    Args:
        allowance: of the pull.
        reply_s: for one body.
        max_retries: where no connection comes about.
    """

    def __init__(self, allowance: Allowance, reply_s: float, *, max_retries: int = 0) -> None:
        super().__init__(max_retries=max_retries)
        self._allowance = allowance
        self._reply_s = reply_s

    # What else there is depends on the version of requests.
    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """The response, its body read and unpacked.

        Raises:
            BrokenReplyError: it is a redirect: Google's interfaces know none.
            LongReplyError: the body is too large.
            requests.RequestException: anything on the way.
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


COMPUTE_ENGINE = "services/6F81-5844-456A"
# For the libraries and credentials; a metadata server that exists answers within a second.
_LOGIN_WITHIN_S = 30.0
PAGE_SIZE = 5000  # the most the API gives
MAX_PAGES = 100  # the list has about ten

# gcloud's own variable, for tests and mirrors; without credentials, as with Google's emulators.
ENDPOINT_VARIABLE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBILLING"
_CREDENTIALS_VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
_GCLOUD_FOLDER_VARIABLE = "CLOUDSDK_CONFIG"
_METADATA_TIMEOUT_S = 1.0
# What the firmware of Google's machines calls them: one of them has a metadata server that gives credentials.
PRODUCT_NAME = Path("/sys/class/dmi/id/product_name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the list: its SKUs that price something of ours, and the name of the next page or ``""``."""

    skus: tuple[Sku, ...]
    next_token: str


class PullError(Exception):
    """The price list could not be had; the text says why and what to do, without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for the API.

    Attributes:
        call_s: for one reply.
        first_wait_s: before the first retry; doubles with each.
        total_s: for one page as a whole, connecting and retries included.
    """

    call_s: float = 20.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 8.0
    # Who waits for a recommendation would rather have yesterday's prices than stare at a broken cloud.
    total_s: float = 30.0


def endpoint() -> str | None:
    """The server that stands in for Google's, if one is set."""
    return os.environ.get(ENDPOINT_VARIABLE, "").rstrip("/") or None


def local_credentials() -> Credentials:
    """Whether application-default credentials lie on this machine, or it is one of Google's; asks nobody."""
    if endpoint():
        return Credentials.NOT_NEEDED
    path = os.environ.get(_CREDENTIALS_VARIABLE)
    is_there = Path(path).is_file() if path else _well_known_file().is_file() or _is_googles_machine()
    return Credentials.FOUND if is_there else Credentials.MISSING


def _is_googles_machine() -> bool:
    try:
        return PRODUCT_NAME.read_text(encoding="utf-8").startswith("Google")
    except OSError:
        return False


def _well_known_file() -> Path:
    """Where ``gcloud auth application-default login`` leaves credentials."""
    if folder := os.environ.get(_GCLOUD_FOLDER_VARIABLE):
        return Path(folder) / "application_default_credentials.json"
    home = Path(os.environ["APPDATA"]) if os.name == "nt" else Path.home() / ".config"
    return home / "gcloud" / "application_default_credentials.json"


def pull_skus(patience: Patience) -> list[Sku]:
    """All SKUs of Compute Engine that we know, in USD: every page, or none.

    Raises:
        PullError: some page could not be had.
    """
    passing: list[BaseException | None] = []
    try:
        skus = [sku for page in _pages(patience, passing.append) for sku in page.skus]
    except LateError as error:
        causes = [failure_in_words(cause) for cause in passing[-1:] if cause is not None]
        raise PullError(" ".join([*causes, failure_in_words(error)])) from None
    except Exception as error:  # noqa: BLE001 - a reply of another shape may raise anything
        raise PullError(failure_in_words(error)) from None
    if not skus:
        raise PullError(failure_in_words(BrokenReplyError("no SKU of ours")))
    return skus


def _pages(patience: Patience, on_error: Callable[[BaseException | None], None]) -> Iterator[Page]:
    """Pages of the list, each with its own retries; errors that are tried again are told to ``on_error``."""
    from tenacity import Retrying, retry_if_exception, stop_before_delay, wait_random_exponential

    retrying = Retrying(
        retry=retry_if_exception(passes_by_itself),
        wait=wait_random_exponential(patience.first_wait_s, patience.longest_wait_s),
        stop=stop_before_delay(patience.total_s),
        before_sleep=lambda state: on_error(state.outcome.exception() if state.outcome else None),
        reraise=True,
    )
    seen: set[str] = set()
    token = ""
    with within(_LOGIN_WITHIN_S, lambda: _session(patience)) as session:
        while token or not seen:
            if token in seen or len(seen) >= MAX_PAGES:
                raise BrokenReplyError("pages without an end")
            seen.add(token)
            page = within(patience.total_s, partial(retrying, _page, session, token, patience))
            yield page
            token = page.next_token


def _page(session: AuthorizedSession, token: str, patience: Patience) -> Page:
    """One page.

    Raises:
        RefusedError: the API answered with an error.
        BrokenReplyError: the reply is no page.
        requests.RequestException: anything on the way.
        google.auth.exceptions.GoogleAuthError: the credentials are not accepted.
    """
    query: dict[str, str | int] = {"pageSize": PAGE_SIZE, "currencyCode": "USD"}
    address = f"{endpoint() or f'https://{API}'}/v1/{COMPUTE_ENGINE}/skus"
    reply = session.get(
        address, params=query | ({"pageToken": token} if token else {}), timeout=patience.call_s
    )
    if reply.status_code >= 400:
        raise RefusedError(reply.status_code, is_disabled=b"SERVICE_DISABLED" in reply.content)
    return read_page(reply.content)


def _session(patience: Patience) -> AuthorizedSession:
    """A session with the user's credentials, whose replies are limited, those to its logins included."""
    import google.auth
    from google.auth.credentials import AnonymousCredentials
    from google.auth.transport.requests import AuthorizedSession, Request

    class Impatient(Request):  # type: ignore[misc]
        """Waits for a metadata server no longer than one that exists needs."""

        def __call__(self, *args: object, timeout: float = _METADATA_TIMEOUT_S, **kwargs: object) -> object:
            return super().__call__(*args, timeout=min(timeout, _METADATA_TIMEOUT_S), **kwargs)

    if endpoint():
        credentials = AnonymousCredentials()
    else:
        scopes = ["https://www.googleapis.com/auth/cloud-platform"]
        with warnings.catch_warnings():  # a missing quota project matters only if Google then refuses
            warnings.simplefilter("ignore", UserWarning)
            credentials, _ = google.auth.default(scopes=scopes, request=Impatient())
    allowance, login = Allowance(), requests.Session()
    session = AuthorizedSession(credentials, auth_request=Request(login))
    for scheme in ("https://", "http://"):
        session.mount(scheme, LimitedAdapter(allowance, patience.call_s))
        login.mount(scheme, LimitedAdapter(allowance, patience.call_s, max_retries=_LOGIN_RETRIES))
    return session


def read_page(body: bytes) -> Page:
    """SKUs of a page that price something of ours: a small share of some tens of thousands.

    Raises:
        BrokenReplyError: it is no page.
    """
    try:
        page = json.loads(body)
        token = page.get("nextPageToken", "")
        if not isinstance(token, str):
            raise TypeError
        skus = map(_sku, page.get("skus", ()))  # all are read: one of a wrong shape spoils the page
        return Page(
            skus=tuple(sku for sku in skus if recognise(sku.description, sku.usage_type)), next_token=token
        )
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError):
        raise BrokenReplyError("no page of SKUs", may_pass=True) from None


def _sku(raw: Mapping[str, Any]) -> Sku:
    return Sku(
        sku_id=_text(raw, "skuId"),
        description=_text(raw, "description"),
        usage_type=_text(raw.get("category", {}), "usageType"),
        regions=tuple(map(str, raw.get("serviceRegions", ()))),
        pricing=tuple(map(_pricing, raw.get("pricingInfo", ()))),
    )


def _pricing(raw: Mapping[str, Any]) -> Pricing:
    expression = raw.get("pricingExpression", {})
    effective = raw.get("effectiveTime")
    rates = sorted(expression.get("tieredRates", ()), key=lambda rate: float(rate.get("startUsageAmount", 0)))
    return Pricing(
        effective_at=None if effective is None else _moment(effective),
        usage_unit=_text(expression, "usageUnit"),
        base_units=float(expression.get("baseUnitConversionFactor", 0)),
        tiers=tuple(_tier(rate.get("unitPrice", {})) for rate in rates),
    )


def _tier(price: Mapping[str, Any]) -> Tier:
    """A price; ``units`` is a whole number in quotes, as JSON of Google has those of 64 bits."""
    return Tier(
        currency=_text(price, "currencyCode"),
        units=int(price.get("units", 0)),
        nanos=int(price.get("nanos", 0)),
    )


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return moment.astimezone(UTC).replace(microsecond=0)


def _text(raw: Mapping[str, Any], name: str) -> str:
    value = raw.get(name, "")
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return value
