"""Calls to AWS through boto3, which is imported here and nowhere earlier."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from advisor.errors import CloudError
from advisor.pricing.aws.faults import explained
from advisor.pricing.aws.options import AwsOptions

HOME_REGION = "us-east-1"
"""Where the price list and the list of regions are asked for."""

MAX_THREADS = 32
T = TypeVar("T")
_CONNECT_TIMEOUT_S = 5.0


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
        try:
            core = botocore.session.get_session()
            core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_moment)
            self._session = boto3.Session(botocore_session=core)
        except BotoCoreError as error:
            raise CloudError(explained(error, "sts:GetCallerIdentity")) from None

    def client(self, service: str, region: str) -> Any:
        """A client of a service, such as ``"ec2"``, in a region.

        Raises:
            CloudError: the AWS configuration of this machine cannot be used.
        """
        from botocore.exceptions import BotoCoreError

        try:
            return self._session.client(service, region_name=region, config=self._config)
        except (BotoCoreError, ValueError) as error:
            raise CloudError(explained(error, f"{service}:*")) from None

    def has_credentials(self) -> bool:
        """Whether the chain of credentials found any; whether AWS takes them is another matter."""
        from botocore.exceptions import BotoCoreError

        try:
            return self._session.get_credentials() is not None
        except BotoCoreError:
            return False


def _moment(value: Any) -> datetime:
    """A time as AWS writes it; botocore's own reader takes most of the time of a long spot history."""
    from botocore.utils import parse_timestamp

    try:
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError):
        parsed: datetime = parse_timestamp(value)
        return parsed


def items_of(client: Any, action: str, key: str, **arguments: Any) -> list[Any]:
    """All items of a reply, over all of its pages.

    Args:
        client: of the service.
        action: the IAM action, whose second half is the operation: ``"ec2:DescribeRegions"``.
        key: where the reply holds the items.
        **arguments: of the operation.

    Raises:
        CloudError: in words what went wrong, what to do, and no secrets.
    """
    from botocore import xform_name

    name = xform_name(action.partition(":")[2])

    def all_pages() -> list[Any]:
        if client.can_paginate(name):
            pages = client.get_paginator(name).paginate(**arguments)
        else:
            pages = [getattr(client, name)(**arguments)]
        # A garbled body can still parse, into a page without the key.
        return [item for page in pages for item in page[key]]

    return explaining(action, all_pages)


def explaining(action: str, call: Callable[[], T]) -> T:
    """What the call returns; its errors are translated.

    Raises:
        CloudError: as `items_of`.
    """
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        return call()
    # botocore's and the parsers' errors have no common root; the last three mean a reply of another shape.
    except (BotoCoreError, ClientError, ResponseParserError, LookupError, TypeError, ValueError) as error:
        raise CloudError(explained(error, action)) from None
