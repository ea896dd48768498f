"""An error that ended a script: blamed on it with evidence, explained where its cause is known."""

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


def test_what_needs_a_gpu_is_not_for_the_script_to_fix():
    for error in ("AssertionError: libcuda.so cannot found!", "RuntimeError: 0 active drivers ([])"):
        text = message(error, origin="script")
        assert "Triton kernel" in text
        assert "fix it" not in text


def test_a_missing_data_set_is_offered_samples_of_its_own_form():
    lost = "RuntimeError: Dataset not found. You can use download=True to download it"
    for file, sample in (("mnist", "1x28x28:float32,10:class"), ("voc", "3x224x224:float32,1000:class")):
        assert sample in message(lost, traceback=f'File "torchvision/datasets/{file}.py"', origin="script")


def test_an_error_of_a_library_names_the_line_that_called_it():
    place = {"file": "train.py", "line": 7, "text": "fit(model)"}
    text = crash({"status": "crashed", "message": "ValueError: no", "origin": "script", **place}, "train.py")
    assert text.startswith("'train.py' raised ValueError: no at line 7 of 'train.py', 'fit(model)'. It must")


def test_who_counted_gpus_and_wants_more_is_told_of_world():
    assert "`world_size` N" in message("RuntimeError: need 2 GPUs", origin="script", counted_gpus=True)
    assert "`world_size` N" not in message("RuntimeError: need 2 GPUs", origin="script", counted_gpus=False)


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
