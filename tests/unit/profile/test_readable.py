"""What a sandboxed script may read: of interpreters, projects, caches, arguments and a setting."""

import json
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.profile.readable import interpreter_files, is_too_broad, readable

TEMPORARY = "/tmp"  # noqa: S108


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    project = home / "code/project"
    (project / "sub").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / "sub/train.py").touch()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project / "sub")
    return home


def shown(home: Path, **more: object) -> set[Path]:
    """What is shown below the home folder's parent for the project's script."""
    script = home / "code/project/sub/train.py"
    found = readable(None, script, environment=more.pop("environment", {}), **more)  # type: ignore[arg-type]
    return {path for path in found.paths if path.is_relative_to(home.parent)}


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


@pytest.mark.parametrize(
    "base", [".pyenv/versions/3.12.1", ".local/share/uv/python/cpython-3.12.1", "miniconda3"]
)
def test_an_environment_needs_what_it_was_made_from(base, tmp_path):
    home = tmp_path
    (home / base / "lib/python3.12").mkdir(parents=True)
    binary = program(home / base / "bin/python3.12")
    environment = home / "project/.venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin/python").symlink_to(binary)
    (environment / "pyvenv.cfg").write_text(f"home = {binary.parent}\nversion = 3.12.1\n")
    found = interpreter_files(environment / "bin/python", home)
    assert {environment, home / base} <= set(found)
    assert home not in found


def test_an_environment_that_was_made_by_a_links_name(tmp_path):
    """As uv's, which names the minor version alone."""
    real = tmp_path / "uv/cpython-3.12.1"
    (real / "lib/python3.12").mkdir(parents=True)
    program(real / "bin/python3.12")
    (tmp_path / "uv/cpython-3.12").symlink_to("cpython-3.12.1")
    environment = tmp_path / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin/python").symlink_to(tmp_path / "uv/cpython-3.12/bin/python3.12")
    (environment / "pyvenv.cfg").write_text(f"home = {tmp_path}/uv/cpython-3.12/bin")
    found = interpreter_files(environment / "bin/python", tmp_path)
    assert {tmp_path / "uv/cpython-3.12", real} <= set(found)


def test_a_conda_environment_and_a_shim(tmp_path):
    (tmp_path / "miniconda3/envs/ml/lib/python3.11").mkdir(parents=True)
    conda = program(tmp_path / "miniconda3/envs/ml/bin/python")
    assert tmp_path / "miniconda3/envs/ml" in interpreter_files(conda, tmp_path)
    shim = program(tmp_path / ".pyenv/shims/python")
    assert tmp_path / ".pyenv" in interpreter_files(shim, tmp_path)


def test_packages_that_are_elsewhere(tmp_path):
    site = tmp_path / "env/lib/python3.11/site-packages"
    (site / "mine-1.0.dist-info").mkdir(parents=True)
    (site / "theirs-1.0.dist-info").mkdir()
    binary = program(tmp_path / "env/bin/python")
    (site / "a.pth").write_text("# note\n/elsewhere/src\nimport site; site.addsitedir('/other/site')\n")
    editable = {"url": "file:///home/me/my%20code", "dir_info": {"editable": True}}
    (site / "mine-1.0.dist-info/direct_url.json").write_text(json.dumps(editable))
    copied = {"url": "file:///home/me/wheels", "dir_info": {}}
    (site / "theirs-1.0.dist-info/direct_url.json").write_text(json.dumps(copied))
    found = set(interpreter_files(binary, tmp_path))
    assert {Path("/elsewhere/src"), Path("/other/site"), Path("/home/me/my code")} <= found
    assert Path("/home/me/wheels") not in found


@pytest.mark.parametrize("text", ["[1]", "{", '{"url": 3}', "null"])
def test_what_is_no_description_is_passed_over(text, tmp_path):
    site = tmp_path / "env/lib/python3.11/site-packages/x.dist-info"
    site.mkdir(parents=True)
    (site / "direct_url.json").write_text(text)
    assert tmp_path / "env" in interpreter_files(program(tmp_path / "env/bin/python"), tmp_path)


def test_the_repository_of_the_script_and_the_working_folder(home, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    project = home / "code/project"
    assert shown(home) == {project, project / "sub", project / "sub/train.py", tmp_path / "here"}


def test_of_a_home_folder_with_a_script_only_the_modules_beside_it(home, monkeypatch):
    """A home may be a repository, too, that of dotfiles."""
    monkeypatch.chdir(home)
    (home / ".git").mkdir()
    for name in ("train.py", "model.py", "notes.txt"):
        (home / name).touch()
    found = readable(None, home / "train.py", environment={})
    assert {path for path in found.paths if path.is_relative_to(home)} == {
        home / "train.py",
        home / "model.py",
    }


@pytest.mark.parametrize(
    ("paths", "is_broad"),
    [
        (("/", "/home", "/home/me", "/home/me/.cache", "/home/me/.config", TEMPORARY, "/run", "/etc",
         "/var"), True),
        (("/home/me/code", "/home/me/.cache/torch", f"{TEMPORARY}/clone", "/srv/job", "/data"), False),
    ],
)  # fmt: skip
def test_what_is_too_broad(paths, is_broad):
    assert [path for path in paths if is_too_broad(Path(path), Path("/home/me")) is not is_broad] == []


def test_caches_and_what_variables_name(home, tmp_path):
    for name in ("hub", "cache/torch", "cache/other"):
        (tmp_path / name).mkdir(parents=True)
    (home / ".cache/huggingface").mkdir(parents=True)
    (home / ".cache/unknown").mkdir()
    environment = {"HF_HUB_CACHE": str(tmp_path / "hub"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment |= {"PYTHONPATH": f"{home}:{tmp_path / 'none'}"}
    found = shown(home, environment=environment) - shown(home)
    assert found == {tmp_path / "hub", tmp_path / "cache/torch"}
    assert home / ".cache/huggingface" in shown(home)
    assert home / ".cache/unknown" not in shown(home)


def test_arguments_that_are_paths_are_data(home, tmp_path):
    for name in ("images", "labels.csv", "3"):
        program(tmp_path / name / "x" if name == "images" else tmp_path / name)
    labels = f"--labels={tmp_path / 'labels.csv'}"
    arguments = [str(tmp_path / "images"), labels, "--lr", "3", "~", "/", "a/\0b"]
    assert shown(home, arguments=arguments) - shown(home) == {tmp_path / "images", tmp_path / "labels.csv"}


def test_links_out_of_the_project_lead_nowhere_but_one_that_the_user_names_is_followed(home, tmp_path):
    """A repository may bring links to whatever it likes to read."""
    (home / ".ssh").mkdir()
    (home / "code/project/data").symlink_to(home / ".ssh")
    assert home / ".ssh" not in shown(home)
    (tmp_path / "disk").mkdir()
    for name, target, is_shown in (("data", tmp_path / "disk", True), ("all", home, False)):
        (home / name).symlink_to(target)
        assert (home / name in shown(home, arguments=[str(home / name)])) is is_shown


def test_what_the_setting_names(home, tmp_path):
    (tmp_path / "more").mkdir()
    assert tmp_path / "more" in shown(home, added=[tmp_path / "more"])
    # Said in so many words.
    assert home in shown(home, added=[home])
    with pytest.raises(InputError, match=r"`profile.sandbox_read` names '/no/such', which does not exist"):
        shown(home, added=[Path("/no/such")])
    with pytest.raises(InputError, match="is the whole machine"):
        shown(home, added=[Path("/")])
