"""Every way in which a call to AWS fails, in words that help and hold no secret."""

from __future__ import annotations

import inspect

import botocore.exceptions
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from advisor.pricing.sources.aws.calls import explained
from tests.clouds.aws_server import SECRET

ACTION = "ec2:DescribeSpotPriceHistory"


def refusal(code: str, status: int = 400) -> ClientError:
    reply = {"Error": {"Code": code, "Message": SECRET}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(reply, "DescribeSpotPriceHistory")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        ("UnauthorizedOperation", 403, f"allow the IAM action {ACTION}"),
        ("Client.UnauthorizedOperation", 403, f"allow the IAM action {ACTION}"),
        ("AccessDeniedException", 400, f"allow the IAM action {ACTION}"),
        ("AuthFailure", 401, "sign in again"),
        ("InvalidClientTokenId", 403, "sign in again"),
        ("UnrecognizedClientException", 400, "sign in again"),
        ("ExpiredToken", 400, "session has expired"),
        ("ExpiredTokenException", 400, "session has expired"),
        ("RequestExpired", 400, "check the clock"),
        ("RequestTimeTooSkewed", 403, "check the clock"),
        ("SignatureDoesNotMatch", 403, "check the clock"),
        ("InvalidSignatureException", 400, "check the clock"),
        ("RequestLimitExceeded", 503, "throttled"),
        ("ThrottlingException", 400, "throttled"),
        ("429", 429, "throttled"),
        ("OptInRequired", 401, "enable the region"),
        ("InternalError", 500, "try again later"),
        ("502", 502, "try again later"),
        ("403", 403, "allow the IAM action"),
        ("InvalidParameterValue", 400, "with InvalidParameterValue"),
    ],
)
def test_a_refusal_says_what_to_do(code: str, status: int, words: str) -> None:
    assert words in explained(refusal(code, status), ACTION)


def test_a_code_that_is_no_code_is_not_repeated() -> None:
    assert "123456789012" not in explained(refusal(SECRET), ACTION)
    assert explained(refusal(""), ACTION).startswith(f"AWS refused {ACTION}: ")


def test_a_role_that_may_not_be_taken_is_named_instead_of_the_call() -> None:
    refused = ClientError({"Error": {"Code": "AccessDenied", "Message": SECRET}}, "AssumeRole")
    assert "allow the IAM action sts:AssumeRole" in explained(refused, ACTION)


def error_classes() -> list[type[BotoCoreError]]:
    return [
        cls
        for _, cls in inspect.getmembers(botocore.exceptions, inspect.isclass)
        if issubclass(cls, BotoCoreError)
    ]


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_every_error_of_botocore_has_words_without_its_text(error: type[BotoCoreError]) -> None:
    """Made without its arguments, which the words must not need."""
    made = error.__new__(error)
    made.args = (SECRET,)
    text = explained(made, ACTION)
    assert ": " in text
    assert not set(SECRET.split()) & set(text.split())
    assert "{" not in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NoCredentialsError", "no AWS credentials were found"),
        ("ProfileNotFound", "configuration of this machine"),
        ("PartialCredentialsError", "configuration of this machine"),
        ("UnauthorizedSSOTokenError", "sign in again"),
        ("EndpointConnectionError", "cannot be reached"),
        ("ConnectTimeoutError", "cannot be reached"),
        ("ReadTimeoutError", "did not answer"),
        ("ConnectionClosedError", "cut off"),
        ("SSLError", "AWS_CA_BUNDLE"),
        ("ProxyConnectionError", "cannot be reached"),
    ],
)
def test_trouble_on_the_way_says_what_to_check(name: str, words: str) -> None:
    error = getattr(botocore.exceptions, name)
    assert words in explained(error.__new__(error), ACTION)


def test_a_reply_of_another_shape_is_garbled() -> None:
    assert "cannot be read" in explained(KeyError("Regions"), ACTION)
