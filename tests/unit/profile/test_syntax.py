"""What is no Python, and what is Python with a mistake in one line."""

from pathlib import Path

import pytest

from advisor.core.errors import InputError, ProfileError
from advisor.payload.protocol import Status
from advisor.payload.script import is_of_a_file, problem_of, syntax_details
from advisor.profile.failures import failure


def problem(folder: Path, source: bytes):
    path = folder / "train.py"
    path.write_bytes(source)
    return problem_of(path)


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [
        (b"x = 1\nfor i in range(3)\n    print(i)\n", 2, "for i in range(3)"),
        (b"#!/usr/bin/env python\nprint 'old'\n", 2, "print 'old'"),
        (b"if True:\n        x = 1\n    y = 2\n", 3, "y = 2"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, source, line, text):
    status, details = problem(tmp_path, source)
    assert (status, details["line"], details["text"]) == ("syntax_error", line, text)


@pytest.mark.parametrize(
    "source",
    [
        b"#!/bin/sh\nset -e\npython train.py --epochs 3\n",
        bytes(range(256)),
        "x = 1".encode("utf-16"),
        b"name = 'caf\xe9'\n",
    ],
)
def test_what_is_no_python_is_not_called_a_mistake(tmp_path, source):
    assert problem(tmp_path, source)[0] == "not_python"


@pytest.mark.parametrize("codec", ["rot13", "base64", "hex", "zlib", "undefined", "mbcs", "no-such", "idna"])
@pytest.mark.parametrize("line", ["vzcbeg gbepu", "x = 1", "x ="])
def test_an_encoding_that_is_none_of_text(tmp_path, codec, line):
    """rot13, base64, hex, zlib and undefined were a traceback."""
    found = problem(tmp_path, f"# coding: {codec}\n{line}\n".encode())
    assert found is None or found[0] in (Status.NOT_PYTHON, Status.SYNTAX_ERROR)
    assert (found is None) == (codec == "idna" and line == "x = 1")


@pytest.mark.parametrize("source", [b"(" * 100_000, b"-" * 1_000_000 + b"1", b"x = 1\0"])
def test_what_no_compiler_takes(tmp_path, source):
    assert problem(tmp_path, source)[1]["message"]
    assert problem(tmp_path, b"x = 1\n") is None


def test_a_long_line_is_cut():
    assert syntax_details(SyntaxError("bad", ("train.py", 1, 1, "x" * 5000)))["text"] == "x" * 200


@pytest.mark.parametrize(("name", "expected"), [("helper.py", True), ("<string>", False)])
def test_only_the_line_of_a_file_can_be_shown(tmp_path, monkeypatch, name, expected):
    monkeypatch.chdir(tmp_path)
    Path("helper.py").touch()
    with pytest.raises(SyntaxError) as caught:
        compile("x = = 1", name, "exec")
    assert is_of_a_file(caught.value) is expected


def explained(**changes):
    recording = {
        "status": "syntax_error", "message": "invalid syntax", "file": "/p/helper.py", "line": 2,
        "text": "def f(:", "is_script": False,
    } | changes  # fmt: skip
    return failure(recording, script="train.py", python="/p/python", returncode=0, log="", timeout_s=1.0)


def test_the_file_with_the_mistake_is_named():
    imported, own = explained(traceback="frames"), explained(is_script=True, file="train.py")
    assert (type(imported), type(own)) == (ProfileError, InputError)
    assert "'train.py' imports '/p/helper.py', which has a syntax error in line 2, 'def f(:'" in str(imported)
    assert str(own).startswith("'train.py' has a syntax error in line 2, 'def f(:': invalid syntax.")
    assert "is not a Python script" not in str(imported)
