"""Faults for the tests to notice: where they are put, that they count, and that nothing else changes."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import mutants as module
from tools.mutants import Mutant, drawn, files_for, interval, mutants, mutated

SOURCE = '''
"""A module with 1 example."""
from dataclasses import dataclass

@dataclass(frozen=True)
class Box:
    size_m: float = 2.0

def fits(box, room_m):
    """Whether it fits."""
    return box.size_m <= room_m and not box.size_m == 0

def label(box):
    return "box of " + f"{box.size_m}"
'''


def test_every_operator_and_constant_is_a_fault_but_in_decorators_and_texts() -> None:
    assert sorted(each.words for each in mutants("box.py", SOURCE)) == [
        "0 -> 1",
        "2.0 -> 3.0",
        "box.size_m <= room_m -> box.size_m < room_m",
        "box.size_m <= room_m and (not box.size_m == 0) -> box.size_m <= room_m or not box.size_m == 0",
        "box.size_m == 0 -> box.size_m != 0",
        "not box.size_m == 0 -> +bool(box.size_m == 0)",
    ]


def test_a_mutant_is_its_source_with_that_one_fault() -> None:
    plain = ast.unparse(ast.parse(SOURCE)).splitlines()
    for each in mutants("box.py", SOURCE):
        lines = ast.unparse(mutated(SOURCE, each.node)).splitlines()
        differing = [(old, new) for old, new in zip(plain, lines, strict=True) if old != new]
        assert len(differing) == 1, each


def test_a_draw_is_the_same_for_the_same_seed_and_begins_with_a_smaller_one() -> None:
    room = ["advisor/native"]
    assert drawn(40, 1, room)[:30] == drawn(30, 1, room) != drawn(30, 2, room)
    assert len(set(drawn(40, 1, room))) == 40


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("recommender/plans/candidates.py", "tests/unit/recommender/plans/test_quotas.py"),
        ("advisor/predict/loading.py", "tests/unit/predict/test_loading.py"),
        ("recommender/policy/merge.py", "tests/property/test_policy_laws.py"),
    ],
)
def test_tests_mirror_or_import_the_module(path: str, test: str) -> None:
    files = files_for(Mutant(path=path, node=0, line=0, words=""), module.ROOT)
    assert module.ROOT / test in files


FILES = {
    "boxes/box.py": """
def fits(size_m, room_m):
    while size_m > 10:
        size_m = size_m / 10
    return size_m <= room_m
""",
    "boxes/lid.py": "LIDS = 1",
    "tests/property/test_box.py": """
from boxes.box import fits
def test_wrong(): assert fits(9, 1)
def test_equal(): assert fits(2, 2)
def test_large(): assert fits(20, 2)
""",
    "tests/property/test_lid.py": """
from boxes import lid
assert lid.LIDS == 1
""",
    "boxes/hinge.py": "HINGES = 3",
    "tests/property/test_hinge.py": """
from boxes import hinge
assert hinge.HINGES == 2
""",
}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the tool says of a small project, where a test has half a second."""
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    code = "from tools import mutants; mutants.CPU_LIMIT_S = 0.5; mutants.main()"
    command = [sys.executable, "-c", code, "--folder", str(folder), "--rooms", "boxes"]
    out = subprocess.run(command, cwd=module.ROOT, capture_output=True, text=True, check=True).stdout
    assert all((folder / name).read_text() == text for name, text in FILES.items())
    return out.splitlines()


@pytest.mark.parametrize(
    ("fault", "end"),
    [
        ("box.py:5: size_m <= room_m -> size_m < room_m", "killed by tests/property/test_box.py::test_equal"),
        (
            "box.py:4: size_m / 10 -> size_m * 10",
            "killed by tests/property/test_box.py::test_large",
        ),  # endless
        ("box.py:3: size_m > 10 -> size_m >= 10", "survived"),
        ("lid.py:1: 1 -> 2", "killed by collection"),
        ("hinge.py:1: 3 -> 4", "survived"),  # its tests cannot be collected anyway
    ],
)
def test_a_fault_is_noticed_by_a_test_that_looks_and_passes_without_it(
    printed: list[str], fault: str, end: str
) -> None:
    assert f"boxes/{fault}: {end}" in printed


def test_the_part_that_was_killed_is_printed_last(printed: list[str]) -> None:
    *lines, last = printed
    assert sum("killed" in line for line in lines) == 3
    assert last == f"3 of {len(lines)} killed (95 % interval 16% to 75%)"


@given(number=st.integers(1, 1000), data=st.data())
def test_an_interval_is_around_its_rate_and_narrows_with_the_number(number: int, data: st.DataObject) -> None:
    killed = data.draw(st.integers(0, number))
    low, high = interval(killed, number)
    assert -1e-9 <= low <= killed / number + 1e-9
    assert killed / number - 1e-9 <= high <= 1 + 1e-9
    narrow_low, narrow_high = interval(4 * killed, 4 * number)
    assert narrow_high - narrow_low < high - low


def test_an_interval_as_published() -> None:
    # Newcombe (1998), table I, method 3: 81 of 263.
    assert interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
