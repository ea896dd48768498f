"""The map in docs/architecture.md shows what is there, and answers really go its way."""

import ast
import sys
from types import FrameType

import pytest
from typer.testing import CliRunner

from advisor.cli import app
from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tools import architecture_map
from tools.architecture_map import ROOT, WAY, architecture_page, room_table, way_table

# A trace from a file needs none of these.
OF_A_SCRIPT = {"profile", "run", "trace_of"}


def test_an_answer_goes_the_way_of_the_map(tmp_path, monkeypatch):
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    write_trace(make_trace(), tmp_path / "trace.json")
    wanted = {(str(ROOT / file), name): (file, name) for file, name in WAY}
    order: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        step = wanted.get((frame.f_code.co_filename, frame.f_code.co_name))
        if event == "call" and step and step not in order:
            order.append(step)

    question = ["recommend", str(tmp_path / "trace.json"), "--iterations", "1000", "--gpu", "L4", "--offline"]
    sys.setprofile(note)
    try:
        answer = CliRunner().invoke(app, question, catch_exceptions=False)
    finally:
        sys.setprofile(None)
    assert answer.exit_code == 0
    assert order == [step for step in WAY if step[1] not in OF_A_SCRIPT]


def test_each_step_shows_what_it_gives_and_does():
    rows = way_table()
    assert len(rows) == 2 + len(WAY)
    (predicting,) = (row for row in rows if "`op_times`" in row)
    assert "`OpTimes` | Seconds of every operator" in predicting


def test_a_function_that_moved_is_an_error(monkeypatch):
    monkeypatch.setattr(architecture_map, "WAY", (("advisor/predict/iteration.py", "gone"),))
    with pytest.raises(ValueError, match=r"advisor/predict/iteration\.py has no function 'gone'"):
        way_table()


def test_every_room_is_in_the_table():
    shown = "\n".join(room_table())
    packages = [*ROOT.glob("advisor/*/__init__.py"), *ROOT.glob("recommender/__init__.py")]
    folders = [path.parent.relative_to(ROOT).as_posix() for path in packages]
    assert len(folders) > 20
    assert not [folder for folder in folders if f"| `{folder}` |" not in shown]


def test_every_package_says_what_it_holds():
    packages = [*ROOT.glob("advisor/**/__init__.py"), *ROOT.glob("recommender/**/__init__.py")]
    assert len(packages) > 30
    assert not [path for path in packages if not ast.get_docstring(ast.parse(path.read_text()))]


def test_the_rooms_stand_in_the_linters_order():
    levels = [int(row.split(" | ")[0].strip("| ")) for row in room_table()[2:]]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == 1


def test_a_page_without_its_marks_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(architecture_map, "PAGE", tmp_path / "page.md")
    (tmp_path / "page.md").write_text("# Architecture\n")
    with pytest.raises(ValueError, match="lacks the line"):
        architecture_page()
