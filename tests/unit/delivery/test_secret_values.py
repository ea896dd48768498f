"""Secrets come from the environment or from a file that nobody else can read, and stay out of messages."""

import os

import pytest

from advisor.delivery.channel import SecretError, Secrets


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "secret"
    path.write_text("hunter2\n")
    path.chmod(0o600)
    return path


def read(reference: str, **environ: str) -> str:
    return Secrets(environ).read(reference)


def refused(reference: str, words: str, **environ: str) -> None:
    with pytest.raises(SecretError, match=words) as caught:
        read(reference, **environ)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_from_the_environment_and_from_a_file(file):
    assert read("env:P", P="hunter2") == "hunter2"
    assert read(f"file:{file}") == "hunter2"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o601, 0o644])
def test_a_file_that_others_reach_is_refused(file, mode):
    file.chmod(mode)
    refused(f"file:{file}", f"chmod 600 {file}")


def test_links_pipes_and_folders_are_refused(file, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(file)
    refused(f"file:{link}", "is a symbolic link")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    refused(f"file:{pipe}", "no regular file")
    refused(f"file:{tmp_path}", "no regular file|Is a directory")


def test_what_is_not_there_or_empty_is_named(file, tmp_path):
    refused("env:P", "the variable P is not set: export it")
    refused("env:P", "the variable P is not set", P="")
    refused(f"file:{tmp_path}/none", "No such file")
    file.write_text("\n")
    refused(f"file:{file}", "is empty")
    file.write_bytes(b"\xff\xfe")
    refused(f"file:{file}", "no UTF-8 text")


@pytest.mark.parametrize("value", ["hunter2\r\nX-Evil: 1", "hunter2\0", "a\nhunter2"])
def test_a_secret_of_several_lines_adds_no_header(file, value):
    file.write_bytes(value.encode())
    refused(f"file:{file}", "write one line")
    refused("env:P", "write one line", P=value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(file, monkeypatch):
    os.chown(file, 65534, 65534)
    refused(f"file:{file}", "belongs to another user")


def test_what_was_read_is_hidden_the_longest_first():
    secrets = Secrets({"A": "abc", "B": "abcdef"})
    assert secrets.hide("abcdef abc") == "abcdef abc"
    secrets.read("env:A")
    secrets.read("env:B")
    assert secrets.hide("abcdef abc") == "*** ***"
    assert "abc" not in repr(secrets)
