"""Python imports this by its name as it starts, since our folder is on ``PYTHONPATH``.

It lets ``steps.py`` wait for torch, leaves ``sys.path``, and then does what Python would have done without
it: run the ``sitecustomize`` that comes next, if there is one. Whatever goes wrong with ours stays silent.
"""

# Nothing here needs a newer Python than 3.5: the command may start any.
import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader

_FOLDER = "ADVISOR_STEPS_FOLDER"


def _watch() -> None:
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != own]
    folder = os.environ.get(_FOLDER)
    if folder is None:
        return
    name = "_gpu_advisor_steps"
    # torch.compile looks it up by its name.
    steps = sys.modules[name] = type(sys)(name)
    loader = SourceFileLoader(name, os.path.join(os.path.dirname(own), "steps.py"))
    loader.exec_module(steps)
    steps.watch(folder)


def _run_the_next() -> None:
    spec = PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    module = type(sys)("sitecustomize")
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:  # noqa: SIM105 - contextlib takes longer to import than all of this
    _watch()
except Exception:  # noqa: BLE001, S110 - the command must run as without us
    pass
_run_the_next()
