"""Which facts an error of the profiler carries, by what the child left."""

from typing import Any

import pytest

from advisor.core.errors import AdvisorError, GpuUnusableError, InputError, ProfileError
from advisor.profile.failures import failure, hint_of

LOG = "\n".join(f"line {number}." for number in range(1, 31))


def explain(status: str | None, *, returncode: int | None = 0, log: str = "", **details: Any) -> AdvisorError:
    recording = None if status is None else {"status": status, "torch": "2.9.1", **details}
    return failure(
        recording, script="dir/train.py", python="/p/python", returncode=returncode, log=log, timeout_s=1.5
    )


@pytest.mark.parametrize(
    ("status", "kind", "exit_code"),
    [
        (None, ProfileError, 1),
        ("not_python", InputError, 2),
        ("no_torch", InputError, 2),
        ("old_torch", InputError, 2),
        ("broken_torch", InputError, 2),
        ("strange_torch", InputError, 2),
        ("no_gpu_work", ProfileError, 1),
        ("missing_module", ProfileError, 1),
        ("no_iteration", ProfileError, 1),
        ("crashed", ProfileError, 1),
    ],
)
def test_wrong_input_and_failures_end_differently(status, kind, exit_code):
    error = explain(status)
    assert type(error) is kind
    assert error.exit_code == exit_code


@pytest.mark.parametrize(
    ("returncode", "words", "others"),
    [
        (None, "1.5 s", ("memory", "exit code", "SIG")),
        (-9, "memory", ("`profile.timeout`", "exit code", "SIGKILL")),
        (-15, "SIGTERM", ("memory", "`profile.timeout`", "exit code")),
        (-11, "SIGSEGV", ("memory", "`profile.timeout`", "exit code")),
        (-6, "SIGABRT", ("memory", "`profile.timeout`", "exit code")),
        (0, "exit code 0", ("memory", "`profile.timeout`", "SIG")),
        (1, "exit code 1 ", ("memory", "`profile.timeout`", "SIG")),
    ],
)
def test_each_way_to_vanish_has_its_own_words(returncode, words, others):
    text = str(explain(None, returncode=returncode))
    assert words in text
    assert not any(other in text for other in others)


KERNELS = "scaled_dot_product_attention"
STARTED = {"message": "it came to its end", "num_processes": 2}
REFUSED = {"message": "OSError: no such model", "refused": ["bert-base", "imdb"]}
IN_SANDBOX = {"message": "mine", "in_sandbox": True}


@pytest.mark.parametrize(
    ("status", "details", "words", "others"),
    [
        *(
            (status, {}, ["'dir/train.py'"], [])
            for status in (None, "not_python", "missing_module", "crashed")
        ),
        *(
            (status, {"message": "2.1"}, ["'/p/python'", "`profile.python`"], [])
            for status in ("no_torch", "old_torch", "broken_torch", "missing_module")
        ),
        ("not_python", {"message": "invalid syntax"}, ["not a Python", ".py file"], []),
        ("old_python", {"message": "3.9.18"}, ["is Python 3.9.18", "3.10", "`profile.python`"], ["torch"]),
        ("no_torch", {"message": "1.9"}, ["has no torch", "pip install torch"], ["too old", "Repair"]),
        (
            "old_torch",
            {"message": "1.9"},
            ["1.9", "2.6", "too old", "pip install -U"],
            ["has no torch", "Repair"],
        ),
        ("broken_torch", {"message": "1.9"}, ["1.9", "cannot be imported"], ["has no torch", "too old"]),
        (
            "strange_torch",
            {"message": "torch._C.x, which advisor's part 'y' needs"},
            ["2.9.1", "torch._C.x", "'y'", "'/p/python'", "2.13", "2.11"],
            [],
        ),
        ("missing_module", {"message": "timm"}, ["'timm'"], ["kernels"]),
        *(
            ("missing_module", {"message": name}, [KERNELS], [])
            for name in ("flash_attn", "triton", "flash_attn.x")
        ),
        ("missing_module", IN_SANDBOX, ["`profile.sandbox_read`"], []),
        ("no_gpu_work", {}, ["--device cuda"], []),
        (
            "no_iteration",
            STARTED,
            [
                "started 2 of multiprocessing.Process",
                "main process",
                "multiprocessing.spawn",
                "`world_size` N",
            ],
            [],
        ),
        ("no_iteration", STARTED | {"num_processes": 0}, ["'dir/train.py'"], ["Process"]),
        ("no_iteration", STARTED | {"num_processes": 0}, ["optimizer.step()", "came to its end"], []),
        (
            "crashed",
            {"message": "ValueError: bad..."},
            ["raised ValueError: bad. ", "third optimizer step"],
            [],
        ),
        (
            "crashed",
            REFUSED,
            ["could not download before that: 'bert-base', 'imdb'", "run it once by itself", "3x224x224"],
            [],
        ),
        ("crashed", REFUSED | {"fed_fake_data": True}, ["run it once"], ["profile.fake_data"]),
    ],
)
def test_what_is_said_of_each_failure(status, details, words, others):
    text = str(explain(status, **details))
    assert [word for word in words if word not in text] == []
    assert [other for other in others if other in text] == []


@pytest.mark.parametrize("status", [None, "no_iteration"])
def test_the_last_fifteen_lines_of_the_output_are_shown(status):
    text = str(explain(status, log=f"\n{LOG}\n\n"))
    assert text.endswith("\n" + "\n".join(f"line {number}." for number in range(16, 31)))
    assert "line 15." not in text


@pytest.mark.parametrize("status", [None, "no_iteration"])
@pytest.mark.parametrize("log", ["", " \n\n"])
def test_without_output_nothing_is_said_of_it(status, log):
    assert "output" not in str(explain(status, log=log))
    assert str(explain(status, log=log)) == str(explain(status))


@pytest.mark.parametrize("status", ["not_python", "no_torch", "missing_module", "crashed"])
def test_where_the_error_is_known_the_output_is_left_out(status):
    assert "line 30" not in str(explain(status, log=LOG))


@pytest.mark.parametrize("status", ["missing_module", "crashed"])
def test_the_frames_come_last(status):
    assert str(explain(status, traceback="  a frame\n\n")).endswith(".\n\n  a frame")
    for nothing in (None, ""):
        text = str(explain(status, message="x", traceback=nothing))
        assert not text.endswith("\n")
        assert "None" not in text


def test_our_own_faults_are_told_apart_from_the_scripts():
    ours = str(explain("crashed", message="KeyError: 1", internal=True, traceback="frames"))
    theirs = str(explain("crashed", message="KeyError: 1", internal=False, traceback="frames"))
    assert "inside advisor" in ours
    assert "raised" not in ours
    assert "raised KeyError: 1" in theirs
    assert "report" not in theirs
    assert ours.endswith("frames")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("ValueError: torch.distributed is not initialised", "`world_size` N"),
        ("ValueError: Default process group has not been initialized", "`world_size` N"),
        ("KeyError: 'WORLD_SIZE'", "`world_size` N"),
        ("SecondGpuError: it uses a second GPU in one process, cuda:1", "one process for each GPU"),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory", "CPU tensors are real"),
        ("MemoryError", "load less"),
        ("RuntimeError: Tried to instantiate dummy base class CUDAGraph", "CUDA graphs cannot"),
        ("CompressedLayoutError: compressed sparse layouts are not supported", "COO tensors are"),
        ("OSError: CUDA_HOME environment variable is not set", "CUDA extension"),
        ("ImportError: attempted relative import with no known parent package", "__init__.py"),
        ("EOFError: EOF when reading a line", "standard input"),
        ("FileNotFoundError: no best.pt", "torch.save"),
        ("FileNotFoundError: 'best.pt'", "can be read back"),
        ("OSError: [Errno 30] Read-only file system: 'x'", "without `profile.sandbox`"),
        ("OSError: [Errno 28] No space left on device", "TMPDIR"),
        ("RuntimeError: PytorchStreamWriter failed writing file data/0", "TMPDIR"),
        ("ConnectionError: Couldn't reach 'imdb' on the Hub (OfflineModeIsEnabled)", "only caches are read"),
    ],
)
def test_what_only_the_profiler_causes_is_explained(message, words):
    assert words in str(explain("crashed", message=message))
    assert words not in str(explain("crashed", message="ValueError: shapes differ"))
    # Not where the fault is ours.
    assert words not in str(explain("crashed", message=message, internal=True))


def test_an_assertion_is_explained_by_the_line_that_made_it():
    frames = (
        "  File 'train.py', line 3\n    assert torch.cuda.device_count() >= 2, 'more'\nAssertionError: more"
    )
    assert "one GPU" in str(explain("crashed", message="AssertionError: more", traceback=frames))
    # A line that only stands above the fault says nothing.
    calm = frames.replace("assert torch", "print(torch")
    assert "one GPU" not in str(explain("crashed", message="AssertionError: more", traceback=calm))


@pytest.mark.parametrize(
    ("explanation", "words"),
    [
        ({"status": "no_cuda", "message": "torch 2.13.0+cpu is a build without CUDA"}, "without CUDA"),
        (
            {"status": "crashed", "backend": "cuda", "message": "OutOfMemoryError: CUDA out of memory."},
            "does not fit on this GPU",
        ),
        ({"status": "no_iteration", "backend": "cuda", "num_spans": 4}, "made 4 step(s)"),
    ],
)
def test_what_works_without_the_gpu_says_so(explanation, words):
    error = explain(**explanation)
    assert type(error) is GpuUnusableError
    assert words in str(error)
    assert str(error).endswith("`profile.backend` fake.")


@pytest.mark.parametrize(
    ("explanation", "kind"),
    [
        ({"status": "crashed", "backend": "cuda", "message": "ValueError: x"}, GpuUnusableError),
        ({"status": "crashed", "backend": "fake", "message": "CUDA out of memory"}, ProfileError),
        ({"status": "no_iteration", "backend": "fake", "num_spans": 0}, ProfileError),
    ],
)
def test_any_fault_on_the_gpu_may_be_the_gpus_and_none_without_it(explanation, kind):
    assert type(explain(**explanation)) is kind


@pytest.mark.parametrize(
    ("frame", "needs_no_weights"),
    [
        ('"/lib/transformers/models/auto/auto_factory.py", line 1, in from_pretrained', True),
        ('"/lib/transformers/trainer.py", line 1, in train', False),
        ('"/lib/diffusers/models/modeling_utils.py", line 1, in from_pretrained', False),
        ('"/lib/huggingface_hub/file_download.py", line 1, in hf_hub_download', False),
    ],
)
def test_only_models_of_transformers_need_no_weights(frame, needs_no_weights):
    raised = f"Traceback (most recent call last):\n  File {frame}\n    ...\nOSError: no such model"
    text = str(explain("crashed", message="OSError: no such model", traceback=raised, refused=["org/m"]))
    assert ("hf download" in text, "profile.fake_data" in text) == (needs_no_weights, not needs_no_weights)


MNIST = (
    "RuntimeError: Error downloading x.gz:\nTried https://a.example/, got:\n"
    "advisor refused to download 'https://a.example/x.gz'"
)


def test_what_the_error_names_is_not_named_again():
    frames = f'  File "train.py", line 9\n    MNIST("data", download=True)\n{MNIST}\n'
    text = str(explain("crashed", message=MNIST, traceback=frames, refused=["https://a.example/x.gz", "y"]))
    assert text.count("https://a.example/x.gz") == 1
    assert "before that: 'y'." in text
    assert text.count("run it once by itself") == 1
    assert text.endswith("download=True)")


def test_a_file_that_the_sandbox_does_not_show_is_told(tmp_path):
    """Was: it was blamed on the data set, which is there."""
    there = tmp_path / "train.csv"
    there.touch()
    message = f"FileNotFoundError: [Errno 2] No such file or directory: '{there}'"
    told = hint_of({"status": "crashed", "message": message, "in_sandbox": True})
    assert f"{str(there)!r} is there, but out of the sandbox's sight" in told
    assert "`profile.sandbox_read`" in told
    assert "sandbox_read" not in hint_of({"status": "crashed", "message": message})
    there.unlink()
    assert "add files and folders with" in hint_of(
        {"status": "crashed", "message": message, "in_sandbox": True}
    )
