"""Calls to AWS through boto3, which is imported here and nowhere earlier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from advisor.core.deadlines import within
from advisor.core.errors import CloudError
from advisor.pricing.sources.aws.faults import explained
from advisor.pricing.sources.aws.options import AwsOptions
from advisor.pricing.sources.replies import Allowance

if TYPE_CHECKING:
    from botocore.client import BaseClient


HOME_REGION = "us-east-1"
"""Where the price list and the list of regions are asked for."""

MAX_THREADS = 32
MAX_PAGES = 1000
"""Of one list: ninety days of spot prices of the largest region are a fifth of that."""
RETRIES_S = 10.0
"""What trying a call again may take on top of one reply; then the call as a whole is given up."""
T = TypeVar("T")
_CONNECT_TIMEOUT_S = 5.0
# What services call the next page; Cost Explorer has a word of its own.
_TOKENS = ("NextToken", "NextPageToken")


class EndlessPagesError(Exception):
    """A list whose pages do not end."""


class Clients:
    """Makes clients with the SDK's own chain of credentials, from one thread (clients may go to others).

    Raises:
        CloudError: the AWS configuration names a profile that does not exist or cannot be read.
    """

    def __init__(self, options: AwsOptions) -> None:
        import boto3
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        self._config = Config(
            connect_timeout=min(_CONNECT_TIMEOUT_S, options.timeout_s),
            read_timeout=options.timeout_s,
            retries={"mode": "adaptive", "total_max_attempts": options.max_attempts},
            max_pool_connections=MAX_THREADS,
        )
        self._allowance = Allowance()
        try:
            core = botocore.session.get_session()
            core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_moment)
            self._session = boto3.Session(botocore_session=core)
        except BotoCoreError as error:
            raise CloudError(explained(error, "sts:GetCallerIdentity")) from None

    def client(self, service: str, region: str) -> BaseClient:
        """A client of a service, such as ``"ec2"``, in a region.

        Raises:
            CloudError: the AWS configuration of this machine cannot be used.
        """
        from botocore.exceptions import BotoCoreError

        from advisor.pricing.sources.aws.transport import limit

        try:
            client = self._session.client(service, region_name=region, config=self._config)
            return limit(client, self._allowance)
        except (BotoCoreError, ValueError) as error:
            raise CloudError(explained(error, f"{service}:*")) from None

    def has_credentials(self) -> bool:
        """Whether the chain of credentials found any; whether AWS takes them is another matter.

        Raises:
            CloudError: the AWS configuration of this machine cannot be used.
        """
        from botocore.exceptions import BotoCoreError

        try:
            return self._session.get_credentials() is not None
        except BotoCoreError as error:
            raise CloudError(explained(error, "sts:GetCallerIdentity")) from None


def _moment(value: str) -> datetime:
    """A time as AWS writes it; botocore's own reader takes most of the time of a long spot history."""
    from botocore.utils import parse_timestamp

    try:
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError):
        parsed: datetime = parse_timestamp(value)
        return parsed


def items_of(client: BaseClient, action: str, key: str, **arguments: object) -> list[T]:
    """All items of a reply, over all of its pages; of the shape that the caller expects, unchecked.

    Args:
        client: of the service.
        action: the IAM action, whose second half is the operation: ``"ec2:DescribeRegions"``.
        key: where the reply holds the items.
        **arguments: of the operation.

    Raises:
        CloudError: in words what went wrong, what to do, and no secrets.
    """
    # A garbled body can still parse, into a page without the key.
    pages: Iterator[Mapping[str, Iterable[T]]] = _pages(client, action, arguments)
    return explaining(action, lambda: [item for page in pages for item in page[key]])


def _pages(
    client: BaseClient, action: str, arguments: dict[str, object]
) -> Iterator[Mapping[str, Iterable[T]]]:
    """Replies until one names no next page, each in a time of its own and of the operation's own shape."""
    from botocore import xform_name

    ask = getattr(client, xform_name(action.partition(":")[2]))
    seen: set[str] = set()
    while True:
        reply = in_time(client, partial(ask, **arguments))
        yield reply
        name = next((name for name in _TOKENS if reply.get(name)), None)
        if name is None:
            return
        token = reply[name]
        if token in seen or len(seen) + 1 >= MAX_PAGES:
            raise EndlessPagesError
        seen.add(token)
        arguments = arguments | {name: token}


def in_time(client: BaseClient, call: Callable[[], T]) -> T:
    """What a call with a client returns, connecting, reading all of the reply and retries included.

    Raises:
        LateError: it takes longer than one reply and retries may.
    """
    return within(client.meta.config.read_timeout + RETRIES_S, call)


def explaining(action: str, call: Callable[[], T]) -> T:
    """What the call returns; its errors are translated.

    Raises:
        CloudError: as `items_of`.
    """
    try:
        return call()
    except CloudError:
        raise
    except Exception as error:  # noqa: BLE001 - a reply of another shape may raise anything
        raise CloudError(explained(error, action)) from None
