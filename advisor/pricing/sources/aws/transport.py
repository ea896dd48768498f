"""botocore's HTTP session, but for replies that do not end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advisor.core.deadlines import LateError, left_s
from advisor.pricing.sources.replies import Allowance, read_whole

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from botocore.client import BaseClient
    from botocore.httpsession import URLLib3Session


class ElsewhereError(Exception):
    """A redirect: AWS's interfaces know none, and calls are signed for one address."""


class LimitedSession:
    """Sends as the session inside does, and reads each body within a time and a size.

    Args:
        session: botocore's own, with the proxies and certificates of the user's configuration.
        allowance: of the pull.
        reply_s: for one body.
    """

    def __init__(self, session: URLLib3Session, allowance: Allowance, reply_s: float) -> None:
        self._session = session
        self._allowance = allowance
        self._reply_s = reply_s

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        """The response, its body read.

        Raises:
            HTTPClientError: as botocore's own does, which tries again.
            LateError: the call as a whole was given up meanwhile.
            LongReplyError: the body is too large.
            ElsewhereError: the reply is a redirect.
        """
        from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
        from urllib3.exceptions import HTTPError
        from urllib3.exceptions import TimeoutError as HTTPTimeoutError

        if left_s() <= 0:
            raise LateError(self._reply_s)
        request.stream_output = True  # leaves the body to us
        response = self._session.send(request)
        try:
            body = read_whole(response.raw, self._allowance, within_s=self._reply_s)
        except (LateError, HTTPTimeoutError) as error:
            raise ReadTimeoutError(endpoint_url=request.url, error=error) from None
        except HTTPError as error:
            raise ConnectionClosedError(endpoint_url=request.url, error=error, request=request) from None
        if 300 <= response.status_code < 400:
            raise ElsewhereError
        response.raw = _Body(body)
        return response

    def close(self) -> None:
        """Close the connections."""
        self._session.close()


class _Body:
    """What botocore asks of a body."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> Iterator[bytes]:
        yield self._body


def limit(client: BaseClient, allowance: Allowance) -> BaseClient:
    """The client, its replies limited in size, and in time by its read timeout."""
    # botocore lets nobody choose a client's session.
    endpoint = client._endpoint
    reply_s = client.meta.config.read_timeout
    endpoint.http_session = LimitedSession(endpoint.http_session, allowance, reply_s)
    return client
