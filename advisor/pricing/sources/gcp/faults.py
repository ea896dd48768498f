"""What went wrong with the Cloud Billing Catalog API, in words that say what to do.

Nothing that the server or Google's libraries say is repeated: their texts hold project numbers, addresses and
parts of requests.
"""

from __future__ import annotations

from advisor.core.deadlines import LateError
from advisor.core.units import format_duration
from advisor.pricing.sources.replies import LongReplyError

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
    """A reply that can be parsed, but is no page of the price list."""


def passes_by_itself(error: Exception) -> bool:
    """Whether the same call may succeed in a moment."""
    import requests
    from google.api_core.exceptions import ServerError, TooManyRequests
    from google.auth.exceptions import TransportError
    from google.protobuf.json_format import ParseError

    # A reply that was cut off is parsed as far as it goes.
    passing = (ServerError, TooManyRequests, ParseError, UnicodeDecodeError, TransportError)
    if isinstance(error, passing):
        return True
    return isinstance(error, requests.RequestException) and not isinstance(error, ValueError)


def failure_in_words(error: Exception) -> str:
    """Why there is no price list, and what to do about it."""
    import requests
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
        return _by_status(error.code, error.reason)
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


def _by_status(status: int | None, reason: str | None) -> str:
    if status == 403:
        return _DISABLED if reason == "SERVICE_DISABLED" else _DENIED
    other = f"the Cloud Billing API answered with the error {status}. Try again later."
    return _BY_STATUS.get(status or 0, other)
