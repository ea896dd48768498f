"""Faults for the tests to notice: where they are put, that they count, and that nothing else changes."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tools import mutants as module
from tools.mutants import Mutant, drawn, files_for, mutants, mutated

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


def test_a_draw_is_the_same_for_the_same_seed() -> None:
    assert drawn(20, 1) == drawn(20, 1) != drawn(20, 2)
    assert len(set(drawn(20, 1))) == 20
    assert len(drawn(10**9, 0)) > 2000


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("recommender/plans/quotas.py", "tests/unit/recommender/plans/test_quotas.py"),
        ("advisor/predict/loading.py", "tests/unit/predict/test_loading.py"),
        ("recommender/policy/merge.py", "tests/property/test_policy_laws.py"),
    ],
)
def test_tests_mirror_or_import_the_module(path: str, test: str) -> None:
    files = files_for(Mutant(path=path, node=0, line=0, words=""), module.ROOT)
    assert module.ROOT / test in files


def ends(tmp_path: Path, test: str, fault: str) -> int:
    """The exit code of a test of ``recommender/plans/quotas.py`` with one fault in it."""
    path = tmp_path / "test_it.py"
    path.write_text(test)
    name = "recommender/plans/quotas.py"
    source = (module.ROOT / name).read_text()
    (number,) = {each.node for each in mutants(name, source) if each.words == fault}
    command = [sys.executable, module.__file__, "--one", name, str(number), str(path)]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode


def test_a_fault_is_seen_by_a_test_that_looks_and_by_no_other(tmp_path: Path) -> None:
    fault = "offer.num_vcpus > quota.vcpus -> offer.num_vcpus >= quota.vcpus"
    looks = (
        "import inspect, recommender.plans.quotas as module\n"
        "def test_it():\n"
        "    assert module.__spec__.loader.__class__.__name__ {} '_Loader'\n"
    )
    assert ends(tmp_path, looks.format("!="), fault) == 1
    assert ends(tmp_path, looks.format("=="), fault) == 0
