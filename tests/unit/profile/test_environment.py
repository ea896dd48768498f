import os
from pathlib import Path

import pytest

from advisor.profile.environment import child_environment, is_secret, redact
from tests.cpu_time import at_most

TEMPORARY = Path("/job/tmp")


@pytest.mark.parametrize(
    "name",
    [
        "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_PROFILE", "GOOGLE_APPLICATION_CREDENTIALS",
        "AZURE_CLIENT_SECRET", "HF_TOKEN", "WANDB_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "TOKEN",
        "KUBECONFIG", "SSH_AUTH_SOCK", "my_api_key", "PGPASSWORD", "KAGGLE_KEY", "CLOUDSDK_CONFIG",
    ],
)  # fmt: skip
def test_secrets_are_kept_from_the_script(name):
    assert is_secret(name)
    assert child_environment({name: "x"}, TEMPORARY).get(name, "gone") in ("gone", os.devnull)


@pytest.mark.parametrize(
    "name",
    ["HOME", "PATH", "TOKENIZERS_PARALLELISM", "CUDA_VISIBLE_DEVICES", "PYTHONPATH", "AUTHOR",
     "OMP_NUM_THREADS", "KEYBOARD", "SECRETARY"],
)  # fmt: skip
def test_the_rest_is_passed_on(name):
    assert child_environment({name: "x"}, TEMPORARY)[name] == "x"


@pytest.mark.parametrize(
    "name",
    ["AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AZURE_CONFIG_DIR", "CLOUDSDK_CONFIG", "DOCKER_CONFIG",
     "HF_TOKEN_PATH", "KAGGLE_CONFIG_DIR", "KUBECONFIG", "NETRC"],
)  # fmt: skip
def test_credential_files_are_out_of_sight(name):
    assert child_environment({name: "/home/me/secret"}, TEMPORARY)[name] == os.devnull


@pytest.mark.parametrize(
    ("name", "value"),
    [("WANDB_MODE", "disabled"), ("NEPTUNE_MODE", "debug"), ("COMET_MODE", "disabled"),
     ("CLEARML_OFFLINE_MODE", "1"), ("HF_HUB_OFFLINE", "1"), ("TRANSFORMERS_OFFLINE", "1"),
     ("HF_DATASETS_OFFLINE", "1")],
)  # fmt: skip
def test_uploads_and_downloads_are_switched_off_whatever_the_user_set(name, value):
    assert child_environment({name: "online"}, TEMPORARY)[name] == value


def test_temporary_files_go_with_the_job():
    environment = child_environment({"TMPDIR": "/elsewhere"}, TEMPORARY)
    assert [environment[name] for name in ("TMPDIR", "TEMP", "TMP")] == [str(TEMPORARY)] * 3


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("password=hunter22 and more", "hunter22"),
        ('{"api_key": "abcdef123456"}', "abcdef123456"),
        ("key AKIAIOSFODNN7EXAMPLE was refused", "AKIAIOSFODNN7EXAMPLE"),
        ("hf_abcdefghijklmnopqrstuv", "hf_abcdefghijklmnopqrstuv"),
        ("postgresql://user:s3cret@host/db", "s3cret"),
        ("'https://ghp-like-name@host/repo.git'", "ghp-like-name"),
        ("no https://host/w.pt?X-Amz-Signature=abc123&X-Amz-Date=2 in the cache", "abc123"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "abc"),
        ("value of the variable: 0123456789", "0123456789"),
    ],
)
def test_secrets_are_hidden(text, hidden):
    shown = redact(text, {"SOME_TOKEN": "0123456789"})
    assert hidden not in shown
    assert "***" in shown


def test_of_an_address_the_place_stays():
    text = "not downloaded: 'https://bob:hunter22secret@host:8080/a/w.pt?Signature=abc', kept"
    assert redact(text, {}) == "not downloaded: 'https://***@host:8080/a/w.pt?***', kept"
    plain = "see https://host/a@b/w.pt#part, s3://bucket/key, or mail me@host?"
    assert redact(plain, {}) == plain


def test_ordinary_output_stays():
    text = 'epoch 3 loss 0.5: tokens per second 1200, File "train.py", line 3'
    assert redact(text, {"HOME": "/home/someone", "A_TOKEN": "3"}) == text


@pytest.mark.parametrize(
    "line", ["x" * 65536, "a-" * 32768, "a.b" * 20000, "token" * 13000, "http://" * 9000, "a://x@?" * 9000]
)
def test_a_long_line_is_searched_in_no_time(line):
    with at_most(cpu_s=5):
        redact(line, {})
