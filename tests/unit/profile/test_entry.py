"""Which scripts are started as modules of their package, and what they find on the way."""

import sys

import pytest

from advisor.payload import script

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
