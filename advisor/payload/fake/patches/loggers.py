"""Experiment trackers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...protocol import Warned
from ...replacing import Original, attribute, replace, when_imported, wrap

if TYPE_CHECKING:
    from ...session import Session


# Module -> what of it talks to files or a server; None: all its public functions.
_TRACKERS: dict[str, tuple[str, ...] | None] = {
    "wandb": ("login", "watch", "save", "log_artifact", "use_artifact"),
    "mlflow": None,
    "mlflow.pytorch": None,
    "mlflow.tracking": ("MlflowClient",),
    "comet_ml": (
        "Experiment", "OfflineExperiment", "ExistingExperiment", "APIExperiment", "start", "init", "login",
        "get_global_experiment", "get_running_experiment",
    ),
    "neptune": ("init_run", "init_project", "init_model", "init_model_version", "Run"),
    "clearml": ("Task", "Logger", "OutputModel", "Dataset"),
    "aim": ("Run", "Repo"),
    "trackio": ("init", "log", "finish"),
    "swanlab": ("init", "log", "finish", "login"),
}  # fmt: skip
_SUMMARY_WRITERS = ("torch.utils.tensorboard.writer", "tensorboardX.writer")


def install_loggers(session: Session) -> None:
    """Experiment trackers record nothing.

    Runs of a profiled script are no experiments: nothing is uploaded, no login is asked for, no event file is
    written. Those that can be switched off by a variable are (see ``environment.py``), but a script may
    overrule it, and the others have none.

    Watch for the trackers.
    """
    for name, silenced in _TRACKERS.items():
        when_imported(name, functools.partial(_silence, session, silenced))
    when_imported("wandb", functools.partial(_disable_wandb, session))
    for name in _SUMMARY_WRITERS:
        when_imported(name, functools.partial(_silence_writer, session))


class Silence:
    """Takes whatever is called on it, entered, indexed or asked of it.

    Args:
        tell: is called when the script calls it; libraries import trackers that nobody uses.
    """

    def __init__(self, tell: Callable[[], None] | None = None) -> None:
        self._tell = tell

    def __call__(self, *_: object, **__: object) -> object:
        """Go on with a chain of calls."""
        if self._tell is not None:
            self._tell()
        return self

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: object) -> object:
        return self

    def __setitem__(self, key: object, value: object) -> None:
        """Forget it."""

    def __enter__(self) -> object:
        """Begin nothing."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hide no exception."""

    def __iter__(self) -> object:
        """There is nothing."""
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return ""


def _silence(session: Session, names: tuple[str, ...] | None, module: ModuleType) -> None:
    tell = functools.partial(_tell, session, module.__name__.partition(".")[0])
    if names is None:
        public = [name for name, value in vars(module).items() if _is_function(value)]
        names = tuple(name for name in public if not name.startswith("_"))
    for name in names:
        if hasattr(module, name):
            setattr(module, name, Silence(tell))


def _tell(session: Session, tracker: str) -> None:
    session.warn(Warned.NOT_DONE, what="tracking", name=tracker)


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, type)


def _disable_wandb(session: Session, module: ModuleType) -> None:

    def init(original: Original, *args: object, **kwargs: object) -> object:
        _tell(session, "wandb")
        return original(*args, **(kwargs | {"mode": "disabled"}))

    wrap(module, "init", init)


def _silence_writer(session: Session, module: ModuleType) -> None:
    _, _, kind = attribute(module, "SummaryWriter")

    def init(self: Any, log_dir: Any = None, *_: object, **kwargs: object) -> None:
        _tell(session, module.__name__.rpartition(".")[0])
        self.log_dir = self.logdir = str(log_dir or kwargs.get("logdir") or "runs")

    def get_logdir(self: Any) -> str:
        return str(self.log_dir)

    for name in vars(kind).copy():
        if not name.startswith("__") and callable(getattr(kind, name)):
            # Lightning writes by way of what a private method gives back.
            setattr(kind, name, Silence() if name.startswith("_") else _nothing)
    replace(kind, __init__=init, get_logdir=get_logdir)


def _nothing(*_: object, **__: object) -> None:
    return None
