"""Whose error it was: the script's by its own line, else nobody's."""

import pytest

torch = pytest.importorskip("torch")
from advisor.payload import script  # noqa: E402 - needs torch
from advisor.payload.script import origin_of, raises_itself  # noqa: E402

pytestmark = pytest.mark.torch


def caught(code: str, name: str = "train.py") -> BaseException:
    try:
        exec(compile(code, name, "exec"), {"torch": torch})  # noqa: S102 - as runpy does a script
    except Exception as error:  # noqa: BLE001 - any is looked at
        return error
    raise AssertionError("it raised nothing")


@pytest.mark.parametrize(
    "code",
    [
        "raise RuntimeError('the data is rotten')",
        "assert 1 > 2, 'needs more'",
        "1 / 0",
        "open('surely/not/here')",
        "undefined",
        "import surely_not_installed",
        "def again(): again()\nagain()",
        "try:\n    {}['a']\nexcept KeyError as error:\n    raise ValueError('no a') from error",
    ],
)
def test_a_line_of_the_script_that_raises_is_evidence(code):
    assert origin_of(caught(code)) == "script"


@pytest.mark.parametrize(
    "code",
    [
        "torch.zeros(2, 3) @ torch.zeros(2, 3)",  # in C++, called by the line
        "torch.nn.Linear(2, 3)(torch.zeros(4, 5))",
        "torch.optim.SGD([], lr=1)",
        "try:\n    torch.ones(2) @ torch.ones(3)\nexcept RuntimeError as e:\n    raise ValueError from e",
    ],
)
def test_what_torch_raises_is_evidence_of_nothing(code):
    assert origin_of(caught(code)) == "pretended"


def test_what_the_system_answers_is_no_matter_of_the_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(script, "_PAYLOAD", "/advisor/payload")
    patch = "/advisor/payload/fake/patches/removed_paths.py"
    assert origin_of(caught(f"import os\nos.mkdir({str(tmp_path)!r})", patch)) == "script"
    assert origin_of(caught("raise FileExistsError(17, 'File exists')", patch)) == "pretended"
    assert origin_of(caught(f"torch.load({str(tmp_path / 'no.pt')!r})")) == "script"


def test_what_a_patch_of_ours_raises_is_not_the_scripts(monkeypatch):
    monkeypatch.setattr(script, "_PAYLOAD", "/advisor/payload")
    assert origin_of(caught("raise ValueError('x')", "/advisor/payload/fake/mode.py")) == "pretended"


@pytest.mark.parametrize(
    ("code", "expected"), [("assert False", True), ("raise ValueError", True), ("1 / 0", False)]
)
def test_a_check_of_the_script_is_known_by_its_instruction(code, expected):
    assert raises_itself(caught(code)) is expected
