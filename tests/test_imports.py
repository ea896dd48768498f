"""What importing costs: a help page needs no torch, no SDK, no numpy; layers hold."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {
    "torch", "boto3", "botocore", "google", "pandas", "numpy", "pydantic", "yaml", "rich", "jinja2", "altair",
    "vl_convert",
}  # fmt: skip


def modules_after(statement: str) -> set[str]:
    """Their topmost packages."""
    return {name.partition(".")[0] for name in all_modules_after(statement)}


def all_modules_after(statement: str) -> set[str]:
    code = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(json.loads(answer.stdout.splitlines()[-1]))


def test_importing_the_command_line_loads_nothing_heavy():
    assert not modules_after("import advisor.cli") & HEAVY


def test_help_loads_nothing_heavy():
    run = "import contextlib, io, advisor.cli\nwith contextlib.redirect_stdout(io.StringIO()):\n    "
    assert not modules_after(run + "advisor.cli.app(['--help'], standalone_mode=False)") & HEAVY


@pytest.mark.parametrize(
    "module",
    [
        "advisor",
        "advisor.core.values",
        "advisor.core.errors",
        "advisor.core.units",
        "advisor.formats.trace_files",
        "advisor.core.devices",
        "advisor.store",
    ],
)
def test_core_modules_need_the_standard_library_alone(module):
    loaded = modules_after(f"import {module}") - modules_after("pass")
    assert {name for name in loaded if name not in sys.stdlib_module_names} <= {"advisor"}


def test_measuring_needs_numpy_alone():
    loaded = modules_after("import advisor.measure") - modules_after("pass")
    assert {name for name in loaded if name not in sys.stdlib_module_names} <= {"advisor", "numpy"}


@pytest.mark.parametrize("module", ["advisor.profile", "recommender", "advisor.pricing"])
def test_libraries_do_without_torch_and_pandas(module):
    assert not modules_after(f"import {module}") & {"torch", "pandas", "boto3"}


def test_sources_of_prices_are_made_without_the_code_that_pulls():
    made = "from advisor.pricing.sources.{0} import {0}_source\n{0}_source({{}}).capabilities"
    loaded = all_modules_after("\n".join(made.format(name) for name in ("aws", "gcp")))
    # `aws_calls` has the options as well, and imports what it calls when it calls.
    pulling = {"aws.account", "aws.markets", "aws.survey", "gcp.client", "gcp.skus"}
    assert not loaded & {f"advisor.pricing.sources.{name}" for name in pulling}
    assert not loaded & {"boto3", "botocore", "google", "requests"}


def test_layers():
    program = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert program, "import-linter belongs to the dev extra: make test installs it"
    answer = subprocess.run([program, "--no-cache"], capture_output=True, text=True, cwd=ROOT)
    assert answer.returncode == 0, answer.stdout
