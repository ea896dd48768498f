"""The page on Python runs as it stands, one example after the other."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from advisor.report.words import sentence

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.torch
@pytest.mark.usefixtures("warm_children")
def test_the_examples_run_from_script_to_recommendation(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    monkeypatch.chdir(ROOT)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("ADVISOR_PRICES__OFFLINE", "true")
    first, settings, use_case, pure = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), flags=re.DOTALL
    )
    names: dict[str, Any] = {}
    lines = run(first, names)
    answer = names["answer"]
    *plans, taken, compared = lines
    assert len(plans) == len(answer.frontier) >= 2
    assert all(re.fullmatch(r"(aws|gcp)/\S+: \d+\.\d h, \d+\.\d\d USD", line) for line in plans)
    assert re.fullmatch(r"A is cheaper with p [01]\.\d\d; .*", compared)
    assert taken == f"take {answer.recommended}: {sentence(answer.rule)}"
    assert {estimate.gpu for estimate in names["estimates"]} == {"L4", "A10G"}
    assert names["offers"].offers
    assert "recommended" in answer._repr_html_()
    assert "train_dcgan.py" in names["trace"]._repr_html_()
    assert [run(code, names) for code in (settings, use_case, pure)] == [[], [], []]
    assert "cluster/lab/1xT4" in {option.plan.id for option in names["answer"].options}
    assert {offer.market for offer in names["cheap"].offers} == {"spot"}
    assert names["pure"].recommended


def run(code: str, names: dict[str, Any]) -> list[str]:
    """What an example prints; the names that it binds are there for the next one."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "docs/python.md", "exec"), names)  # noqa: S102 - our own page
    return out.getvalue().splitlines()
