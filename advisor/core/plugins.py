"""Names -> things that packages register under entry points; ours are registered like anybody's."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from advisor.core.errors import ConfigError, did_you_mean

OWN_DISTRIBUTION = "gpu-advisor"


@cache
def registered(group: str, *, foreign: bool = True) -> Mapping[str, EntryPoint]:
    """Entry points of a group by name, in alphabetical order; ours win over others of the same name.

    Args:
        group: such as ``"advisor.price_sources"``.
        foreign: whether packages other than ours count.
    """
    points = sorted(entry_points(group=group), key=lambda point: (point.name, not _is_own(point)))
    names: dict[str, EntryPoint] = {}
    for point in points:
        if foreign or _is_own(point):
            names.setdefault(point.name, point)
    return names


def load(group: str, name: str) -> object:
    """What is registered under a name, imported now.

    Raises ConfigError: nothing is, or it cannot be imported.
    """
    known = registered(group)
    if name not in known:
        raise ConfigError(
            f"nothing named {name!r} is registered under {group}.{did_you_mean(name, known)} Known"
            f" are {', '.join(known) or 'none'}; a plug-in must be installed in advisor's own environment."
        )
    try:
        with held_back():
            return cast("object", known[name].load())
    except Exception as error:
        raise ConfigError(
            f"the plug-in {name!r} ({known[name].value}) cannot be loaded: {error_in_words(error)}."
            " Update or uninstall it."
        ) from error


class PluginEndedError(Exception):
    """A plug-in tried to end advisor."""


@contextmanager
def held_back() -> Iterator[None]:
    """While a plug-in's own code runs, it cannot end advisor, and what it prints goes to stderr.

    Raises:
        PluginEndedError: it called ``sys.exit``, say, which no ``except Exception`` catches.
        KeyboardInterrupt: passed on.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise PluginEndedError(f"it raised {type(error).__name__}({error})") from error


def _is_own(point: EntryPoint) -> bool:
    return point.dist is not None and point.dist.name == OWN_DISTRIBUTION


def error_in_words(error: BaseException, *, most: int = 300) -> str:
    """Kind and message of an unforeseen error in one line of ``most`` characters, without secrets.

    >>> error_in_words(RuntimeError("token=abc refused"))
    'RuntimeError: token=*** refused'
    """
    # Late: what finds secrets takes a while to compile, and few commands meet such an error.
    from advisor.core.redaction import redact_message

    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - even its message may be broken
        message = ""
    # Cut last: half a secret would not look like one.
    text = " ".join(redact_message(message).split())[:most]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
