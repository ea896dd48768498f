"""Job files read by the tools that run them: `python -m tests.tool_checkers TOOL`, files as JSON on stdin.

SkyPilot and dstack lie in a folder of their own, without what they need to start machines: checkers.txt.
What SkyPilot's schemas import beside themselves is replaced: settings that no file of ours has.
"""

import importlib.util
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml

FOLDER = Path(sys.prefix) / "checkers"
needs_checkers = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="needs SkyPilot and dstack in .venv/checkers: `make test` installs them"
)


def judged(tool: str, texts: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What the tool says against each file, empty where it takes it, and the line that it would run."""
    path = os.pathsep.join((str(Path(__file__).parents[1]), str(FOLDER)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.tool_checkers", tool],
        input=json.dumps(dict(texts)),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: (refused, line) for name, (refused, line) in json.loads(done.stdout).items()}


def _skypilot() -> Callable[[Any], str]:
    found = importlib.util.find_spec("sky")
    assert found is not None
    assert found.submodule_search_locations is not None
    sky = types.ModuleType("sky")
    sky.__dict__.update(
        __path__=list(found.submodule_search_locations), __version__=version("skypilot"), __commit__=""
    )
    sys.modules["sky"] = sky
    for name in ("sky.skylet.autostop_lib", "sky.server", "sky.server.daemons"):
        sys.modules[name] = MagicMock()
    schemas = importlib.import_module("sky.utils.schemas")
    names = importlib.import_module("sky.skylet.constants").CLUSTER_NAME_VALID_REGEX
    import re

    import jsonschema

    def check(task: Any) -> str:
        jsonschema.validate(task, schemas.get_task_schema())
        jsonschema.validate(task["resources"], schemas.get_resources_schema())
        assert re.fullmatch(names, task["name"]), f"no name: {task['name']}"
        return str(task["run"])

    return check


def _dstack() -> Callable[[Any], str]:
    internal = "dstack._internal"
    models = importlib.import_module(f"{internal}.core.models.configurations")
    services = importlib.import_module(f"{internal}.core.services")
    variables = importlib.import_module(f"{internal}.utils.interpolator").VariablesInterpolator

    def check(task: Any) -> str:
        parsed = models.parse_run_configuration(task)
        services.validate_dstack_resource_name(parsed.name)
        # As `dstack apply` does it before it sends them.
        interpolator = variables({"run": {"args": ""}}, skip=["secrets"])
        return str([interpolator.interpolate_or_error(line) for line in parsed.commands][-1])

    return check


def main(tool: str) -> None:
    """The verdict on each file of stdin."""
    check = {"skypilot": _skypilot, "dstack": _dstack}[tool]()
    verdicts = {}
    for name, text in json.load(sys.stdin).items():
        try:
            verdicts[name] = ("", check(yaml.safe_load(text)))
        except Exception as error:  # noqa: BLE001 - whatever a tool says against a file
            verdicts[name] = (f"{type(error).__name__}: {error}", "")
    sys.stdout.write(json.dumps(verdicts))


if __name__ == "__main__":
    main(sys.argv[1])
