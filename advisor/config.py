"""Layered settings, each value with the layer that set it.

Defaults < user file < project file (``.advisor.yaml``, searched upwards) < ``ADVISOR_*`` < flags.
Sections merge key by key; a list replaces the list below it. Relative paths count from the file that
names them, and from the working directory where a variable or a flag does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from advisor.errors import ConfigError, did_you_mean
from advisor.setting_paths import beside
from advisor.settings import LIST_SECTIONS, Settings, setting_names
from advisor.user_files import fault_in_words, read_yaml, shown

ENV_PREFIX = "ADVISOR_"
PROJECT_FILE = ".advisor.yaml"
_MOST_FAULTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings, the layer each dotted name came from (absent: the default), and warnings."""

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    origin: str
    values: Mapping[str, Any]  # by dotted name


def environment_variable(name: str) -> str:
    """The variable that sets a dotted name: ``cloud.max_gpus`` -> ``ADVISOR_CLOUD__MAX_GPUS``."""
    return ENV_PREFIX + name.upper().replace(".", "__")


def user_file() -> Path:
    """``~/.config/advisor/config.yaml``, or the platform's folder for it."""
    import platformdirs

    return platformdirs.user_config_path("advisor") / "config.yaml"


def project_file(start: Path) -> Path | None:
    """The nearest ``.advisor.yaml`` in ``start`` or above."""
    found = (folder / PROJECT_FILE for folder in (start, *start.parents))
    return next((path for path in found if path.is_file()), None)


def load_config(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Config:
    """Read all layers.

    Args:
        flags: settings given on the command line, by dotted name; None values do not count.
        environ: the environment, ``os.environ`` if None.
        cwd: where to look for the project file, the working directory if None.

    Raises:
        ConfigError: a file cannot be read, a key is unknown or a value is wrong; all faults at once.
    """
    environ = os.environ if environ is None else environ
    env_layers, warnings = _environment(environ)
    paths = [user_file(), project_file(cwd or Path.cwd())]
    layers = [_file_layer(path) for path in paths if path is not None and path.is_file()]
    layers += env_layers
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    layers.append(_Layer(origin="flag", values=given))
    origins: dict[str, str] = {}
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.values.items():
            merged[name], origins[name] = value, layer.origin
    return Config(settings=_validate(merged, origins), origins=origins, warnings=tuple(warnings))


def _file_layer(path: Path) -> _Layer:
    document = read_yaml(path, kind="settings file", advice="Compare it with what advisor init writes.")
    if document is None:
        return _Layer(origin=str(path), values={})
    if not isinstance(document, dict):
        raise ConfigError(f"{str(path)!r} must hold settings by section, such as 'local:'.")
    return _Layer(origin=str(path), values=beside(path.parent, dict(_dotted(document))))


def _dotted(document: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for section, value in document.items():
        if section not in Settings.model_fields:
            yield str(section), value
        elif isinstance(value, Mapping):
            yield from ((f"{section}.{key}", item) for key, item in value.items())
        elif value is not None:
            yield str(section), value


def _environment(environ: Mapping[str, str]) -> tuple[list[_Layer], list[str]]:
    """``ADVISOR_CLOUD__MAX_GPUS=4``; a value is read as YAML, so that lists and null can be written."""
    known = {environment_variable(name): name for name in setting_names()}
    layers, warnings = [], []
    for variable in sorted(environ):
        if not variable.startswith(ENV_PREFIX):
            continue
        if variable in known:
            try:
                value = yaml.safe_load(environ[variable])
            except yaml.YAMLError:
                value = environ[variable]
            layers.append(_Layer(origin=variable, values={known[variable]: value}))
        else:
            hint = did_you_mean(variable, known)
            warnings.append(f"the environment variable {variable} is no setting of ours.{hint}")
    return layers, warnings


def _validate(merged: Mapping[str, Any], origins: Mapping[str, str]) -> Settings:
    nested: dict[str, Any] = {}
    for name, value in merged.items():
        section, _, key = name.partition(".")
        if not key:
            nested[section] = value
        elif isinstance(inner := nested.setdefault(section, {}), dict):
            inner[key] = value
    try:
        return Settings.model_validate(nested)
    except ValidationError as error:
        items = error.errors()
        more = [f"... and {len(items) - _MOST_FAULTS} more."] if len(items) > _MOST_FAULTS else []
        faults = [_fault(item, origins) for item in items[:_MOST_FAULTS]]
        raise ConfigError("\n".join([*faults, *more])) from error


def _fault(item: Any, origins: Mapping[str, str]) -> str:
    location = [str(part) for part in item["loc"]]
    name = ".".join(location)
    origin = origins.get(".".join(location[:2])) or origins.get(location[0])
    where = f" (set by {origin})" if origin else ""
    if item["type"] == "extra_forbidden":
        entry = LIST_SECTIONS.get(location[0])
        hint = (
            did_you_mean(location[-1], entry.model_fields) if entry else did_you_mean(name, setting_names())
        )
        if len(location) == 1:
            hint = did_you_mean(name, [*Settings.model_fields, *setting_names()])
        return f"unknown setting {shown(name)}{where}.{hint} advisor config show lists them all."
    return f"setting {name!r}{where}: {fault_in_words(item)}"
