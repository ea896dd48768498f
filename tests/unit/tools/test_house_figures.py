"""The figures that compare houses, on a small tree that can be counted by hand."""

import doctest

import pytest

from tools import house_figures
from tools.house_figures import ROOT, count_code, main, prose_pages, python_files, sentences, spread

MODULE = '''"""A module."""

from typing import Any

# A comment of its own.
X: Any = 1  # not a line of its own


def told(a: int, *rest: Any) -> int:
    """Documented."""
    return a


def untold(a, b: int) -> int:
    def inner() -> None: ...

    return b


class Thing:
    """Documented."""

    def method(self) -> None: ...

    def _hidden(self): ...
'''


def test_a_module_is_counted(tmp_path):
    (tmp_path / "code" / "tests").mkdir(parents=True)
    (tmp_path / "code" / "module.py").write_text(MODULE)
    (tmp_path / "code" / "tests" / "test_module.py").write_text("def test_it(): ...\n")
    code = count_code(python_files([tmp_path / "code"]))
    assert code.file_lines == (len(MODULE.splitlines()),)
    assert sorted(code.function_lines) == [1, 1, 1, 3, 4]
    assert (code.num_any, code.num_comment_lines) == (3, 1)  # with its import
    assert code.num_filled_lines == sum(map(bool, MODULE.splitlines()))
    assert sorted(code.annotated) == [False, False, True, True, True]
    assert sorted(code.documented) == [False, False, True, True]  # told and Thing; untold and method are not


def test_sentences_leave_out_what_is_no_prose():
    page = (
        "# Title\n\nFirst sentence, e.g. this one. A second\none! And `code`?\n\n"
        "```python\nnot = 'prose'\n```\n\n    indented = code\n\n| a | table |\n|---|---|\n\n"
        "1. A point that\n   goes on\n2. Another\n"
    )
    assert sentences(page) == [
        "First sentence, e.g this one.", "A second one!", "And `code`?", "A point that goes on", "Another",
    ]  # fmt: skip


def test_pages_come_in_the_order_of_the_places(tmp_path):
    for name in ("docs/b.md", "docs/a.rst", "docs/chart.svg", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert list(prose_pages(tmp_path, ["README.md", "docs"])) == ["README.md", "docs/a.rst", "docs/b.md"]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([], "-"), ([7], "7 / 7 / 7"), (range(1, 101), "50 / 90 / 100"), ([3, 1, 2], "2 / 3 / 3")],
)
def test_spread(counts, expected):
    assert spread(counts) == expected


def test_the_examples_hold():
    assert doctest.testmod(house_figures).failed == 0


def test_columns_stand_side_by_side(tmp_path, monkeypatch, capsys):
    (tmp_path / "module.py").write_text(MODULE)
    (tmp_path / "README.md").write_text("Three words here.")
    monkeypatch.setattr(house_figures, "OURS", "ours=tools:README.md")
    monkeypatch.setattr("sys.argv", ["house_figures.py", f"small={tmp_path}:{tmp_path / 'README.md'}"])
    main()
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["| ", "ours", "small |"]
    assert all(len(row) == 3 for row in rows[2:])
    assert rows[2][2] == "1 / 0.0k |"
    assert rows[-2][2] == "3 |"


def test_our_own_prose_is_short():
    pages = prose_pages(ROOT, ["README.md", "docs", "CONTRIBUTING.md", "SECURITY.md"])
    lengths = [len(sentence.split()) for page in pages.values() for sentence in sentences(page)]
    assert len(lengths) > 900
    assert sorted(lengths)[round(0.9 * (len(lengths) - 1))] <= 25
