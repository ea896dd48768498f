"""The page on Python runs as it stands."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from advisor.report.words import sentence

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.torch
def test_the_example_runs_from_script_to_recommendation(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "docs/python.md", "exec"), names)  # noqa: S102 - our own page
    lines = out.getvalue().splitlines()
    answer = names["answer"]
    assert len(lines) == len(answer.frontier) + 1 >= 3
    assert all(re.fullmatch(r"(aws|gcp)/\S+: \d+\.\d h, \d+\.\d\d USD", line) for line in lines[:-1])
    assert lines[-1] == f"take {answer.recommended}: {sentence(answer.rule)}"
    assert names["estimate"].gpu == "L4"
    assert "Recommended: " in answer._repr_html_()
    assert "train_dcgan.py" in names["trace"]._repr_html_()
