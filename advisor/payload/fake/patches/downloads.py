"""Downloads and uploads of model hubs."""

from __future__ import annotations

import functools
import os
import urllib.request
from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit

import torch

from ...protocol import Warned
from ...replacing import Original, attribute, replace, when_imported, wrap
from ...session import Session

_LOCAL = ("", "localhost", "127.0.0.1", "::1")
# Module -> what of it logs in or uploads.
_UPLOADS = {
    "huggingface_hub": ("login", "notebook_login", "interpreter_login"),
    "huggingface_hub.hf_api": (
        "HfApi.create_repo", "HfApi.upload_file", "HfApi.upload_folder", "HfApi.create_commit",
    ),
    "transformers.utils.hub": ("PushToHubMixin.push_to_hub",),
    "transformers.trainer": ("Trainer.init_hf_repo", "Trainer.push_to_hub", "Trainer._push_from_checkpoint"),
}  # fmt: skip


class DownloadRefusedError(URLError):
    """The script wants to download something that has no stand-in.

    As for any other missing network, torch.hub then looks in its cache.
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)

    def __str__(self) -> str:
        return f"advisor refused to download {self.reason!r}"


class MissingWeights(dict[str, object]):
    """The empty state dictionary of a file that was not downloaded."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def __missing__(self, key: str) -> MissingWeights:
        # Some files hold {"model": weights}.
        return self

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise DownloadRefusedError(self.url)


def install_downloads(session: Session) -> None:
    """Nothing is downloaded or uploaded; a model whose weights are not there keeps those it began with.

    What lies in a cache already is used. Values of weights do not matter here, so that a known architecture
    can do without them; a data set or the code of a model cannot be replaced, and the error says which
    one is missing. (Hugging Face's libraries refuse by themselves: ``environment.py`` sets them offline.)

    Wrap downloads of torch.hub and urllib, and uploads of Hugging Face's libraries.
    """
    missing: list[str] = []

    def load_state_dict_from_url(
        load: Original, url: str, model_dir: str | None = None, *args: object, **kwargs: object
    ) -> object:
        name = str(kwargs.get("file_name") or os.path.basename(urlsplit(url).path))
        folder = model_dir or os.path.join(torch.hub.get_dir(), "checkpoints")
        if os.path.exists(os.path.join(folder, name)):
            return load(url, model_dir, *args, **kwargs)
        session.warn(Warned.NOT_DONE, what="download", name=url)
        missing.append(url)
        return MissingWeights(url)

    def load_state_dict(
        load_state: Original, module: object, state_dict: object, *args: object, **kwargs: object
    ) -> object:
        # What a script filters out of missing weights is an ordinary empty dictionary.
        if missing and not state_dict:
            return torch.nn.modules.module._IncompatibleKeys([], [])
        return load_state(module, state_dict, *args, **kwargs)

    wrap(torch.hub, "load_state_dict_from_url", load_state_dict_from_url)
    wrap(torch.nn.Module, "load_state_dict", load_state_dict)
    _refuse_downloads(session)
    for name, module in (("hf_hub_download", "file_download"), ("snapshot_download", "_snapshot_download")):
        when_imported(f"huggingface_hub.{module}", functools.partial(_name, session, name))
    when_imported("timm.models._builder", functools.partial(_keep_initial_weights, session))
    when_imported("transformers.modeling_utils", functools.partial(_make_weights, session))
    for name, uploads in _UPLOADS.items():
        when_imported(name, functools.partial(_drop, session, uploads))


def _refuse_downloads(session: Session) -> None:
    def download_url_to_file(url: str, *_: object, **__: object) -> None:
        session.refused[url] = None
        raise DownloadRefusedError(url)

    torch.hub.download_url_to_file = download_url_to_file
    for name in ("urlopen", "urlretrieve"):
        wrap(urllib.request, name, functools.partial(_local_only, session))
    replace(torch.hub, urlopen=urllib.request.urlopen)


def _local_only(
    session: Session, original: Original, url: str | urllib.request.Request, *args: object, **kwargs: object
) -> object:
    text = url if isinstance(url, str) else url.full_url
    if (urlsplit(text).hostname or "") not in _LOCAL:
        session.refused[text] = None
        raise DownloadRefusedError(text)
    return original(url, *args, **kwargs)


def _keep_initial_weights(session: Session, module: ModuleType) -> None:
    """A model of timm is built before its weights are asked for."""

    def load_pretrained(original: Original, model: object, *args: object, **kwargs: object) -> None:
        refused = len(session.refused)
        try:
            original(model, *args, **kwargs)
        except Exception:
            if len(session.refused) == refused:
                raise
            name, _ = session.refused.popitem()
            session.warn(Warned.NOT_DONE, what="download", name=name)

    wrap(module, "load_pretrained", load_pretrained)


def _make_weights(session: Session, module: ModuleType) -> None:
    """A model of transformers of which only the configuration is here gets weights of its own.

    They take the way that published ones take, where they are cast, quantised and put on devices.
    """

    def find_files(original: Original, *args: object, **kwargs: object) -> object:
        refused = dict(session.refused)
        try:
            return original(*args, **kwargs)
        except OSError:
            name = args[0] if args else kwargs["pretrained_model_name_or_path"]
            session.refused.clear()
            session.refused.update(refused)
            session.warn(Warned.NOT_DONE, what="download", name=f"{name}/model.safetensors")
            return [], {"dtype": "float32"}  # of them, if the configuration names no other

    def load(
        original: Original, model: Any, state: object, files: object, *args: object, **kwargs: object
    ) -> object:
        if state is None and files == []:
            state, files = {name: make(like) for name, like in model.state_dict().items()}, None
        return original(model, state, files, *args, **kwargs)

    def make(like: torch.Tensor) -> torch.Tensor:
        made = torch.zeros(like.shape, dtype=like.dtype)
        # A real GPU is faster with zeros.
        is_random = session.backend != "fake" and made.is_floating_point()
        return made.normal_(std=0.02) if is_random else made

    if hasattr(module, "_get_resolved_checkpoint_files"):
        wrap(module, "_get_resolved_checkpoint_files", find_files)
        wrap(module.PreTrainedModel, "_load_pretrained_model", load)


def _name(session: Session, name: str, module: ModuleType) -> None:
    """Remember what Hugging Face's libraries refuse: their message does not say it."""

    def download(original: Original, repo_id: str, *args: object, **kwargs: object) -> object:
        try:
            return original(repo_id, *args, **kwargs)
        except Exception:
            session.refused[repo_id] = None
            raise

    wrap(module, name, download)


def _drop(session: Session, names: tuple[str, ...], module: ModuleType) -> None:
    def dropped(name: str, *_: object, **__: object) -> None:
        session.warn(Warned.NOT_DONE, what="call", name=name)

    for name in names:
        owner, last, original = attribute(module, name)
        if original is not None:
            wrap(owner, last, functools.partial(dropped, name))


# Experiment trackers.


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
    """Takes whatever is called on it, entered, indexed or asked of it."""

    def __init__(self, tell: Callable[[], None] | None = None) -> None:
        self._tell = tell

    def __call__(self, *_: object, **__: object) -> object:
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
        pass

    def __enter__(self) -> object:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> object:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return ""


def _silence(session: Session, names: tuple[str, ...] | None, module: ModuleType) -> None:
    tell = functools.partial(_tell, session, module.__name__.partition(".")[0])
    if names is None:
        functions = [name for name, it in vars(module).items() if callable(it) and not isinstance(it, type)]
        names = tuple(name for name in functions if not name.startswith("_"))
    for name in names:
        if hasattr(module, name):
            setattr(module, name, Silence(tell))


def _tell(session: Session, tracker: str) -> None:
    session.warn(Warned.NOT_DONE, what="tracking", name=tracker)


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
            setattr(kind, name, Silence() if name.startswith("_") else lambda *_, **__: None)
    replace(kind, __init__=init, get_logdir=get_logdir)
