"""Relative paths of a settings file count from its folder, since it is found from other folders, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from glob import escape
from pathlib import Path

_SQLITE = "sqlite:///"
_IN_A_FILE = "file:"
_EACH = "*"


def beside(folder: Path, values: Mapping[str, object]) -> dict[str, object]:
    """Settings by dotted name, as a file in a folder means them; what is malformed stays as it is."""
    changed = dict(values)
    for (name, *keys), join in _PATHS.items():
        if name in values:
            changed[name] = _mapped(changed[name], keys, partial(join, folder))
    return changed


def _mapped(value: object, keys: Sequence[str], change: Callable[[str], str]) -> object:
    """A value with the texts changed that the keys lead to."""
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


def _url(folder: Path, text: str) -> str:
    path = text.removeprefix(_SQLITE)
    return _SQLITE + _path(folder, path) if text.startswith(_SQLITE) and path else text


def _secret_file(folder: Path, text: str) -> str:
    path = text.removeprefix(_IN_A_FILE)
    return _IN_A_FILE + _path(folder, path) if text.startswith(_IN_A_FILE) and path else text


_PATHS: Mapping[tuple[str, ...], Callable[[Path, str], str]] = {
    ("profile.python",): _path,
    ("clusters", _EACH, "wait_log"): _path,
    ("prices.options", "custom", "files", _EACH): _pattern,
    ("prices.options", "snapshot", "folder"): _path,
    ("prices.options", "gpuhunt", "catalog_dir"): _path,
    ("spot.history",): _path,
    ("store.url",): _url,
    ("policy.files", _EACH): _path,
    ("delivery.channels", _EACH, "path"): _path,
    ("delivery.channels", _EACH, "ca_file"): _path,
    ("delivery.channels", _EACH, "password"): _secret_file,
    ("delivery.channels", _EACH, "secret"): _secret_file,
    ("delivery.channels", _EACH, "url"): _secret_file,
    ("report.bills", _EACH): _path,
}
