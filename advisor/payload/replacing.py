"""Puts something else in the place of what a library has."""

from __future__ import annotations


def replace(owner: object, **values: object) -> None:
    """Set attributes of a library's class or module; what was there before is the caller's to call."""
    for name, value in values.items():
        setattr(owner, name, value)
