"""One own rate as a person writes it down, and the offer it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from advisor.core.errors import UnknownGpuError, did_you_mean
from advisor.core.gpus import resolve_gpu
from advisor.core.limits import MAX_PLANNED_S
from advisor.core.values import Market, Offer
from advisor.formats.user_files import fault_in_words, shown
from advisor.pricing.catalog.instance_types import InstanceType, load_instances
from advisor.pricing.sources.protocol import ANYWHERE

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def _gpu(name: str) -> str:
    try:
        return resolve_gpu(name).name
    except UnknownGpuError as error:
        raise ValueError(str(error).removesuffix(".")) from error


def _day(value: object) -> object:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError("a day is written 2026-11-21") from error


def _words(value: object) -> object:
    return tuple(word.strip() for word in value.split(",")) if isinstance(value, str) else value


# Numbers are strict: a quoted number in YAML is a slip, and a guess at its meaning could cost money.
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Usd = Annotated[float, Field(strict=True, gt=0, lt=1e6, allow_inf_nan=False)]
Seconds = Annotated[float, Field(strict=True, ge=0, le=MAX_PLANNED_S, allow_inf_nan=False)]


class Rate(BaseModel):
    """A row of a file of own rates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: Annotated[Text, StringConstraints(to_lower=True)]
    instance_type: Text
    gpu: Annotated[Text, AfterValidator(_gpu)]
    num_gpus: Annotated[int, Field(strict=True, ge=1, le=4096)]
    region: Text = ANYWHERE
    zone: Text | None = None
    market: Market = Market.ON_DEMAND
    usd_per_h: Usd | None = None
    usd_per_gpu_h: Usd | None = None
    currency: Text = "USD"
    as_of: Annotated[date, BeforeValidator(_day), Field(strict=True)] = Field(
        validation_alias=AliasChoices("as_of", "retrieved_at")
    )
    minimum_billed_s: Seconds = 60.0
    billed_step_s: Annotated[Seconds, Field(gt=0)] = 1.0
    includes: Annotated[tuple[Text, ...], BeforeValidator(_words)] = ()
    note: Text | None = None

    @field_validator("currency")
    @classmethod
    def _dollars(cls, currency: str) -> str:
        if currency != "USD":
            raise ValueError("only USD is understood: convert the price, and date it by the exchange rate")
        return currency

    @model_validator(mode="after")
    def _one_price(self) -> Rate:
        if (self.usd_per_h is None) == (self.usd_per_gpu_h is None):
            raise ValueError("give either usd_per_h, of the whole machine, or usd_per_gpu_h")
        return self

    @model_validator(mode="after")
    def _as_sold(self) -> Rate:
        """A cloud sells no variants under one name: another GPU or count than the catalog's is a slip."""
        known = load_instances().get((self.provider, self.instance_type))
        if known is not None and (known.gpu, known.num_gpus) != (self.gpu, self.num_gpus):
            raise ValueError(
                f"{self.provider} {self.instance_type} has {known.num_gpus} x {known.gpu}, not"
                f" {self.num_gpus} x {self.gpu}: correct the row, or give a machine of your own another name"
            )
        return self

    def offer(self, source: str) -> Offer:
        """The offer at this rate, which is what is paid: no contract of the settings applies to it again."""
        per_gpu = (self.usd_per_gpu_h or 0.0) * self.num_gpus
        usd_per_h = per_gpu if self.usd_per_h is None else self.usd_per_h
        offer = self._machine(source).offer(
            region=self.region,
            zone=self.zone,
            market=self.market,
            usd_per_h=usd_per_h,
            retrieved_at=datetime.combine(self.as_of, datetime.min.time(), UTC),
            source=source if self.note is None else f"{source} ({self.note})",
        )
        return replace(offer, contracted_usd_per_h=usd_per_h, billed_step_s=self.billed_step_s)

    def _machine(self, source: str) -> InstanceType:
        known = load_instances().get((self.provider, self.instance_type))
        return InstanceType(
            provider=self.provider,
            instance_type=self.instance_type,
            gpu=self.gpu,
            num_gpus=self.num_gpus,
            architecture=None if known is None else known.architecture,
            minimum_billed_s=self.minimum_billed_s,
            includes=self.includes,
            source=source,
            as_of=self.as_of,
        )


COLUMNS = (*Rate.model_fields, "retrieved_at")


def rate_of(row: Mapping[str, object], form: Literal["yaml", "csv"]) -> Rate | list[str]:
    """A rate, or all that is wrong with its row, in words.

    Args:
        row: values by column.
        form: in a CSV file every value is text, in YAML a number is a number.
    """
    try:
        return Rate.model_validate_strings(row) if form == "csv" else Rate.model_validate(row)
    except ValidationError as error:
        return [_fault(item) for item in error.errors()]


def _fault(item: ErrorDetails) -> str:
    name = ".".join(map(str, item["loc"]))
    if item["type"] == "extra_forbidden":
        return unknown_column(name)
    if item["type"] == "missing":
        return f"{name!r} is missing."
    if not name:
        return f"{item['msg'].removeprefix('Value error, ')}."
    return f"{name!r}: {fault_in_words(item)}"


def unknown_column(name: str) -> str:
    """What to say of a column that no rate has."""
    near = did_you_mean(name, COLUMNS)
    return f"there is no column {shown(name)}.{near}" + (
        "" if near else f" Columns are {', '.join(COLUMNS)}."
    )
