"""What a section and a setting can be, and what a project may do to a setting."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args

import pydantic
from pydantic.fields import FieldInfo

from advisor.core.errors import UnknownGpuError
from advisor.core.gpus import resolve_gpu
from advisor.core.limits import MAX_GB, MAX_PLANNED_S, MAX_TIMEOUT_S, MAX_USD_PER_H, MAX_W, MIN_W
from advisor.core.units import at_most_s, duration_of_text_s, exact_duration
from advisor.formats.user_files import at_home


class ProjectMay(StrEnum):
    """What a project's settings file may do to a setting unless its user trusts it (decision 14)."""

    ANYTHING = "anything"
    LOWER = "lower"
    SWITCH_ON = "switch-on"
    ADD = "add"
    NARROW = "narrow"
    NOTHING = "nothing"


ANYTHING, LOWER, SWITCH_ON, ADD, NARROW, NOTHING = ProjectMay
_PROJECT_MAY = "project_may"


def setting(may: ProjectMay, default: object, words: str, **limits: Any) -> Any:
    """A setting of a section.

    Args:
        may: what a project that is not trusted may do to it.
        default: as a file would have it.
        words: what it means, for files, the documentation and messages.
        limits: of its value, as pydantic names them.
    """
    return pydantic.Field(default, description=words, json_schema_extra={_PROJECT_MAY: may}, **limits)


def project_may_of(field: FieldInfo) -> ProjectMay | None:
    """What `setting` was given; None for a field that was declared otherwise."""
    extra = field.json_schema_extra
    return ProjectMay(str(extra[_PROJECT_MAY])) if isinstance(extra, dict) and _PROJECT_MAY in extra else None


class SettingsSection(pydantic.BaseModel):
    """Settings that stand together; an unknown key is an error, and so is a number that is none."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @pydantic.model_validator(mode="before")
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
    kinds = set(_kinds(annotation))
    return bool(kinds & {int, float}) and bool not in kinds


def _kinds(annotation: object) -> Iterator[object]:
    yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}", re.ASCII)


def lower(value: object) -> object:
    """Letter case never counts."""
    return value.lower() if isinstance(value, str) else value


def check_wait(p50_s: float | None, p90_s: float | None) -> None:
    """Refuse quantiles of a wait that are half or in the wrong order, as ``ValueError``."""
    if (p50_s is None) != (p90_s is None):
        raise ValueError("give both wait_p50 and wait_p90, or neither")
    if p50_s is not None and p90_s is not None and p90_s < p50_s:
        raise ValueError("wait_p90 must not be below wait_p50")


def catalog_name(gpu: str) -> str:
    """Two spellings of one GPU have one name; what the catalog does not know keeps its own."""
    with suppress(UnknownGpuError):
        return resolve_gpu(gpu).name
    return gpu


def _variable(name: str) -> str:
    if _VARIABLE.fullmatch(name):
        return name
    name, equals, _ = name.partition("=")
    if equals:
        raise ValueError(f"write the name alone, its value into the environment: {name}=... advisor ...")
    raise ValueError("write the name of a variable, such as DATA_ROOT")


VariableName = Annotated[str, pydantic.AfterValidator(_variable)]
UserPath = Annotated[Path, pydantic.AfterValidator(at_home)]
# Seconds inside, a text with a unit in files.
Duration = Annotated[
    float,
    pydantic.BeforeValidator(duration_of_text_s),
    pydantic.PlainSerializer(exact_duration, return_type=str),
]
PositiveDuration = Annotated[Duration, pydantic.Field(gt=0)]
# Of the job and its machines; how long prices are remembered has no such limit.
Planned = Annotated[Duration, pydantic.AfterValidator(at_most_s(MAX_PLANNED_S))]
PositivePlanned = Annotated[Planned, pydantic.Field(gt=0)]
Timeout = Annotated[PositiveDuration, pydantic.AfterValidator(at_most_s(MAX_TIMEOUT_S))]
UsdPerH = Annotated[float, pydantic.Field(ge=0, le=MAX_USD_PER_H, allow_inf_nan=False)]
Watts = Annotated[float, pydantic.Field(ge=MIN_W, le=MAX_W, allow_inf_nan=False)]
CpuSeconds = Annotated[float, pydantic.Field(ge=0, le=MAX_PLANNED_S, allow_inf_nan=False)]
Count = Annotated[int, pydantic.Field(ge=1, le=4096)]
Gigabytes = Annotated[float, pydantic.Field(ge=0, le=MAX_GB, allow_inf_nan=False)]
Name = Annotated[str, pydantic.Field(min_length=1, max_length=200)]
Discount = Annotated[float, pydantic.Field(ge=0, lt=1)]
