"""What a section of the settings is, and what a project may do to a setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import get_args

from pydantic import BaseModel, ConfigDict, model_validator


class ProjectMay(StrEnum):
    """What a project's settings file may do to a setting unless its user trusts it (decision 14)."""

    ANYTHING = "anything"
    LOWER = "lower"
    SWITCH_ON = "switch-on"
    ADD = "add"
    NARROW = "narrow"
    NOTHING = "nothing"


class Section(BaseModel):
    """Settings that stand together; a key that nobody knows is an error, and so is a number that is none."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _numbers_are_numbers(cls, values: object) -> object:
        """Refuse true, false and -0.0 where a number belongs: pydantic makes 1 and 0 of them."""
        for name, value in values.items() if isinstance(values, Mapping) else ():
            field = cls.model_fields.get(name) if isinstance(name, str) else None
            is_none = isinstance(value, bool) or (value == 0 and str(value).startswith("-"))
            if is_none and field is not None and _wants_number(field.annotation):
                raise ValueError(f"{name} must be a number, not {str(value).lower()}")
        return values


def _wants_number(annotation: object) -> bool:
    """Whether numbers are among what a field takes, and truth values are not."""
    kinds = set(_kinds(annotation))
    return bool(kinds & {int, float}) and bool not in kinds


def _kinds(annotation: object) -> Iterator[object]:
    yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)
