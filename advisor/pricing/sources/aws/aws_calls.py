"""Calls to AWS through boto3: options, credentials, limits, and errors in words that say what to do."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from advisor.core.deadlines import LateError, left_s, within
from advisor.core.errors import CloudError, ConfigError
from advisor.core.units import format_duration
from advisor.pricing.sources.http_downloads import Allowance, read_whole
from advisor.pricing.sources.protocol import check_options

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from botocore.client import BaseClient
    from botocore.httpsession import URLLib3Session

_MOST = 6


def listed(names: Collection[str]) -> str:
    """The names in alphabetical order, the first few and a count of the others.

    >>> listed({"g7.2xlarge", "g3.4xlarge"})
    'g3.4xlarge, g7.2xlarge'
    """
    unique = sorted(set(names))
    rest = f" and {len(unique) - _MOST} more" if len(unique) > _MOST else ""
    return ", ".join(unique[:_MOST]) + rest


def counted(number: int, noun: str) -> str:
    """A count with its noun: ``"1 type"``, ``"3 types"``."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsOptions:
    """Options of the source ``aws``."""

    history_days: int = 90
    """How far back spot prices are asked for; AWS keeps 90 days."""
    capacity_blocks: bool = False
    """Also ask for capacity blocks, a call for each type and region."""
    max_attempts: int = 5
    """How often a call is made at most, the first time included."""
    timeout_s: float = 20.0
    """How long to wait for a connection, and then for a reply."""


_Options = Mapping[str, Any]  # each value is checked before AwsOptions gets it
_LIMITS = {"history_days": (1, 90), "max_attempts": (1, 20), "timeout_s": (0.1, 300)}


def read_options(options: _Options) -> AwsOptions:
    """The options of the settings. Raises ConfigError: one is unknown, of the wrong type or out of range."""
    check_options("aws", options, [field.name for field in fields(AwsOptions)])
    for name, value in options.items():
        _check(name, value)
    return AwsOptions(**options)


def _check(name: str, value: object) -> None:
    if name not in _LIMITS:
        if not isinstance(value, bool):
            raise ConfigError(f"prices.options.aws.{name} is {value!r}: it must be true or false.")
        return
    low, high = _LIMITS[name]
    kinds = (int, float) if name == "timeout_s" else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        whole = "" if name == "timeout_s" else "whole "
        raise ConfigError(
            f"prices.options.aws.{name} is {value!r}: it must be a {whole}number from {low} to {high}."
        )


# What the firmware of Amazon's machines calls itself: there a service of the machine gives credentials.
VENDOR = Path("/sys/class/dmi/id/sys_vendor")
_VARIABLES = (
    "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
)  # fmt: skip
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config",
          "BOTO_CONFIG": "~/.boto"}  # fmt: skip


def may_have_credentials() -> bool:
    """False only where the SDK's chain has nowhere to find any."""
    files = (Path(os.environ.get(name) or usual).expanduser() for name, usual in _FILES.items())
    if any(map(os.environ.get, _VARIABLES)) or any(path.is_file() for path in files):
        return True
    with suppress(OSError):
        return VENDOR.read_text(encoding="utf-8").startswith("Amazon")
    return False


_BROKEN = "AWS failed to answer {action} (an error on its side): try again later"
GARBLED = (
    "the reply to {action} is cut off or garbled and cannot be read: try again; if it stays, check the"
    " network and the proxy, and update boto3"
)

_CODE = re.compile(r"[A-Za-z.]{1,60}")


@cache
def _texts(by: str) -> Mapping[str | int, str]:
    """What to say, by the ``codes`` or ``statuses`` of replies, or by the ``classes`` of exceptions."""
    table = tomllib.loads(Path(__file__).with_name("aws_errors.toml").read_text("utf-8"))
    return {key: one["text"] for one in table["error"] for key in one.get(by, ())}


def explained(error: Exception, action: str) -> str:
    """The words for an error of botocore, or for no reply, to an IAM action (``ec2:DescribeRegions``)."""
    operation = getattr(error, "operation_name", None)
    if operation and operation != action.partition(":")[2]:
        # The chain of credentials made a call of its own.
        action = f"sts:{operation}"
    response, texts = getattr(error, "response", None), _texts("classes")
    # One that is not of botocore comes from reading the reply.
    met = (texts[base.__name__] for base in type(error).__mro__ if base.__name__ in texts)
    text = _refusal(response) if isinstance(response, Mapping) else next(met, GARBLED)
    limit = format_duration(error.limit_s) if isinstance(error, LateError) else ""
    return text.format(action=action, kind=type(error).__name__, limit=limit, error=error)


def _refusal(response: Mapping[str, Mapping[str, object]]) -> str:
    """What the error reply of a service means."""
    code = str(response.get("Error", {}).get("Code", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if known := _texts("codes").get(code.removeprefix("Client.")):
        return known
    if isinstance(status, int) and (status >= 500 or status in _texts("statuses")):
        return _texts("statuses").get(status, _BROKEN)
    reply = f" with {code}" if _CODE.fullmatch(code) else ""
    return "AWS refused {action}" + f"{reply}: update advisor and boto3"


class ElsewhereError(Exception):
    """A redirect: AWS's interfaces know none, and calls are signed for one address."""


def send_limited(
    session: URLLib3Session, allowance: Allowance, reply_s: float, request: AWSPreparedRequest
) -> AWSResponse:
    """The response to a signed request by the client's own session, its body read within a time and a size.

    Raises:
        HTTPClientError: as botocore's own session does; botocore tries again.
        LateError, LongReplyError, ElsewhereError: given up meanwhile, too large, or a redirect.
    """
    from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
    from urllib3.exceptions import HTTPError
    from urllib3.exceptions import TimeoutError as HTTPTimeoutError

    if left_s() <= 0:
        raise LateError(reply_s)
    request.stream_output = True  # leaves the body to us
    response = session.send(request)
    try:
        body = read_whole(response.raw, allowance, within_s=reply_s)
    except (LateError, HTTPTimeoutError) as error:
        raise ReadTimeoutError(endpoint_url=request.url, error=error) from None
    except HTTPError as error:
        raise ConnectionClosedError(endpoint_url=request.url, error=error, request=request) from None
    if 300 <= response.status_code < 400:
        raise ElsewhereError
    response.raw = SimpleNamespace(stream=lambda: [body])  # all that botocore asks of a body
    return response


HOME_REGION = "us-east-1"
"""Where the price list and the list of regions are asked for."""

MAX_THREADS = 32
MAX_PAGES = 1000
"""Of one list: ninety days of spot prices of the largest region are a fifth of that."""
RETRIES_S = 10.0
"""What trying a call again may take on top of one reply; then the call as a whole is given up."""
T = TypeVar("T")
Row = Mapping[str, Any]
"""An item of a reply, whose values have the types that AWS documents of its operation."""
_CONNECT_TIMEOUT_S = 5.0
# What services call the next page; Cost Explorer has a word of its own.
_TOKENS = ("NextToken", "NextPageToken")


class EndlessPagesError(Exception):
    """A list whose pages do not end."""


class Clients:
    """Makes clients with the SDK's own chain of credentials, from one thread (clients may go to others).

    Raises CloudError: the AWS configuration names a profile that does not exist or cannot be read.
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
            own = core.get_config_variable("ca_bundle")
            self._certificates = own or os.environ.get("REQUESTS_CA_BUNDLE", True)
        except BotoCoreError as error:
            raise CloudError(explained(error, "sts:GetCallerIdentity")) from None

    def client(self, service: str, region: str) -> BaseClient:
        """A client of a service in a region. Raises CloudError: this machine's AWS configuration is bad."""
        from botocore.exceptions import BotoCoreError
        from botocore.httpsession import URLLib3Session
        from botocore.utils import get_environ_proxies

        try:
            client = self._session.client(service, region_name=region, config=self._config)
            config = client.meta.config
            session = URLLib3Session(
                verify=self._certificates,
                proxies=get_environ_proxies(client.meta.endpoint_url),
                timeout=(config.connect_timeout, config.read_timeout),
                max_pool_connections=config.max_pool_connections,
            )
            # What a handler of this event returns takes the place of what botocore would send for.
            client.meta.events.register(
                "before-send",
                lambda request, **_: send_limited(session, self._allowance, config.read_timeout, request),
            )
            return client
        except (BotoCoreError, ValueError) as error:
            raise CloudError(explained(error, f"{service}:*")) from None

    def has_credentials(self) -> bool:
        """Whether the chain finds any; AWS may not take them. Raises CloudError: as `client`."""
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
    """All items below ``key`` of an IAM action's replies, all pages, of the expected shape, unchecked.

    Raises CloudError: in words what went wrong, what to do, and no secrets.
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
    """What a call returns, retries included. Raises LateError: longer than one reply and retries take."""
    return within(client.meta.config.read_timeout + RETRIES_S, call)


def explaining(action: str, call: Callable[[], T]) -> T:
    """What the call returns; its errors are translated. Raises CloudError: as `items_of`."""
    try:
        return call()
    except CloudError:
        raise
    except Exception as error:  # noqa: BLE001 - a reply of another shape may raise anything
        raise CloudError(explained(error, action)) from None
