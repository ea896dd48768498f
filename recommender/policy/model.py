"""What a policy file may hold: the one list behind reading, the JSON Schema and the documentation."""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)

from advisor.core.errors import UnknownGpuError, did_you_mean
from advisor.core.globs import is_any
from advisor.core.gpus import load_gpus, resolve_gpus
from advisor.core.limits import MAX_MACHINES, MAX_PER_H, MAX_PLANNED_S, MAX_USD
from advisor.core.units import at_most_s, duration_of_text_s, exact_duration
from advisor.core.values import Market, PickName, Tier

# Brackets and braces mean something in other tools; taken literally they would match nothing in silence.
_FOREIGN = frozenset("[]{}!,;|")
_LONGEST = 100


def checked_glob(text: str) -> str:
    """The text, if it is a name with ``*`` and ``?`` at most. Raises ValueError: says what is allowed."""
    if not text.strip() or len(text) > _LONGEST or _FOREIGN & set(text) or not text.isprintable():
        raise ValueError("one name an entry, with the wildcards * and ? at most, such as us-*")
    return text.strip()


def checked_market(text: str) -> str:
    """The text, if it stands for a market. Raises ValueError: with near matches."""
    if not any(matches(text, market) for market in Market):
        hint = did_you_mean(text, [market.value for market in Market])
        raise ValueError(f"no market is called so.{hint} There are {', '.join(Market)}")
    return text


def checked_gpu(text: str) -> str:
    """The text, if it stands for a GPU of the catalog. Raises ValueError: with near matches."""
    gpu_members(text)
    return text


def matches(glob: str, name: str) -> bool:
    """Whether a name is meant.

    >>> matches("us-*", "US-East-1"), matches("us", "us-east-1")
    (True, False)
    """
    return is_any([glob], name)


@cache
def gpu_members(glob: str) -> tuple[str, ...]:
    """GPUs of the catalog that a name, an alias, a family or a glob over names and families means.

    Raises ValueError: none; with near matches.

    >>> gpu_members("A100-80GB")
    ('A100-PCIE-80GB', 'A100-SXM-80GB')
    """
    if not {"*", "?"} & set(glob):
        try:
            return tuple(gpu.name for gpu in resolve_gpus(glob))
        except UnknownGpuError as error:
            raise ValueError(str(error).rstrip(".")) from None
    members = tuple(
        gpu.name
        for gpu in load_gpus().values()
        if any(matches(glob, name) for name in (gpu.name, *gpu.families))
    )
    if not members:
        raise ValueError("no GPU of the catalog matches; `advisor gpus` lists all")
    return members


def may_overlap(left: str, right: str) -> bool:
    """Whether a name exists that both globs match.

    >>> may_overlap("us-*", "*-east-1"), may_overlap("us-*", "eu-*")
    (True, False)
    """
    a, b = left.lower(), right.lower()

    @cache
    def from_(i: int, j: int) -> bool:
        if i == len(a) or j == len(b):
            return set(a[i:] + b[j:]) <= {"*"}
        if a[i] == "*":
            return from_(i + 1, j) or from_(i, j + 1)
        if b[j] == "*":
            return from_(i, j + 1) or from_(i + 1, j)
        return (a[i] == b[j] or "?" in (a[i], b[j])) and from_(i + 1, j + 1)

    return from_(0, 0)


VERSION = 1
_AMOUNT = re.compile(r"(?:usd|\$)?\s*(\d+(?:\.\d+)?)\s*(?:usd|\$)?", re.IGNORECASE)


class Layer(StrEnum):
    """Whose rules a file holds, uppermost first."""

    ORGANISATION = "organisation"
    TEAM = "team"
    PROJECT = "project"

    @property
    def rank(self) -> int:
        """0 for the uppermost."""
        return list(Layer).index(self)


def _only(wanted: object, why: str) -> BeforeValidator:
    def checked(value: object) -> object:
        if value is True or value != wanted:
            raise ValueError(why)
        return value

    return BeforeValidator(checked)


def _layer(value: object) -> object:
    names = [layer.value for layer in Layer]
    if value not in names:
        raise ValueError(f"write one of {', '.join(names)}.{did_you_mean(str(value), names)}")
    return value


def _usd(value: object) -> object:
    if isinstance(value, str):
        amount = _AMOUNT.fullmatch(value.strip())
        if amount:
            raise ValueError(f"an amount is a number of US dollars without quotes or sign: write {amount[1]}")
        raise ValueError("an amount is a number of US dollars, such as 20: convert other currencies")
    return _number(value)


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("write a number without quotes or unit, such as 20")
    return 0 if value == 0 else value  # -0.0 would be printed with its sign


def _printable(value: str) -> str:
    # It is printed to terminals, which obey control characters.
    if not value.isprintable() or not value.strip():
        raise ValueError("write a text of one line without control characters")
    return value


def _lockable(value: str) -> str:
    if value not in LOCKABLE:
        hint = did_you_mean(value, LOCKABLE)
        raise ValueError(
            f"no such key can be locked.{hint} Write a section such as limits, or limits.usd_per_job"
        )
    return value


Text = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_printable)]
Glob = Annotated[str, AfterValidator(checked_glob)]
MarketGlob = Annotated[Glob, AfterValidator(checked_market)]
GpuGlob = Annotated[Glob, AfterValidator(checked_gpu)]
Usd = Annotated[float, Field(ge=0, le=MAX_USD, allow_inf_nan=False), BeforeValidator(_usd)]
PositiveUsd = Annotated[float, Field(gt=0, le=MAX_USD, allow_inf_nan=False), BeforeValidator(_usd)]
Rate = Annotated[float, Field(ge=0, le=MAX_PER_H, allow_inf_nan=False), BeforeValidator(_number)]
Count = Annotated[int, Field(ge=1, le=MAX_MACHINES), BeforeValidator(_number)]
Wait = Annotated[
    float,
    BeforeValidator(duration_of_text_s),
    PlainSerializer(exact_duration, return_type=str),
    AfterValidator(at_most_s(MAX_PLANNED_S)),
    Field(gt=0),
    WithJsonSchema({"type": "string", "pattern": r"^(\s*\d+(\.\d+)?\s*(ms|s|sec|m|min|h|hr|d|w))+\s*$"}),
]


class PolicySection(BaseModel):
    """A part of a policy file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Names(PolicySection):
    """Lists of names with the wildcards * and ?."""

    providers: tuple[Glob, ...] | None = Field(
        None, min_length=1, description="clouds; this machine is 'local', a cluster goes by its name"
    )
    regions: tuple[Glob, ...] | None = Field(None, min_length=1, description="regions of clouds")
    markets: tuple[MarketGlob, ...] | None = Field(None, min_length=1, description="on-demand, spot, ...")
    gpus: tuple[GpuGlob, ...] | None = Field(
        None, min_length=1, description="GPUs, aliases or families of `advisor gpus`"
    )
    instance_types: tuple[Glob, ...] | None = Field(None, min_length=1, description="machines of clouds")


class Limits(PolicySection):
    """The most that may be spent and used."""

    usd_per_hour: Usd | None = Field(None, description="price of the whole plan, per hour")
    usd_per_job: Usd | None = Field(None, description="cost of one job that 9 of 10 runs stay under (p90)")
    usd_per_month: Usd | None = Field(
        None,
        description="spent since the first of the month and this job's p90; a project counts its own runs,"
        " a team or organisation all of the store",
    )
    gpus_per_job: Count | None = Field(None, description="GPUs of the whole plan, all nodes together")
    nodes_per_job: Count | None = Field(None, description="machines of the whole plan")


class SpotRules(PolicySection):
    """When preemptible machines may be used."""

    allowed: bool | None = Field(None, strict=True, description="false removes all spot machines")
    needs_checkpoints: bool | None = Field(
        None, strict=True, description="true asks for spot.checkpoint_interval in the settings"
    )
    preemptions_per_h_at_most: Rate | None = Field(
        None, description="highest rate of preemptions of a running machine"
    )
    jobs_under: Wait | None = Field(
        None, description="longer jobs (median training time) go to other markets, such as 24h"
    )


class Condition(PolicySection):
    """When a preference holds; all keys must. An unknown wait is not under anything."""

    wait_p50_under: Wait | None = Field(None, description="median wait, such as 30m")
    wait_p90_under: Wait | None = Field(None, description="wait that 9 of 10 jobs stay under, such as 6h")


class Prefer(PolicySection):
    """A tier that is taken while an option of it is feasible and meets the condition."""

    tier: Tier = Field(description="local, cluster or cloud")
    if_: Condition = Field(Condition(), alias="if", description="without it the preference always holds")


class Approval(PolicySection):
    """Who must agree to a job; it is marked, not removed."""

    over_usd_per_job: Usd = Field(description="for jobs whose p90 cost is above this")
    by: Text = Field(description="a role or a person")


class Objective(PolicySection):
    """What the recommended option is chosen by."""

    pick: PickName | None = Field(None, description="what the recommended option is the best at")
    value_of_time_usd_per_h: PositiveUsd | None = Field(
        None, description="what an hour until the result costs"
    )


class Runs(PolicySection):
    """How jobs are run."""

    guard: Literal["required"] | None = Field(
        None, description="required: nothing is run or launched without a limit of its cost or time"
    )


SECTIONS: Mapping[str, type[PolicySection]] = {
    "allow": Names,
    "deny": Names,
    "limits": Limits,
    "spot": SpotRules,
    "objective": Objective,
    "runs": Runs,
}
"""The sections whose keys are rules of their own."""
LOCKABLE = [
    *SECTIONS,
    "prefer",
    "approval",
    *(f"{name}.{key}" for name, model in SECTIONS.items() for key in model.model_fields),
]
"""Sections and their keys: ``limits``, ``limits.usd_per_job``, ``prefer`` ..."""


class PolicyFile(PolicySection):
    """A policy of advisor: which machines a job may use, what it may cost and who must agree."""

    version: Annotated[
        Literal[1],
        _only(VERSION, f"this program reads version {VERSION}: write that, or use a newer advisor"),
    ] = Field(description="of this format")
    name: Text = Field(description="whose policy it is, for messages")
    layer: Annotated[Layer, BeforeValidator(_layer)] = Field(description="whose rules these are")
    currency: Annotated[
        Literal["USD"], _only("USD", "amounts are US dollars: convert them and write currency: USD")
    ] = Field("USD", description="of all amounts")
    allow: Names = Field(Names(), description="a plan must match each list that is given")
    deny: Names = Field(Names(), description="a plan must match none of these")
    limits: Limits = Field(Limits(), description="the most that may be spent and used")
    spot: SpotRules = Field(SpotRules(), description="when preemptible machines may be used")
    prefer: Prefer | None = Field(None, description="a tier to take before the others")
    approval: tuple[Approval, ...] = Field((), description="who must agree to dear jobs")
    objective: Objective = Field(Objective(), description="what the recommended option is chosen by")
    runs: Runs = Field(Runs(), description="how jobs are run")
    lock: tuple[
        Annotated[str, AfterValidator(_lockable), Field(json_schema_extra={"enum": [*LOCKABLE]})], ...
    ] = Field((), description="keys that no lower layer may set, such as limits.usd_per_job or deny")


def json_schema() -> dict[str, object]:
    """The JSON Schema (draft 2020-12) of a policy file; editors check and complete with it."""
    schema = _plain_object(PolicyFile.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _plain(node: object) -> object:
    """Without the titles that pydantic makes up, and without null: an empty key is a fault."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    return _plain_object(node) if isinstance(node, dict) else node


def _plain_object(node: Mapping[str, object]) -> dict[str, object]:
    kept = {key: _plain(value) for key, value in node.items() if key not in ("title", "anyOf")}
    if kept.get("default", ...) is None:
        del kept["default"]
    parts = node.get("anyOf")
    of_any = parts if isinstance(parts, list) else []
    choices = [_plain_object(choice) for choice in of_any if choice != {"type": "null"}]
    return kept | (choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {})
