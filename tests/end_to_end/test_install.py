"""What is installed without a C++ compiler, in an environment of its own.

With one, every checkout is built: `.ci/run` asks whether its module loads, releases ask it of each wheel, and
`tests/unit/native` compares it with the reference. Nothing is downloaded: the build uses this environment's
scikit-build-core, nanobind and CMake, and the new environment sees this one's numpy.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
NO_COMPILER = {"CC": "/nonexistent/cc", "CXX": "/nonexistent/c++"}

INSPECT = """
import json, pathlib
import advisor, recommender
from advisor import native
from advisor.native.arrays import GpuArrays, KernelArrays
from advisor.core.gpus import load_gpus
from advisor.core.values import Kernel

gpus = list(load_gpus().values())
cuda = [gpu for gpu in gpus if gpu.occupancy is not None]
launch = {"name": "k", "grid": (4096, 1, 1), "block": (256, 1, 1), "duration_s": 1e-3}
kernel = Kernel(**launch, registers_per_thread=32, shared_bytes=0)
times = native.scale_kernels(
    KernelArrays.from_kernels([kernel]),
    GpuArrays.from_specs(cuda[:1]),
    GpuArrays.from_specs(cuda),
)
print(json.dumps({
    "compiled": native.COMPILED,
    "why_not": native.WHY_NOT_COMPILED,
    "folder": str(pathlib.Path(advisor.__file__).parent.parent),
    "num_gpus": len(gpus),
    "times_s": times[0].tolist(),
}))
"""


def _missing_tools() -> list[str]:
    modules = ["pip", "scikit_build_core", "nanobind"]
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if not shutil.which("cmake") and importlib.util.find_spec("cmake") is None:
        missing.append("cmake")
    return missing


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(_missing_tools()), reason=f"to build without a network: {_missing_tools()}"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A wheel and what Python says about it where it is installed."""

    wheel: Path
    folder: Path
    facts: Mapping[str, Any]

    def names(self) -> set[str]:
        """Files of the wheel."""
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())


def _run(*command: str | Path, environment: Mapping[str, str] | None = None) -> str:
    answer = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=dict(os.environ) | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"} | dict(environment or {}),
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def _install(folder: Path) -> Installed:
    pip = (sys.executable, "-m", "pip")
    offline = ("--quiet", "--no-deps", "--no-index")
    build = ("--no-build-isolation", "--config-settings", f"build-dir={folder / 'build'}")
    _run(*pip, "wheel", *offline, *build, "--wheel-dir", folder, ROOT, environment=NO_COMPILER)
    (wheel,) = folder.glob("gpu_advisor-*.whl")
    home = folder / "venv"
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    (site_packages,) = home.glob("lib/python*/site-packages")
    # Paths only: the .pth files of the tests' own environment, an editable install's among them, stay out.
    (site_packages / "borrowed.pth").write_text(f"{Path(np.__file__).parents[1]}\n", encoding="utf-8")
    _run(*pip, "--python", python, "install", "--no-compile", *offline, wheel)
    # -P keeps the checkout, where we stand, out of the path.
    facts = json.loads(_run(python, "-P", "-c", INSPECT))
    return Installed(wheel=wheel, folder=site_packages, facts=facts)


@pytest.fixture(scope="module")
def pure(tmp_path_factory):
    return _install(tmp_path_factory.mktemp("pure"))


def test_a_wheel_has_what_pages_are_made_of(pure):
    folder = ROOT / "advisor" / "report" / "templates"
    assert {f"advisor/report/templates/{path.name}" for path in folder.iterdir()} <= pure.names()


def test_without_a_compiler_the_reference_takes_over(pure):
    assert pure.facts["compiled"] is False
    assert "_native" in pure.facts["why_not"]
    assert Path(pure.facts["folder"]) == pure.folder
    assert pure.wheel.name.endswith("-py3-none-any.whl")
    assert len(pure.facts["times_s"]) > 40


def test_the_wheel_has_all_it_needs_and_no_sources(pure):
    names = pure.names()
    needed = {
        "advisor/_catalogs/gpus.toml",
        "advisor/_catalogs/instances.csv",
        "advisor/_catalogs/prices/aws.csv",
        "advisor/_catalogs/prices/gcp.csv",
        "advisor/native/_native.pyi",
        "advisor/native/reference.py",
        "advisor/py.typed",
        "recommender/__init__.py",
        "recommender/py.typed",
    }
    assert needed <= names
    assert not [name for name in names if name.endswith((".cpp", ".hpp", ".o", ".a"))]
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"advisor", "recommender"}
    assert pure.facts["num_gpus"] > 40
