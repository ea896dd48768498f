"""Installs the example plug-in as a stranger's package, without a network."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "plugins" / "acme_prices"


def install_acme(folder: Path) -> Path:
    """Builds and installs the package; put what is returned on PYTHONPATH."""
    source = shutil.copytree(EXAMPLE, folder / "source")  # a build leaves files beside the sources
    target = folder / "site"
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation",
            "--no-deps", "--disable-pip-version-check", "--target", str(target), str(source),
        ],
        check=True,
        capture_output=True,
        text=True,
    )  # fmt: skip
    return target


def write_acme_prices(folder: Path, region: str, *machines: dict[str, Any], as_of: str) -> Path:
    """One of the documents that the example reads."""
    path = folder / f"{region}.json"
    path.write_text(json.dumps({"as_of": as_of, "machines": list(machines)}))
    return path
