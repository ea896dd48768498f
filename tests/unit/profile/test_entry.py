"""How scripts are started: as modules, with mistakes in a line, and with changes that wait for imports."""

import importlib
import sys
from pathlib import Path

import pytest

from advisor.core.errors import InputError, ProfileError
from advisor.payload import replacing, script
from advisor.payload.protocol import Status
from advisor.payload.script import is_of_a_file, problem_of, syntax_details
from advisor.profile.failures import failure

TELL = "import builtins, sys\nbuiltins.told = (__name__, __package__, sys.path[0])\n"


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    # What a test imports would be found by the next one.
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr("builtins.told", None, raising=False)
    monkeypatch.chdir(tmp_path)


def start(path, source):
    import builtins

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    (path.parent / "sibling.py").write_text("WHO = 1\n")
    script.start_script(str(path), source.encode())
    return vars(builtins)["told"]


def test_a_plain_script_has_its_own_folder_first(tmp_path):
    printed = start(tmp_path / "a" / "train.py", "import sibling\n" + TELL)
    assert printed == ("__main__", "", str(tmp_path / "a"))


def test_a_script_in_a_package_without_relative_imports_is_plain(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    printed = start(tmp_path / "pkg" / "train.py", "import sibling\n" + TELL)
    assert printed == ("__main__", "", str(tmp_path / "pkg"))


@pytest.mark.parametrize("where", ["pkg", "pkg/sub"])
def test_relative_imports_make_it_a_module_of_the_outermost_package(tmp_path, monkeypatch, where):
    folder = tmp_path / "project" / where
    folder.mkdir(parents=True)
    for name in ("pkg", "pkg/sub")[: where.count("/") + 1]:
        (tmp_path / "project" / name / "__init__.py").write_text("")
    monkeypatch.chdir("/")
    printed = start(folder / "train.py", "from . import sibling\n" + TELL)
    assert printed == ("__main__", where.replace("/", "."), str(tmp_path / "project"))


def test_without_init_files_the_current_folder_is_the_root(tmp_path):
    printed = start(tmp_path / "loose" / "train.py", "from .sibling import WHO\n" + TELL)
    assert printed == ("__main__", "loose", str(tmp_path))


def test_inside_a_function_counts_as_well(tmp_path):
    source = "def main():\n    from .sibling import WHO\n    return WHO\nassert main() == 1\n" + TELL
    assert start(tmp_path / "loose" / "train.py", source)[1] == "loose"


def test_imports_of_a_package_beside_its_own_make_it_a_module(tmp_path):
    """As `python -m scripts.train` is called from a repository's folder."""
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "__init__.py").write_text("")
    told = start(tmp_path / "scripts" / "train.py", "import library\nimport json\n" + TELL)
    assert told == ("__main__", "scripts", str(tmp_path))


def test_a_name_that_lies_beside_the_script_is_taken_from_there(tmp_path):
    (tmp_path / "sibling.py").write_text("1 / 0\n")
    assert start(tmp_path / "scripts" / "train.py", "import sibling\n" + TELL)[1] == ""


@pytest.mark.parametrize("name", ["train.py", "not-a-name/train.py"])
def test_where_no_package_is_to_be_found_python_says_so(tmp_path, name):
    with pytest.raises(ImportError, match="attempted relative import"):
        start(tmp_path / name, "from . import sibling\n")


def problem(folder: Path, source: bytes):
    path = folder / "train.py"
    path.write_bytes(source)
    return problem_of(path)


@pytest.mark.parametrize(
    ("source", "line", "text"),
    [
        (b"x = 1\nfor i in range(3)\n    print(i)\n", 2, "for i in range(3)"),
        (b"#!/usr/bin/env python\nprint 'old'\n", 2, "print 'old'"),
        (b"if True:\n        x = 1\n    y = 2\n", 3, "y = 2"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, source, line, text):
    status, details = problem(tmp_path, source)
    assert (status, details["line"], details["text"]) == ("syntax_error", line, text)


@pytest.mark.parametrize(
    "source",
    [
        b"#!/bin/sh\nset -e\npython train.py --epochs 3\n",
        bytes(range(256)),
        "x = 1".encode("utf-16"),
        b"name = 'caf\xe9'\n",
    ],
)
def test_what_is_no_python_is_not_called_a_mistake(tmp_path, source):
    assert problem(tmp_path, source)[0] == "not_python"


@pytest.mark.parametrize("codec", ["rot13", "base64", "hex", "zlib", "undefined", "mbcs", "no-such", "idna"])
@pytest.mark.parametrize("line", ["vzcbeg gbepu", "x = 1", "x ="])
def test_an_encoding_that_is_none_of_text(tmp_path, codec, line):
    """rot13, base64, hex, zlib and undefined were a traceback."""
    found = problem(tmp_path, f"# coding: {codec}\n{line}\n".encode())
    assert found is None or found[0] in (Status.NOT_PYTHON, Status.SYNTAX_ERROR)
    assert (found is None) == (codec == "idna" and line == "x = 1")


@pytest.mark.parametrize("source", [b"(" * 100_000, b"-" * 1_000_000 + b"1", b"x = 1\0"])
def test_what_no_compiler_takes(tmp_path, source):
    assert problem(tmp_path, source)[1]["message"]
    assert problem(tmp_path, b"x = 1\n") is None


def test_a_long_line_is_cut():
    assert syntax_details(SyntaxError("bad", ("train.py", 1, 1, "x" * 5000)))["text"] == "x" * 200


@pytest.mark.parametrize(("name", "expected"), [("helper.py", True), ("<string>", False)])
def test_only_the_line_of_a_file_can_be_shown(tmp_path, monkeypatch, name, expected):
    monkeypatch.chdir(tmp_path)
    Path("helper.py").touch()
    with pytest.raises(SyntaxError) as caught:
        compile("x = = 1", name, "exec")
    assert is_of_a_file(caught.value) is expected


def explained(**changes):
    recording = {
        "status": "syntax_error", "message": "invalid syntax", "file": "/p/helper.py", "line": 2,
        "text": "def f(:", "is_script": False,
    } | changes  # fmt: skip
    return failure(recording, script="train.py", python="/p/python", returncode=0, log="", timeout_s=1.0)


def test_the_file_with_the_mistake_is_named():
    imported, own = explained(traceback="frames"), explained(is_script=True, file="train.py")
    assert (type(imported), type(own)) == (ProfileError, InputError)
    assert "'train.py' imports '/p/helper.py', which has a syntax error in line 2, 'def f(:'" in str(imported)
    assert str(own).startswith("'train.py' has a syntax error in line 2, 'def f(:': invalid syntax.")
    assert "is not a Python script" not in str(imported)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes an importable module; all is undone after the test."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(replacing, "_finder", replacing._Finder())
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name, code):
        path = tmp_path / (name.replace(".", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
        for part in (name, name.partition(".")[0]):
            monkeypatch.delitem(sys.modules, part, raising=False)
        importlib.invalidate_caches()
        return name

    return make


def test_the_action_follows_the_import(package):
    name = package("stand_in_a", "value = 1")
    seen = []
    replacing.when_imported(name, lambda module: seen.append(module.value))
    assert (seen, name in sys.modules) == ([], False)
    module = importlib.import_module(name)
    assert seen == [1]
    assert module.__spec__.origin.endswith("stand_in_a.py")


def test_a_module_that_is_there_is_changed_at_once(package):
    name = package("stand_in_b", "value = 1")
    importlib.import_module(name)
    seen = []
    replacing.when_imported(name, lambda module: seen.append(module.value))
    assert seen == [1]


def test_names_imported_from_it_are_the_changed_ones(package):
    name = package("stand_in_c", "value = 1")
    replacing.when_imported(name, lambda module: setattr(module, "value", 2))
    replacing.when_imported(name, lambda module: setattr(module, "value", module.value + 1))
    names = {}
    exec(f"from {name} import value", names)  # noqa: S102
    assert names["value"] == 3


def test_a_submodule(package):
    name = package("stand_in_d.inner", "value = 1")
    seen = []
    replacing.when_imported(name, seen.append)
    assert importlib.import_module(name) is seen[0]


def test_a_missing_module_stays_missing(package):
    replacing.when_imported("stand_in_e", pytest.fail)
    with pytest.raises(ModuleNotFoundError, match="stand_in_e"):
        importlib.import_module("stand_in_e")


def test_an_import_that_fails_changes_nothing(package):
    name = package("stand_in_f", "raise ValueError('broken')")
    replacing.when_imported(name, pytest.fail)
    with pytest.raises(ValueError, match="broken"):
        importlib.import_module(name)


def test_attributes_of_classes_and_modules():
    owner, last, value = replacing.attribute(replacing, "_Finder.find_spec")
    assert (owner, last, value) == (replacing._Finder, "find_spec", replacing._Finder.find_spec)
    assert replacing.attribute(replacing, "when_imported")[0] is replacing
    assert replacing.attribute(replacing, "NoClass.method")[2] is None
    assert replacing.attribute(replacing, "_Finder.nothing")[2] is None
