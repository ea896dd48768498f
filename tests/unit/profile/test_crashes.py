"""An error that ended a script: blamed on it with evidence, explained where its cause is known."""

from __future__ import annotations

import pytest

from advisor.profile.failures import crash


def message(text: str, **changes: object) -> str:
    return crash({"status": "crashed", "message": text, **changes}, "train.py")


def test_an_error_of_the_scripts_own_line_is_its_fault():
    text = message("ValueError: no data", origin="script")
    assert text.startswith("'train.py' raised ValueError: no data. It must run")
    assert "report" not in text


def test_an_error_from_torch_is_blamed_on_nobody():
    text = message("RuntimeError: shapes differ", origin="pretended")
    assert "raised" not in text
    assert "fix it" not in text
    for word in ("may be the script's or advisor's", "`profile.backend` cpu", "please report"):
        assert word in text


def test_a_known_cause_is_told_in_place_of_doubt():
    text = message("RuntimeError: [enforce] DefaultCPUAllocator: not enough memory", origin="pretended")
    assert "CPU tensors are real" in text
    assert "report" not in text


def test_a_full_folder_is_not_for_the_script_to_fix():
    text = message("OSError: [Errno 28] No space left on device", origin="script")
    assert "was ended before its third optimizer step" in text
    assert "TMPDIR" in text
    assert "fix it" not in text


def test_a_check_of_made_up_values_is_no_evidence_alone():
    checked = message("AssertionError: loss is 0.5", origin="script", checks_made_up=True)
    assert "made up" in checked
    assert "made up" not in message("AssertionError: loss is 0.5", origin="script", checks_made_up=False)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("EOFError: EOF when reading a line", "standard input"),
        ("EOFError", "standard input"),
        ("URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", "from the network"),
        ("gaierror: [Errno -2] Name or service not known", "from the network"),
        (
            "ConnectionError: HTTPSConnectionPool(host='a', port=443): Max retries exceeded",
            "from the network",
        ),
        ("ValueError: RANK is not set", "`world_size` N"),
        ("ValueError: LOCAL_RANK is not set", "`world_size` N"),
    ],
)
def test_a_hint_names_the_cause(text, hint):
    assert hint in message(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("EOFError: Ran out of input", "standard input"),
        ("ValueError: LOW_RANK must be set", "`world_size`"),
        ("URLError: <urlopen error [Errno -2]>", "Its data set is"),
    ],
)
def test_a_hint_for_another_cause_is_not_given(text, hint):
    assert hint not in message(text)
