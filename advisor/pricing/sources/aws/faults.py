"""What went wrong in a call to AWS, in words that say what to do.

AWS's own messages are not shown: they name accounts, users and keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.core.deadlines import LateError
from advisor.core.units import format_duration

_DENIED = "this identity may not call {action}: allow the IAM action {action}"
_UNKNOWN_KEYS = (
    "AWS does not accept the credentials for {action}: sign in again (aws sso login) or check"
    " AWS_PROFILE and the keys"
)
_EXPIRED = "the AWS session has expired: sign in again (aws sso login, or new temporary keys)"
_CLOCK = (
    "AWS refused the signature of {action}: check the clock of this machine, which may be off by at most"
    " 5 minutes, then the secret key"
)
_THROTTLED = "AWS throttled {action} and went on after every retry: try again in a few minutes"
_BROKEN = "AWS failed to answer {action} (an error on its side): try again later"
_UNREACHABLE = (
    "the endpoint of {action} cannot be reached: check the network, the proxy and AWS_ENDPOINT_URL_*"
)
_LATE = "AWS did not answer {action} within prices.options.aws.timeout_s: try again, or raise it"
_TOO_LATE = (
    "AWS did not answer {action} within {limit}, retries included: try again, or raise"
    " prices.options.aws.timeout_s"
)
_TOO_LONG = (
    "the reply to {action} was given up: it holds {error}, which no true one does. Check AWS_ENDPOINT_URL_*,"
    " the network and the proxy"
)
_ENDLESS = (
    "the list of {action} does not end or comes again: check AWS_ENDPOINT_URL_*, the network and the proxy"
)
_ELSEWHERE = (
    "the endpoint of {action} sends calls to another address, which AWS never does: check"
    " AWS_ENDPOINT_URL_*, the network and the proxy"
)
_CUT_OFF = "the reply to {action} was cut off: try again, and check the network"
_UNTRUSTED = "the certificate of the endpoint of {action} is not trusted: check AWS_CA_BUNDLE and the proxy"
_NO_CREDENTIALS = (
    "no AWS credentials were found: sign in (aws configure, aws sso login), or set AWS_PROFILE;"
    " all calls are read-only"
)
_BAD_CONFIGURATION = "the AWS configuration of this machine cannot be used ({kind}): check ~/.aws and AWS_*"
GARBLED = (
    "the reply to {action} is cut off or garbled and cannot be read: try again; if it stays, check the"
    " network and the proxy, and update boto3"
)

_BY_CODE: Mapping[str, str] = {
    **dict.fromkeys(("AccessDenied", "AccessDeniedException", "UnauthorizedOperation"), _DENIED),
    **dict.fromkeys(
        ("AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException", "InvalidAccessKeyId"),
        _UNKNOWN_KEYS,
    ),
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "InvalidToken"), _EXPIRED),
    **dict.fromkeys(
        (
            "RequestTimeTooSkewed", "RequestExpired", "SignatureDoesNotMatch", "InvalidSignatureException",
        ),
        _CLOCK,
    ),
    **dict.fromkeys(
        (
            "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException",
            "RequestThrottled", "RequestThrottledException",
        ),
        _THROTTLED,
    ),
    "OptInRequired": "the account is not signed up for {action} here: enable the region or the service",
}  # fmt: skip
_BY_STATUS: Mapping[int, str] = {401: _UNKNOWN_KEYS, 403: _DENIED, 429: _THROTTLED}
# By the name of a class of botocore.exceptions, itself or an ancestor.
_BY_CLASS: Mapping[str, str] = {
    "NoCredentialsError": _NO_CREDENTIALS,
    "TokenRetrievalError": _EXPIRED,
    "UnauthorizedSSOTokenError": _EXPIRED,
    "SSOTokenLoadError": _EXPIRED,
    "LoginRefreshRequired": _EXPIRED,
    "ReadTimeoutError": _LATE,
    "ConnectTimeoutError": _UNREACHABLE,
    "ConnectionClosedError": _CUT_OFF,
    "IncompleteReadError": _CUT_OFF,
    "ResponseStreamingError": _CUT_OFF,
    "SSLError": _UNTRUSTED,
    "LateError": _TOO_LATE,
    "LongReplyError": _TOO_LONG,
    "EndlessPagesError": _ENDLESS,
    "ElsewhereError": _ELSEWHERE,
    "ConnectionError": _UNREACHABLE,
    "HTTPClientError": _UNREACHABLE,
    "BotoCoreError": _BAD_CONFIGURATION,
}
_CODE = re.compile(r"[A-Za-z.]{1,60}")


def explained(error: Exception, action: str) -> str:
    """The words for an error of botocore, or for a reply that is no reply.

    Args:
        error: what was raised.
        action: the IAM action, such as ``"ec2:DescribeRegions"``.
    """
    operation = getattr(error, "operation_name", None)
    if operation and operation != action.partition(":")[2]:
        # The chain of credentials made a call of its own.
        action = f"sts:{operation}"
    response = getattr(error, "response", None)
    text = _refusal(response) if isinstance(response, Mapping) else _trouble(error)
    limit = format_duration(error.limit_s) if isinstance(error, LateError) else ""
    return text.format(action=action, kind=type(error).__name__, limit=limit, error=error)


def _refusal(response: Mapping[str, Mapping[str, object]]) -> str:
    """What the error reply of a service means."""
    code = str(response.get("Error", {}).get("Code", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if known := _BY_CODE.get(code.removeprefix("Client.")):
        return known
    if isinstance(status, int) and (status >= 500 or status in _BY_STATUS):
        return _BY_STATUS.get(status, _BROKEN)
    reply = f" with {code}" if _CODE.fullmatch(code) else ""
    return "AWS refused {action}" + f"{reply}: update advisor and boto3"


def _trouble(error: Exception) -> str:
    """What an error on the way means; one that is not of botocore comes from reading the reply."""
    names = (base.__name__ for base in type(error).__mro__)
    return next((_BY_CLASS[name] for name in names if name in _BY_CLASS), GARBLED)
