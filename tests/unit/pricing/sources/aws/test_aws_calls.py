"""Options, credentials and errors of calls to AWS."""

import inspect
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import botocore.exceptions
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from advisor.core.errors import CloudError, ConfigError
from advisor.core.values import Market
from advisor.pricing.sources.aws import aws_calls as calls
from advisor.pricing.sources.aws import aws_source
from advisor.pricing.sources.aws.aws_calls import AwsOptions, explained, may_have_credentials, read_options
from advisor.pricing.sources.protocol import Credentials, credentials_of
from tests.clouds.aws_server import SECRET


def test_options_are_taken_over_and_without_them_the_defaults_hold():
    assert read_options({}) == AwsOptions()
    given = {"history_days": 7, "capacity_blocks": True, "max_attempts": 2, "timeout_s": 3}
    assert read_options(given) == AwsOptions(**given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"history_day": 7}, "Did you mean 'history_days'"),
        ({"history_days": 0}, "whole number from 1 to 90"),
        ({"history_days": 91}, "whole number from 1 to 90"),
        ({"history_days": 7.5}, "whole number from 1 to 90"),
        ({"history_days": True}, "whole number from 1 to 90"),
        ({"history_days": "7"}, "whole number from 1 to 90"),
        ({"capacity_blocks": "yes"}, "must be true or false"),
        ({"max_attempts": 21}, "from 1 to 20"),
        ({"timeout_s": 0}, "a number from 0.1 to 300"),
        ({"timeout_s": float("nan")}, "a number from 0.1 to 300"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    with pytest.raises(ConfigError, match=words):
        aws_source(options)


def test_the_source_says_what_it_can_answer():
    source = aws_source({})
    assert source.name == "aws"
    assert source.capabilities.is_live
    assert source.capabilities.providers == ("aws",)
    assert source.capabilities.markets == (Market.ON_DEMAND, Market.SPOT)
    assert Market.CAPACITY_BLOCK in aws_source({"capacity_blocks": True}).capabilities.markets
    assert source.freshness() == ()


def test_credentials_are_found_or_not(monkeypatch, start):
    start()
    assert aws_source({}).credentials() is Credentials.FOUND
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert aws_source({}).credentials() is Credentials.MISSING
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    source = aws_source({})
    with pytest.raises(CloudError, match="ProfileNotFound"):
        source.credentials()
    credentials, fault = credentials_of(source)
    assert credentials is Credentials.MISSING
    assert "cannot be used (ProfileNotFound)" in (fault or "")


def test_the_page_tells_every_option_and_its_default():
    page = (Path(__file__).resolve().parents[5] / "docs" / "aws.md").read_text()
    for field in fields(AwsOptions):
        default = str(field.default).lower().removesuffix(".0")
        assert f"| `{field.name}` | {default} |" in page


def test_the_page_lists_every_permission_that_the_source_uses():
    root = Path(__file__).resolve().parents[5]
    policy = (root / "docs" / "aws.md").read_text().partition("```json\n")[2].partition("```")[0]
    allowed = set(json.loads(policy)["Statement"][0]["Action"])
    sources = (root / "advisor" / "pricing" / "sources" / "aws").glob("*.py")
    code = "".join(path.read_text() for path in sources)
    used = set(re.findall(r'"((?:ec2|pricing|s3|servicequotas):[A-Z]\w+)"', code))
    assert used == allowed


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """A machine of nobody's, a home without anything in it."""
    for name in (*calls._VARIABLES, *calls._FILES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(calls, "VENDOR", tmp_path / "sys_vendor")


@pytest.mark.parametrize("name", calls._VARIABLES)
def test_every_variable_is_a_hint_and_without_any_there_is_none(monkeypatch, name):
    assert not may_have_credentials()
    assert aws_source({}).credentials() is Credentials.MISSING
    monkeypatch.setenv(name, "x")
    assert may_have_credentials()


@pytest.mark.parametrize(
    ("place", "text", "is_hint"),
    [
        (".aws/credentials", "", True),
        (".aws/config", "", True),
        ("mine", "", True),
        ("sys_vendor", "Amazon EC2\n", True),
        ("sys_vendor", "ACME\n", False),
    ],
)
def test_files_of_the_sdk_and_a_machine_of_amazons_are_hints(monkeypatch, tmp_path, place, text, is_hint):
    if place == "mine":
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "mine"))
    assert not may_have_credentials()
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(text)
    assert may_have_credentials() is is_hint


def test_looking_for_hints_loads_no_sdk():
    code = (
        "import sys; from advisor.pricing.sources.aws import aws_source; aws_source({}).credentials();"
        " print('boto3' in sys.modules)"
    )
    home = {"HOME": "/nonexistent", "PATH": "/usr/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=home, check=True)
    is_amazons = calls.VENDOR.is_file() and calls.VENDOR.read_text().startswith("Amazon")
    assert done.stdout.strip() in ("False", str(is_amazons))


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
def test_a_refusal_says_what_to_do(code, status, words):
    assert words in explained(refusal(code, status), ACTION)


def test_a_code_that_is_no_code_is_not_repeated():
    assert "123456789012" not in explained(refusal(SECRET), ACTION)
    assert explained(refusal(""), ACTION).startswith(f"AWS refused {ACTION}: ")


def test_a_role_that_may_not_be_taken_is_named_instead_of_the_call():
    refused = ClientError({"Error": {"Code": "AccessDenied", "Message": SECRET}}, "AssumeRole")
    assert "allow the IAM action sts:AssumeRole" in explained(refused, ACTION)


def error_classes() -> list[type[BotoCoreError]]:
    return [
        cls
        for _, cls in inspect.getmembers(botocore.exceptions, inspect.isclass)
        if issubclass(cls, BotoCoreError)
    ]


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_every_error_of_botocore_has_words_without_its_text(error):
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
def test_trouble_on_the_way_says_what_to_check(name, words):
    error = getattr(botocore.exceptions, name)
    assert words in explained(error.__new__(error), ACTION)


def test_a_reply_of_another_shape_is_garbled():
    assert "cannot be read" in explained(KeyError("Regions"), ACTION)
