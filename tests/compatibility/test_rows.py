"""Every row of docs/compatibility.md holds, or fails for the reason it names."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from advisor.core.errors import AdvisorError, ProfileError
from advisor.profile import profile
from advisor.profile.epoch import parse_fake_data
from tests.compatibility.checks import problems
from tests.compatibility.row import SCRIPTS, Row
from tests.compatibility.rows import ROWS
from tests.compatibility.table import PAGE, page, pinned_version

FEWEST_PASSING = 24
ROW_TIMEOUT_S = 120.0
needs_torch = pytest.mark.torch


def installed(row):
    return row.library is None or importlib.util.find_spec(row.library) is not None


def outcome_of(row):
    try:
        return profile(
            row.path,
            row.arguments,
            timeout_s=ROW_TIMEOUT_S,
            world_size=row.world,
            fake_data=parse_fake_data(row.fake_data) if row.fake_data else (),
            num_samples=row.num_samples,
        )
    except AdvisorError as error:
        return error


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("compatibility")


@pytest.fixture(scope="module")
def outcomes(folder, warm_children):
    """What profiling gave for each row, two at a time in a folder of their own."""
    runnable = [row for row in ROWS if installed(row)]
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.chdir(folder)
        return dict(zip((row.name for row in runnable), pool.map(outcome_of, runnable), strict=True))


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row, outcomes):
    if not installed(row):
        pytest.skip(f"needs {row.library}: pip install 'gpu-advisor[frameworks]'")
    expected_text = problems(row, outcomes[row.name])
    if row.fails is None:
        assert expected_text == []
    else:
        assert expected_text != [], f"{row.name} holds now: take its `fails` away and write the table anew"


@needs_torch
@pytest.mark.slow
def test_no_script_leaves_a_file(folder, outcomes):
    # Of transformers' output_dir and of a CSVLogger's the folders themselves stay, empty.
    assert [path for path in folder.rglob("*") if not path.is_dir()] == []


def test_the_page_is_what_the_rows_say():
    assert PAGE.read_text() == page(), "run python -m tests.compatibility.table"


def test_enough_rows_hold():
    assert sum(row.fails is None for row in ROWS) >= FEWEST_PASSING


def test_every_script_has_a_row_and_every_row_a_script():
    assert {path.stem for path in SCRIPTS.glob("*.py")} == {row.script for row in ROWS}
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_says_what_it_is_and_expects_more_than_no_crash(row):
    title, source = row.docstring()
    assert title
    assert len(source) > 20
    assert row.calls or row.parameters or row.fails
    assert pinned_version(row.library or "torch")


# --- The checks can fail -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quickstart(outcomes):
    return next(row for row in ROWS if row.script == "quickstart"), outcomes["quickstart"]


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "expected_text"),
    [
        ({"batch": 63}, "batch: 64 instead of 63"),
        ({"samples": None}, "samples: 1000 instead of None"),
        ({"amp": "float16"}, "amp: None instead of 'float16'"),
        ({"batch": range(65, 99)}, "batch: 64 instead of range(65, 99)"),
        ({"accumulation": 2}, "accumulation: 1 instead of 2"),
        ({"calls": {"addmm": 4}}, "addmm: 3 instead of 4"),
        ({"parameters": ((512, 784),)}, "parameter bytes: 2679296 instead of 1605632"),
        ({"product_flops": 1}, "FLOPs of products: 205389824 instead of 1"),
        ({"loading_s": 60.0}, "loads for 60.0 s: False instead of True"),
        ({"warning": "torch.compile"}, "warns of 'torch.compile': False instead of True"),
    ],
)
def test_a_trace_that_differs_is_told(quickstart, wrong, expected_text):
    row, trace = quickstart
    fields = {"batch": 64, "samples": 1000, "iterations": 16}
    assert problems(Row(script=row.script, **(fields | wrong)), trace) == [expected_text]


@needs_torch
@pytest.mark.slow
def test_communication_that_differs_is_told(outcomes):
    row = next(row for row in ROWS if row.script == "ddp_spawn")
    wrong = replace(row, world=4, collectives={"all_reduce": 8})
    assert problems(wrong, outcomes[row.name]) == [
        "bytes of collectives: {'all_reduce': 33574912} instead of {'all_reduce': 8}",
        "world sizes: {8} instead of {4}",
    ]
    silent = replace(row, collectives={})
    assert problems(silent, outcomes[row.name]) == [
        "bytes of collectives: {'all_reduce': 33574912} instead of {}",
        "world sizes: {8} instead of set()",
    ]


def test_a_row_names_the_flags_it_was_profiled_with():
    row = Row(script="x", arguments=("--epochs", "2"), world=8, fake_data="13:float32", num_samples=5)
    assert row.options == ("--world 8", "--fake-data 13:float32", "--samples 5")
    assert row.name == "x --world 8 --fake-data 13:float32 --samples 5 --epochs 2"


def test_a_script_that_cannot_be_profiled_is_told():
    assert problems(Row(script="quickstart"), ProfileError("it crashed")) == ["it crashed"]
