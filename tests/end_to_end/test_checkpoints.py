"""What a script does with checkpoints, from its text to the answer, as a person asks for it."""

import json

import pytest

from tests.end_to_end.cli import Shell, assert_plain_error
from tests.end_to_end.test_patch import SCRIPT

pytestmark = pytest.mark.usefixtures("warm_children")
SAVES = SCRIPT + "    keep(optimizer)\n"
HELPER = "import torch\n\ndef keep(optimizer):\n    torch.save(optimizer.state_dict(), 'last.pt')\n"
RESUMES = "if resume:\n    optimizer.load_state_dict(torch.load('last.pt'))\n"
ASKED = ("--iterations", "200000000", "--gpu", "H100:1", "--offline")


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    (folder / "helper.py").write_text(HELPER)
    (folder / "neither.py").write_text(SCRIPT)
    first = "from helper import keep\nresume = False\n"
    (folder / "saves.py").write_text(first + SAVES)
    made = "data = TensorDataset"
    (folder / "resumes.py").write_text(first + SAVES.replace(made, RESUMES + made))
    return Shell(folder=folder)


def asked(shell: Shell, script: str, *more: str) -> dict[str, object]:
    answer = shell.run("recommend", script, *ASKED, "--json", *more)
    assert answer.code == 0, answer.err
    found: dict[str, object] = json.loads(answer.out)
    return found


@pytest.mark.parametrize(
    ("script", "use", "place"),
    [
        ("neither.py", "none", None),
        ("saves.py", "saves", "helper.py:4 torch.save"),
        ("resumes.py", "resumes", "helper.py:4 torch.save"),
    ],
)
def test_the_answer_follows_from_the_text(shell, script, use, place):
    answer = asked(shell, script)
    job = answer["job"]
    assert isinstance(job, dict)
    known = job["checkpoints"]
    assert (known["use"], known["source"]) == (use, "seen")
    assert known["saves"] == ([] if place is None else [place])
    options = answer["options"]
    assert isinstance(options, list)
    spot = [option for option in options if option["market"] == "spot" and option["feasible"]]
    assert spot
    assert {"checkpoints" in option["work"]["kinds"] for option in spot} == {use != "resumes"}


def test_the_headline_says_what_to_add(shell):
    answer = shell.run("recommend", "neither.py", *ASKED, "--market", "spot")
    text = " ".join(answer.out.split())
    assert "First: add checkpoints (the script writes none): $25.00 and 30 min " in text
    assert "With neither.py as it is, no machine does the job." in text
    answer = shell.run("recommend", "saves.py", *ASKED, "--market", "spot")
    text = " ".join(answer.out.split())
    assert "First: add checkpoints (it saves some, but never resumes)" in text
    answer = shell.run("recommend", "saves.py", *ASKED, "--market", "spot", "--assumptions")
    text = " ".join(answer.out.split())
    assert "make saves.py resume from the checkpoints that it saves (helper.py:4 torch.save)" in text


def test_a_trace_keeps_what_was_seen(shell, tmp_path):
    shell.run("profile", "saves.py", "--out", "saves.trace.json.gz")
    job = asked(shell, "saves.trace.json.gz")["job"]
    assert isinstance(job, dict)
    assert job["checkpoints"]["saves"] == ["helper.py:4 torch.save"]


def test_a_use_that_there_is_not_is_refused(shell):
    answer = shell.run("recommend", "neither.py", *ASKED, "--checkpoints", "sometimes")
    assert_plain_error(answer, 2)
    assert "sometimes" in answer.err
    assert "resumes" in answer.err
