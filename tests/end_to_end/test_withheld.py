"""A script that asks for a variable which scripts do not get: told in one line, by name, never by value."""

import pytest

from advisor.core.errors import ProfileError
from advisor.core.findings.about_traces import VariablesWithheld
from advisor.profile import profile
from advisor.report.plain import in_flags

pytestmark = pytest.mark.usefixtures("warm_children")
TRAINS = """
import torch
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.randn(4, 8, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
ASKS = """
import os, sysconfig
assert os.environ.get("DATA_ROOT", "here") == "{expected}"
assert os.getenv("SLACK_WEBHOOK") is None and "DB_PASS" not in os.environ
assert os.environ.get("NOT_THERE") is None
"""
SECRET = "hunter22" + "xyz"


@pytest.fixture
def variables(monkeypatch):
    monkeypatch.setenv("DATA_ROOT", "/data")
    monkeypatch.setenv("DB_PASS", SECRET)
    monkeypatch.setenv("SLACK_WEBHOOK", f"https://example.org/{SECRET}")


@pytest.mark.usefixtures("variables")
def test_what_it_asked_for_is_named(tmp_path):
    """Before: it got all three."""
    script = tmp_path / "train.py"
    script.write_text(ASKS.format(expected="here") + TRAINS)
    trace = profile(script, backend="fake")
    (told,) = [warning for warning in trace.warnings if isinstance(warning, VariablesWithheld)]
    assert told.facts == {"names": ["DATA_ROOT", "SLACK_WEBHOOK", "DB_PASS"]}
    assert SECRET not in str(trace)


@pytest.mark.usefixtures("variables")
def test_what_is_handed_on_is_there(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(ASKS.format(expected="/data") + TRAINS)
    trace = profile(script, backend="fake", env=["DATA_ROOT"])
    (told,) = [warning for warning in trace.warnings if isinstance(warning, VariablesWithheld)]
    assert told.facts == {"names": ["SLACK_WEBHOOK", "DB_PASS"]}


@pytest.mark.usefixtures("variables")
@pytest.mark.parametrize(
    "line", ['os.environ["DB_PASS"]', 'os.getenv("DB_PASS").upper()', 'sys.exit(os.getenv("DB_PASS"))']
)
def test_a_crash_says_how_it_gets_it(line, tmp_path):
    """Before: there was nothing to say, since it got the password."""
    script = tmp_path / "train.py"
    script.write_text(f"import os, sys, torch\n{line}\n")
    with pytest.raises(ProfileError) as caught:
        profile(script, backend="fake")
    assert "scripts do not get: DB_PASS" in str(caught.value)
    assert "--env DB_PASS" in in_flags(str(caught.value))
    assert SECRET not in str(caught.value)


@pytest.mark.usefixtures("variables")
def test_what_libraries_ask_for_is_not_told(tmp_path, monkeypatch):
    """Each of them looks for tokens of its own accord."""
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "tracker.py").write_text("import os\nos.environ.get('DB_PASS')\n")
    monkeypatch.setenv("PYTHONPATH", str(package))
    script = tmp_path / "train.py"
    script.write_text("import tracker\n" + TRAINS)
    assert not [one for one in profile(script, backend="fake").warnings if isinstance(one, VariablesWithheld)]
