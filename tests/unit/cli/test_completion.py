"""What the shell completes, asked as bash and zsh ask, and that trouble stays silent."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from advisor.cli import options as completion
from advisor.core import gpus
from advisor.core.errors import CatalogError

ADVISOR = Path(sys.executable).with_name("advisor")


def ask(folder: Path, *arguments: str, **environ: str) -> str:
    """What the shell is told, with nothing on stderr."""
    done = subprocess.run(
        [ADVISOR, *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environ},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def bash(folder: Path, line: str, **environ: str) -> list[str]:
    """As the function calls it that ``--install-completion bash`` writes."""
    position = len(line.split(" ")) - 1
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(position), "_ADVISOR_COMPLETE": "complete_bash"}
    return ask(folder, **asked, **environ).split()


def zsh(folder: Path, line: str) -> str:
    return ask(folder, _TYPER_COMPLETE_ARGS=line, _ADVISOR_COMPLETE="complete_zsh")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("advisor prices --gpu H100-N", ["H100-NVL-94GB"]),
        ("advisor recommend train.py --gpu L4", ["L4", "L40", "L40S"]),
        ("advisor predict train.py --origin-gpu h100-n", ["h100-nVL-94GB"]),
        ("advisor recommend train.py --local-gpu V100-SXM-1", ["V100-SXM-16GB"]),
        ("advisor gpus L40", ["L40", "L40S"]),
        ("advisor prices --region us-east-", ["us-east-1", "us-east-2"]),
        ("advisor prices --provider GCP --region us-east", ["us-east1", "us-east4", "us-east5"]),
        ("advisor prices --provider ", ["aws", "gcp"]),
        ("advisor prices --market s", ["spot"]),
        ("advisor predict train.py --backend c", ["cuda", "cpu"]),
        ("advisor prices --format ", ["table", "json", "csv", "markdown", "html"]),
        ("advisor prices --gpu nothing", []),
    ],
)
def test_bash_completes_names(tmp_path, line, expected):
    assert bash(tmp_path, line) == expected


def test_zsh_completes_names_and_commands(tmp_path):
    assert '"H100-NVL-94GB"' in zsh(tmp_path, "advisor prices --gpu H100-N")
    assert '"recommend"' in zsh(tmp_path, "advisor rec")


def test_broken_settings_say_nothing_in_the_middle_of_a_line(tmp_path):
    (tmp_path / ".advisor.yaml").write_text("cloud: [broken")
    assert bash(tmp_path, "advisor prices --gpu H100-N", ADVISOR_CLOUD__MAX_GPUS="x") == ["H100-NVL-94GB"]


def test_broken_catalogs_complete_nothing(monkeypatch):
    def broken(*_: Any) -> Any:
        raise CatalogError("gpus.toml is missing")

    monkeypatch.setattr(gpus, "load_gpus", broken)
    monkeypatch.setattr(gpus, "catalog_path", broken)
    context: Any = SimpleNamespace(params={})
    assert completion.gpu_names("") == completion.vendor_names("") == completion.provider_names("") == []
    assert completion.region_names(context, "") == []


def test_what_was_typed_is_kept_and_nothing_comes_twice():
    names = completion.gpu_names("a100")
    assert names
    assert all(name.startswith("a100") for name in names)
    assert len(names) == len(set(names))
    assert completion.vendor_names("N") == ["Nvidia"]


def test_names_need_neither_numpy_nor_the_settings():
    code = (
        "import sys; from types import SimpleNamespace as S; from advisor.cli import options as c;"
        "assert c.gpu_names('') and c.region_names(S(params={}), '') and c.provider_names('');"
        "print([n for n in ('numpy', 'yaml', 'rich', 'advisor.config.settings') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("shell", "script"), [("bash", ".bash_completions/advisor.sh"), ("zsh", ".zfunc/_advisor")]
)
def test_completion_is_installed_on_request(tmp_path, shell, script):
    disabled = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = ask(tmp_path, "--install-completion", shell, **disabled)
    assert f"{shell} completion installed" in done
    assert f"_ADVISOR_COMPLETE=complete_{shell}" in (tmp_path / script).read_text()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_itself_completes_with_what_was_installed(tmp_path):
    script = ask(tmp_path, "--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    (tmp_path / "advisor.sh").write_text(script)
    asked = (
        "source ./advisor.sh; COMP_WORDS=(advisor prices --gpu H100-N); COMP_CWORD=3;"
        f" _advisor_completion {ADVISOR}; echo ${{COMPREPLY[@]}}"
    )
    done = subprocess.run(["bash", "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["H100-NVL-94GB"]
