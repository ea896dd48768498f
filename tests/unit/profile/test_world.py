"""What the script is told of the processes beside it."""

import os

import pytest

from advisor.payload.fake.gpu import PretendedWorld
from tests.findings import of_child


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """An outer torchrun, whose rank is none of the script's business."""
    monkeypatch.setattr(os, "environ", {"RANK": "3", "WORLD_SIZE": "5", "HOME": "/root"})


@pytest.mark.parametrize(
    ("asked", "gpus"), [(None, 1), (1, 1), (2, 2), (8, 8), (12, 6), (16, 8), (24, 8), (11, 1), (9, 3)]
)
def test_nodes_are_equal_and_have_8_gpus_at_most(asked, gpus):
    assert PretendedWorld(asked).gpus_per_node == gpus


def test_without_a_world_the_script_is_by_itself():
    PretendedWorld().set_environment()
    assert os.environ["HOME"] == "/root"
    assert not {"RANK", "WORLD_SIZE"} & set(os.environ)


def test_a_world_is_told_as_torchrun_tells_it():
    PretendedWorld(16).set_environment()
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "MASTER_PORT")
    assert [os.environ[name] for name in names] == ["0", "0", "16", "8", "2", "29500"]
    assert os.environ["HOME"] == "/root"


def test_the_size_of_the_group_is_first_the_scripts_own():
    world = PretendedWorld(8)
    world.set_environment()
    assert (world.size_of_group(2), world.used) == (2, 2)
    assert (world.size_of_group(-1), world.used) == (8, 8)


def test_a_script_may_write_the_environment_itself():
    world = PretendedWorld()
    world.set_environment()
    os.environ["WORLD_SIZE"] = "4"
    assert world.size_of_group(-1) == 4


def test_without_any_word_the_group_has_one_process():
    world = PretendedWorld()
    world.set_environment()
    assert world.size_of_group(-1) == 1


@pytest.mark.parametrize(
    ("asked", "used", "warning"),
    [
        (None, None, None),
        (8, 8, None),
        (None, 4, None),
        (None, 1, "only process of its group: `world_size` N"),
        (8, None, "`world_size` 8 had no effect"),
        (8, 2, "a group of 2 processes itself, not of `world_size` 8"),
    ],
)
def test_surprises_are_told(asked, used, warning):
    world = PretendedWorld(asked)
    world.used = used
    warnings = world.warnings()
    assert len(warnings) == (0 if warning is None else 1)
    assert warning is None or warning in of_child(warnings)[0]


@pytest.mark.parametrize(
    ("asked", "error", "expected"),
    [
        (None, KeyError("LOCAL_RANK"), True),
        (None, KeyError("RANK"), True),
        (8, KeyError("LOCAL_RANK"), False),
        (None, KeyError("HOME"), False),
        (None, KeyError(), False),
    ],
)
def test_torchrun_is_needed_where_its_variables_are_missed(asked, error, expected):
    assert PretendedWorld(asked).is_asked_by(error) is expected
