"""requests' way to a server, but for replies that do not end and servers that send one elsewhere."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as HTTPTimeoutError

from advisor.core.deadlines import LateError, left_s
from advisor.pricing.sources.gcp.faults import BrokenReplyError
from advisor.pricing.sources.replies import Allowance, read_whole

if TYPE_CHECKING:
    from google.auth.transport.requests import AuthorizedSession


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


def limit(session: AuthorizedSession, allowance: Allowance, reply_s: float) -> None:
    """Limit the replies that a session of google.auth gets, those to its own refreshes included."""
    for scheme in ("https://", "http://"):
        session.mount(scheme, LimitedAdapter(allowance, reply_s))
        adapter = LimitedAdapter(allowance, reply_s, max_retries=_LOGIN_RETRIES)
        session._auth_request_session.mount(scheme, adapter)
