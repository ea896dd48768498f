"""An error that ended a script: blamed on it with evidence, explained where its cause is known."""

import pytest

from advisor.profile.failures import crash

SCRIPT, PRETENDED = {"origin": "script"}, {"origin": "pretended"}
PLACE = SCRIPT | {"file": "train.py", "line": 7, "text": "fit(model)"}
LOST = "RuntimeError: Dataset not found. You can use download=True to download it"
GPUS, CHECKED = "RuntimeError: need 2 GPUs", "AssertionError: loss is 0.5"


@pytest.mark.parametrize(
    ("text", "changes", "words", "others"),
    [
        ("ValueError: no data", SCRIPT, ["'train.py' raised ValueError: no data. It must run"], ["report"]),
        ("ValueError: no", PLACE,
         ["'train.py' raised ValueError: no at line 7 of 'train.py', 'fit(model)'. It must"], []),
        # What torch raises is blamed on nobody, but for a known cause.
        ("RuntimeError: shapes differ", PRETENDED,
         ["may be the script's or advisor's", "`profile.backend` cpu", "please report"],
         ["raised", "fix it"]),
        ("RuntimeError: [enforce] DefaultCPUAllocator: not enough memory", PRETENDED,
         ["CPU tensors are real"], ["report"]),
        ("AssertionError: libcuda.so cannot found!", SCRIPT, ["Triton kernel"], ["fix it"]),
        ("RuntimeError: 0 active drivers ([])", SCRIPT, ["Triton kernel"], ["fix it"]),
        ("OSError: [Errno 28] No space left on device", SCRIPT,
         ["was ended before its third optimizer step", "TMPDIR"], ["fix it"]),
        (LOST, SCRIPT | {"traceback": 'File "torchvision/datasets/mnist.py"'}, ["1x28x28:float32,10:class"],
         []),
        (LOST, SCRIPT | {"traceback": 'File "torchvision/datasets/voc.py"'},
         ["3x224x224:float32,1000:class"], []),
        (GPUS, SCRIPT | {"counted_gpus": True}, ["`world_size` N"], []),
        (GPUS, SCRIPT | {"counted_gpus": False}, [], ["`world_size` N"]),
        (CHECKED, SCRIPT | {"checks_made_up": True}, ["made up"], []),
        (CHECKED, SCRIPT | {"checks_made_up": False}, [], ["made up"]),
        ("EOFError: EOF when reading a line", {}, ["standard input"], []),
        ("EOFError", {}, ["standard input"], []),
        ("EOFError: Ran out of input", {}, [], ["standard input"]),
        ("URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", {},
         ["from the network"], []),
        ("URLError: <urlopen error [Errno -2]>", {}, [], ["Its data set is"]),
        ("gaierror: [Errno -2] Name or service not known", {}, ["from the network"], []),
        ("ConnectionError: HTTPSConnectionPool(host='a'): Max retries exceeded", {}, ["from the network"],
         []),
        ("ValueError: RANK is not set", {}, ["`world_size` N"], []),
        ("ValueError: LOCAL_RANK is not set", {}, ["`world_size` N"], []),
        ("ValueError: LOW_RANK must be set", {}, [], ["`world_size`"]),
    ],
)  # fmt: skip
def test_what_an_error_is_told_with(text, changes, words, others):
    told = crash({"status": "crashed", "message": text, **changes}, "train.py")
    assert [word for word in words if word not in told] == []
    assert [other for other in others if other in told] == []
