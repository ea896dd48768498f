import os
import time

import pytest

from advisor.profile.environment import child_environment, is_secret, redact


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
    assert child_environment({name: "x"}).get(name, "gone") in ("gone", os.devnull)


@pytest.mark.parametrize(
    "name",
    ["HOME", "PATH", "TOKENIZERS_PARALLELISM", "CUDA_VISIBLE_DEVICES", "PYTHONPATH", "AUTHOR",
     "OMP_NUM_THREADS", "KEYBOARD", "SECRETARY"],
)  # fmt: skip
def test_the_rest_is_passed_on(name):
    assert child_environment({name: "x"})[name] == "x"


def test_credential_files_and_uploads_are_switched_off():
    environment = child_environment({"WANDB_MODE": "online"})
    assert environment["AWS_SHARED_CREDENTIALS_FILE"] == os.devnull
    assert environment["WANDB_MODE"] == "disabled"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("password=hunter22 and more", "hunter22"),
        ('{"api_key": "abcdef123456"}', "abcdef123456"),
        ("key AKIAIOSFODNN7EXAMPLE was refused", "AKIAIOSFODNN7EXAMPLE"),
        ("hf_abcdefghijklmnopqrstuv", "hf_abcdefghijklmnopqrstuv"),
        ("postgresql://user:s3cret@host/db", "s3cret"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "abc"),
        ("value of the variable: 0123456789", "0123456789"),
    ],
)
def test_secrets_are_hidden(text, hidden):
    shown = redact(text, {"SOME_TOKEN": "0123456789"})
    assert hidden not in shown
    assert "***" in shown


def test_ordinary_output_stays():
    text = 'epoch 3 loss 0.5: tokens per second 1200, File "train.py", line 3'
    assert redact(text, {"HOME": "/home/someone", "A_TOKEN": "3"}) == text


@pytest.mark.parametrize(
    "line", ["x" * 65536, "a-" * 32768, "a.b" * 20000, "token" * 13000, "http://" * 9000]
)
def test_a_long_line_is_searched_in_no_time(line):
    begin = time.perf_counter()
    redact(line, {})
    assert time.perf_counter() - begin < 5
