"""Layered settings, each value with the layer that set it.

Defaults < user file < project file (``.advisor.yaml``, searched upwards) < ``ADVISOR_*`` < flags.
Sections merge key by key; a list replaces the list below it. Relative paths count from the file that
names them, and from the working directory where a variable or a flag does.

A project file may come with someone else's repository. Unless the user trusts it, it may only do what
each setting declares (`ProjectMay`), and its lists add to those below.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from glob import escape
from pathlib import Path
from typing import cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from advisor.config import settings as sections
from advisor.config.delivery_settings import CHANNEL_KINDS
from advisor.config.project_layer import (
    Refused,
    Why,
    entries_of,
    is_trusted,
    read_project_file,
    why_refused,
    with_added,
)
from advisor.config.setting_kinds import ProjectMay
from advisor.core.errors import ConfigError, did_you_mean
from advisor.core.processes import ANSWER_FILE_VARIABLE, STEPS_FOLDER_VARIABLE
from advisor.formats.foreign_files import shown
from advisor.formats.user_files import YamlDocument, fault_in_words, parse_document, read_document

_EACH = "*"


def beside(folder: Path, values: Mapping[str, object]) -> dict[str, object]:
    """Settings by dotted name, as a file in a folder means them; what is malformed stays as it is."""
    changed = dict(values)
    for (name, *keys), join in _PATHS.items():
        if name in values:
            changed[name] = _mapped(changed[name], keys, partial(join, folder))
    return changed


def _mapped(value: object, keys: Sequence[str], change: Callable[[str], str]) -> object:
    if not keys:
        return change(value) if isinstance(value, str) else value
    key, *deeper = keys
    if key == _EACH and isinstance(value, list):
        return [_mapped(item, deeper, change) for item in value]
    if key == _EACH and isinstance(value, Mapping):
        return {name: _mapped(item, deeper, change) for name, item in value.items()}
    if isinstance(value, Mapping) and key in value:
        return {**value, key: _mapped(value[key], deeper, change)}
    return value


def _path(folder: Path, text: str) -> str:
    return text if text.startswith("~") else str(folder / text)


def _pattern(folder: Path, text: str) -> str:
    """A wildcard is one of the pattern, never one of the folder's name."""
    return text if text.startswith("~") else str(Path(escape(str(folder))) / text)


def _after(scheme: str, folder: Path, text: str) -> str:
    path = text.removeprefix(scheme)
    return scheme + _path(folder, path) if text.startswith(scheme) and path else text


_secret_file = partial(_after, "file:")

_PATHS: Mapping[tuple[str, ...], Callable[[Path, str], str]] = {
    ("profile.python",): _path,
    ("profile.sandbox_read", _EACH): _path,
    ("clusters", _EACH, "wait_log"): _path,
    ("prices.options", "custom", "files", _EACH): _pattern,
    ("prices.options", "snapshot", "folder"): _path,
    ("prices.options", "gpuhunt", "catalog_dir"): _path,
    ("spot.history",): _path,
    ("store.url",): partial(_after, "sqlite:///"),
    ("policy.files", _EACH): _path,
    ("delivery.channels", _EACH, "path"): _path,
    ("delivery.channels", _EACH, "ca_file"): _path,
    ("delivery.channels", _EACH, "password"): _secret_file,
    ("delivery.channels", _EACH, "secret"): _secret_file,
    ("delivery.channels", _EACH, "url"): _secret_file,
    ("report.bills", _EACH): _path,
}


ENV_PREFIX = "ADVISOR_"
TRUST_VARIABLE = "ADVISOR_TRUST_PROJECT"
DELIVERY_KEY_VARIABLE = "ADVISOR_DELIVERY_KEY"
_NO_SETTINGS = (TRUST_VARIABLE, DELIVERY_KEY_VARIABLE, ANSWER_FILE_VARIABLE, STEPS_FOLDER_VARIABLE)
PROJECT_FILE = ".advisor.yaml"
FLAG = "flag"
ARGUMENT = "argument"
"""Origins of what a caller sets: on the command line, or from Python."""
_KIND = "settings file"
_KIND_OF_CHANNEL = 3  # delivery.channels.NAME.KIND.KEY
_MOST_FAULTS = 20
_QUOTES = "A text with signs of YAML in it is written in quotes, such as '\"*\"'."
_ADVICE = "Compare it with what advisor init writes."


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The settings file of a project, as it was read."""

    path: Path
    sha256: str
    is_trusted: bool
    """Whether all of it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sourced:
    """Settings whose messages name the layer that set one, by its dotted name (absent: the default)."""

    origins: Mapping[str, str]

    def is_given(self, name: str) -> bool:
        """Whether the caller set it, with a flag or an argument, rather than a file or a variable."""
        return self.origins.get(name) in (FLAG, ARGUMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricingSettings(_Sourced):
    """What prices need: which offers count, on whose terms, from which sources, and where they are kept."""

    cloud: sections.CloudSettings
    contracts: tuple[sections.ContractSettings, ...]
    quotas: tuple[sections.QuotaSettings, ...]
    prices: sections.PriceSettings
    store: sections.StoreSettings
    may_add_providers: bool
    """False where an untrusted project named the clouds: it may only narrow them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingSettings(_Sourced):
    """What a trace needs: how scripts are profiled, and how their data is loaded."""

    profile: sections.ProfileSettings
    input: sections.InputSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(_Sourced):
    """All settings, and warnings; a use case takes the groups that it needs."""

    settings: sections.Settings
    warnings: tuple[str, ...]
    project: Project | None = None
    refused: tuple[Refused, ...] = ()
    """Lines of it that do not count, since it is not trusted."""

    @property
    def pricing(self) -> PricingSettings:
        """Those of prices."""
        settings, project = self.settings, self.project
        stranger = None if project is None or project.is_trusted else str(project.path)
        return PricingSettings(
            origins=self.origins,
            cloud=settings.cloud,
            contracts=settings.contracts,
            quotas=settings.quotas,
            prices=settings.prices,
            store=settings.store,
            may_add_providers=stranger is None or self.origins.get("cloud.providers") != stranger,
        )

    @property
    def tracing(self) -> TracingSettings:
        """Those of traces."""
        return TracingSettings(origins=self.origins, profile=self.settings.profile, input=self.settings.input)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    origin: str
    values: Mapping[str, object]  # by dotted name
    name_of: Callable[[str], str] | None = None  # where its author knows settings by other names


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProjectLayer:
    project: Project
    document: YamlDocument
    layer: _Layer


def environment_variable(name: str) -> str:
    """The variable that sets a dotted name: ``cloud.max_gpus`` -> ``ADVISOR_CLOUD__MAX_GPUS``."""
    return ENV_PREFIX + name.upper().replace(".", "__")


def user_file() -> Path:
    """``~/.config/advisor/config.yaml``, or the platform's folder for it."""
    import platformdirs

    return platformdirs.user_config_path("advisor") / "config.yaml"


def project_file(start: Path) -> Path | None:
    """The nearest ``.advisor.yaml`` in ``start`` or above, whatever it is, unless it is the user's file."""
    for folder in (start, *start.parents):
        path = folder / PROJECT_FILE
        with suppress(OSError):  # a folder that may not be read
            path.lstat()
            return None if _is_same(path, user_file()) else path
    return None


def load_config(
    flags: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    trust_project: bool = False,
    origin: str = FLAG,
    name_of: Callable[[str], str] | None = None,
) -> Config:
    """Read all layers.

    Args:
        flags: settings that the caller gives, by dotted name; None values do not count.
        environ: the environment, ``os.environ`` if None.
        cwd: where to look for the project file, the working directory if None.
        trust_project: let all of the project file count, as ``ADVISOR_TRUST_PROJECT=1`` does.
        origin: how the caller gives them, ``FLAG`` or ``ARGUMENT``.
        name_of: what the caller calls a setting that it gives, such as ``--dataset-gb``; None for the setting
            and its origin.

    Raises ConfigError: a file cannot be read, a key is unknown or a value is wrong; all faults at once.
    """
    environ = os.environ if environ is None else environ
    env_layers, warnings = _environment(environ)
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    below = [
        _layer_of(read_document(path, kind=_KIND, advice=_ADVICE), path)
        for path in [user_file()]
        if path.is_file()
    ]
    above = [*env_layers, _Layer(origin=origin, values=given, name_of=name_of)]
    project_layer = _project_layer(cwd or Path.cwd(), trust=trust_project or _trusts_project(environ))
    if project_layer is None:
        return _config([*below, *above], warnings)
    config = _config(
        [*below, project_layer.layer, *above], warnings
    )  # tells every fault, refused lines or not
    if project_layer.project.is_trusted:
        return replace(config, project=project_layer.project)
    layers, refused = _as_allowed(project_layer, below)
    config = _config([*below, *layers, *above], warnings)
    return replace(config, project=project_layer.project, refused=refused)


def _config(layers: Iterable[_Layer], warnings: Iterable[str]) -> Config:
    origins: dict[str, str] = {}
    merged: dict[str, object] = {}
    places: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.values.items():
            merged[name], origins[name] = value, layer.origin
            places.pop(name, None)
            if layer.name_of is not None:
                places[name] = layer.name_of(name)
    return Config(settings=_validate(merged, origins, places), origins=origins, warnings=tuple(warnings))


def _project_layer(start: Path, *, trust: bool) -> _ProjectLayer | None:
    path = project_file(start)
    if path is None:
        return None
    text, sha256 = read_project_file(path)
    document = parse_document(text, place=repr(str(path)), kind=_KIND, advice=_ADVICE)
    project = Project(path=path, sha256=sha256, is_trusted=trust or is_trusted(path, sha256))
    return _ProjectLayer(project=project, document=document, layer=_layer_of(document, path))


def _as_allowed(
    project_layer: _ProjectLayer, below: list[_Layer]
) -> tuple[list[_Layer], tuple[Refused, ...]]:
    """Layers of what a project may do, and the lines with what it may not."""
    before, after = _config(below, ()).settings, _config([*below, project_layer.layer], ()).settings
    layers: list[_Layer] = []
    refused: list[Refused] = []
    for name, value in project_layer.layer.values.items():
        why = why_refused(name, before, after, project_layer.project.path.parent)
        if why is not None:
            refused.append(_refused(project_layer, name, why))
        elif sections.project_may(name) is ProjectMay.ADD:
            added = with_added(entries_of(before, name), entries_of(after, name), cast("list[object]", value))
            layers.append(_added(name, added, project_layer.layer.origin, below))
        else:
            layers.append(_Layer(origin=project_layer.layer.origin, values={name: value}))
    return layers, tuple(refused)


def _added(name: str, entries: list[object], origin: str, below: list[_Layer]) -> _Layer:
    """A list with more entries behind those of the nearest layer below that has it."""
    under = next((layer for layer in reversed(below) if name in layer.values), None)
    if under is None:
        return _Layer(origin=origin, values={name: entries})
    longer = [*cast("list[object]", under.values[name]), *entries]
    return _Layer(origin=f"{under.origin} and {origin}", values={name: longer})


def _refused(project_layer: _ProjectLayer, name: str, why: Why) -> Refused:
    place = (name,) if (name,) in project_layer.document.lines else tuple(name.split(".", 1))
    value, line = project_layer.document.at(place), project_layer.document.line(place)
    path = project_layer.project.path
    return Refused(
        setting=name, value=value, file=path, line=line, allowed=sections.project_may(name), why=why
    )


def _trusts_project(environ: Mapping[str, str]) -> bool:
    text = environ.get(TRUST_VARIABLE, "").strip().lower()
    if text in ("", "0", "false", "no"):
        return False
    if text in ("1", "true", "yes"):
        return True
    raise ConfigError(f"the environment variable {TRUST_VARIABLE} may be 1 or 0, not {text!r}.")


def _is_same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return one.samefile(other)
    return False


def _layer_of(document: YamlDocument, path: Path) -> _Layer:
    if document.value is None:
        return _Layer(origin=str(path), values={})
    if not isinstance(document.value, dict):
        raise ConfigError(f"{str(path)!r} must hold settings by section, such as 'local:'.")
    return _Layer(origin=str(path), values=beside(path.parent, dict(_dotted(document.value))))


def _dotted(document: Mapping[object, object]) -> Iterator[tuple[str, object]]:
    for section, value in document.items():
        if section not in sections.Settings.model_fields:
            yield str(section), value
        elif isinstance(value, Mapping):
            yield from ((f"{section}.{key}", item) for key, item in value.items())
        elif value is not None:
            yield str(section), value


def _environment(environ: Mapping[str, str]) -> tuple[list[_Layer], list[str]]:
    """``ADVISOR_CLOUD__MAX_GPUS=4``; a value is read as YAML, so that lists and null can be written."""
    known = {environment_variable(name): name for name in sections.setting_names()}
    layers, warnings = [], []
    for variable in sorted(environ):
        if not variable.startswith(ENV_PREFIX) or variable in _NO_SETTINGS:
            continue
        if variable in known:
            place = f"the environment variable {variable}"
            document = parse_document(environ[variable], place=place, kind="setting", advice=_QUOTES)
            layers.append(_Layer(origin=variable, values={known[variable]: document.value}))
        else:
            hint = did_you_mean(variable, known)
            warnings.append(f"the environment variable {variable} is no setting of ours.{hint}")
    return layers, warnings


def _validate(
    merged: Mapping[str, object], origins: Mapping[str, str], places: Mapping[str, str]
) -> sections.Settings:
    nested: dict[str, object] = {}
    for name, value in merged.items():
        section, _, key = name.partition(".")
        if not key:
            nested[section] = value
        elif isinstance(inner := nested.setdefault(section, {}), dict):
            inner[key] = value
    try:
        return sections.Settings.model_validate(nested)
    except ValidationError as error:
        items = error.errors()
        faults = [_fault(item, origins, places) for item in items[:_MOST_FAULTS]]
        if len(items) > _MOST_FAULTS:
            faults.append(f"There are {len(items) - _MOST_FAULTS} more of these.")
        raise ConfigError("\n".join(faults)) from error


def _fault(item: ErrorDetails, origins: Mapping[str, str], places: Mapping[str, str]) -> str:
    location = [str(part) for part in item["loc"]]
    name = ".".join(location)
    origin = origins.get(".".join(location[:2])) or origins.get(location[0])
    where = f" (set by {origin})" if origin else ""
    if item["type"] == "extra_forbidden":
        entry = sections.LIST_SECTIONS.get(location[0])
        if location[:2] == ["delivery", "channels"] and len(location) > _KIND_OF_CHANNEL:
            entry = CHANNEL_KINDS.get(location[_KIND_OF_CHANNEL])
        keys = [field.alias or key for key, field in entry.model_fields.items()] if entry else []
        hint = did_you_mean(location[-1], keys) if keys else did_you_mean(name, sections.setting_names())
        if len(location) == 1:
            hint = did_you_mean(name, [*sections.Settings.model_fields, *sections.setting_names()])
        return f"unknown setting {shown(name)}{where}.{hint} advisor config show lists them all."
    place = places.get(".".join(location[:2])) or f"setting {name!r}{where}"
    # Someone may have written a password where its name belongs.
    return f"{place}: {fault_in_words(item, quotes_value=location[0] != 'delivery')}"
