"""Scripts in encodings that are none of text, and others that no compiler takes."""

import pytest

from advisor.payload.protocol import Status
from advisor.payload.script import problem_of


@pytest.mark.parametrize("codec", ["rot13", "base64", "hex", "zlib", "undefined", "mbcs", "no-such", "idna"])
@pytest.mark.parametrize("line", ["vzcbeg gbepu", "x = 1", "x ="])
def test_an_encoding_that_is_none_of_text(tmp_path, codec, line):
    """rot13, base64, hex, zlib and undefined were a traceback."""
    script = tmp_path / "train.py"
    script.write_text(f"# coding: {codec}\n{line}\n")
    problem = problem_of(script)
    assert problem is None or problem[0] in (Status.NOT_PYTHON, Status.SYNTAX_ERROR)
    assert (problem is None) == (codec == "idna" and line == "x = 1")


@pytest.mark.parametrize("text", ["(" * 100_000, "-" * 1_000_000 + "1", "x = 1\0"])
def test_what_no_compiler_takes(tmp_path, text):
    script = tmp_path / "train.py"
    script.write_text(text)
    problem = problem_of(script)
    assert problem is not None
    assert problem[1]["message"]
