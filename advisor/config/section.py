"""What a section of the settings is, and what a project may do to a setting."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class ProjectMay(StrEnum):
    """What a project's settings file may do to a setting unless its user trusts it (decision 14)."""

    ANYTHING = "anything"
    LOWER = "lower"
    SWITCH_ON = "switch-on"
    ADD = "add"
    NARROW = "narrow"
    NOTHING = "nothing"


class Section(BaseModel):
    """Settings that stand together; a key that nobody knows is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
