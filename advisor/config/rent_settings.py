"""Settings of what is rented: clouds, contracts, quotas, rates, spot machines and prices."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    model_validator,
)

from advisor.config.section import ProjectMay, Section
from advisor.config.setting_kinds import (
    Count,
    Discount,
    Duration,
    Gigabytes,
    Planned,
    PositiveDuration,
    PositivePlanned,
    UserPath,
    check_wait,
)
from advisor.core.limits import MAX_GBIT_PER_S, MAX_USD, MIN_GBIT_PER_S
from advisor.core.values import Market


class CloudSettings(Section):
    """Which offers of the clouds count."""

    providers: Annotated[tuple[str, ...], ProjectMay.NARROW] = Field(
        ("*",),
        description="clouds to look at; * is all with a price; others by name, such as [aws, gcp, lambda]",
    )
    regions: Annotated[tuple[str, ...], ProjectMay.NARROW] = Field(
        ("*",), description="regions, with wildcards"
    )
    markets: Annotated[tuple[Market, ...], ProjectMay.NARROW] = Field(
        (Market.ON_DEMAND, Market.SPOT), description="terms of rent"
    )
    opt_in_regions: Annotated[tuple[str, ...], ProjectMay.NOTHING] = Field(
        (), description="regions your account has enabled, with wildcards, of those closed to new accounts"
    )
    max_gpus: Annotated[Count, ProjectMay.LOWER] = Field(8, description="GPUs of one machine at most")
    max_nodes: Annotated[Count, ProjectMay.LOWER] = Field(
        1, description="machines that train one job together at most"
    )
    startup: Annotated[Planned, ProjectMay.ANYTHING] = Field(
        "5m", description="boot and installation, billed"
    )  # type: ignore[assignment]
    boot_disk_gb: Annotated[Gigabytes, ProjectMay.ANYTHING] = Field(
        100, description="disk of the machine; a GB is 2^30 bytes, as clouds bill and du -h counts"
    )
    dataset_gb: Annotated[Gigabytes, ProjectMay.ANYTHING] = Field(
        0, description="data set, copied at the start to a disk that is paid like the boot disk"
    )
    data: Annotated[Annotated[str, Field(min_length=1)] | None, ProjectMay.ANYTHING] = Field(
        None, description="where it lies: s3://BUCKET@REGION, gs://BUCKET@REGION, a region, or local"
    )
    result_gb: Annotated[Gigabytes, ProjectMay.ANYTHING] = Field(
        0, description="what is brought home over the internet at the end"
    )
    download_gbit_per_s: Annotated[
        float, Field(ge=MIN_GBIT_PER_S, le=MAX_GBIT_PER_S, allow_inf_nan=False), ProjectMay.ANYTHING
    ] = Field(1, description="how fast the data set arrives; that time is billed, too")
    wait_p50: Annotated[Planned | None, ProjectMay.NOTHING] = Field(
        None, description="median time until a cloud machine is yours; null: by its class, from traces"
    )
    wait_p90: Annotated[Planned | None, ProjectMay.NOTHING] = Field(
        None, description="time that 9 of 10 requests stay under"
    )

    @model_validator(mode="after")
    def _whole_wait(self) -> Self:
        check_wait(self.wait_p50, self.wait_p90)
        return self


class ContractSettings(Section):
    """A discount that a cloud grants, or a commitment; the first entry that matches a machine counts."""

    provider: str = Field(min_length=1, description="cloud that grants it")
    instance_types: tuple[str, ...] = Field(("*",), description="machines, with wildcards")
    regions: tuple[str, ...] = Field(("*",), description="regions, with wildcards")
    markets: tuple[Market, ...] = Field(
        (Market.ON_DEMAND,), description="terms of rent; spot counts only if it is named"
    )
    discount: Discount = Field(0, description="negotiated, off the list price: 0.1 is 10 %")
    commitment_discount: Discount = Field(
        0, description="of a savings plan or committed use, off the contracted price"
    )
    coverage: Annotated[float, Field(ge=0, le=1)] = Field(
        1, description="share of the use that the commitment covers"
    )
    until: date | None = Field(None, description="last day it holds, such as 2027-06-30; null: no end")


class QuotaSettings(Section):
    """What an account may run at once: `advisor prices capacity` shows those of AWS."""

    provider: str = Field(min_length=1, description="cloud that sets it")
    instance_types: tuple[str, ...] = Field(("*",), description="machines, with wildcards")
    regions: tuple[str, ...] = Field(("*",), description="regions, with wildcards")
    markets: tuple[Market, ...] = Field((Market.ON_DEMAND, Market.SPOT), description="terms of rent")
    vcpus: Annotated[int, Field(ge=0, le=10**9)] = Field(
        description="of all such machines at once; 0 lets none start"
    )


class RateSettings(Section):
    """What a provider asks for disks and for data that leaves; goes before the rates that ship."""

    provider: str = Field(min_length=1, description="who asks for it")
    region: str = Field("*", min_length=1, description="where, with wildcards")
    kind: Literal["block-storage", "egress-internet", "egress-region"] = Field(
        description="disks by the GB and month, or data by the GB: to the internet, to another region"
    )
    to_region: str = Field("*", min_length=1, description="where data goes, for egress-region")
    usd: Annotated[float, Field(ge=0, le=MAX_USD, allow_inf_nan=False)] = Field(
        description="of one GB; 0 is free"
    )


class SpotSettings(Section):
    """What to assume of preemptible machines."""

    preemptions_per_h: Annotated[Annotated[float, Field(ge=0, le=60)] | None, ProjectMay.NOTHING] = Field(
        None,
        description="how often a machine is taken away per running hour; null: by its class, from traces",
    )
    checkpoint_interval: Annotated[PositivePlanned | None, ProjectMay.ANYTHING] = Field(
        "30m",  # type: ignore[assignment]
        description="time between checkpoints; null if the script saves none",
    )
    checkpoint: Annotated[Planned, ProjectMay.ANYTHING] = Field(
        "1m", description="time to save one checkpoint"
    )  # type: ignore[assignment]
    restart: Annotated[Planned, ProjectMay.ANYTHING] = Field(
        "6m", description="time to boot and resume, billed"
    )  # type: ignore[assignment]
    reacquire: Annotated[Planned | None, ProjectMay.NOTHING] = Field(
        None,
        description="time until a machine is free again, not billed; null: by its class, from traces",
    )
    history: Annotated[UserPath | None, ProjectMay.NOTHING] = Field(
        None, description="a log of spot machines, or what advisor spot fit wrote, that corrects the traces"
    )


class PriceSettings(Section):
    """Where prices come from, and how old they may be."""

    max_age: Annotated[Duration | None, ProjectMay.LOWER] = Field(
        None, description="refuse prices older than this; null warns instead"
    )
    refresh_after: Annotated[PositiveDuration, ProjectMay.NOTHING] = Field(
        "1d",  # type: ignore[assignment]
        description="recommend pulls live prices anew when they are older than this",
    )
    refresh_within: Annotated[PositiveDuration, Field(le=300), ProjectMay.LOWER] = Field(
        "1m",  # type: ignore[assignment]
        description="who has not answered a refresh after this long is given up, 5m at most",
    )
    offline: Annotated[bool, ProjectMay.SWITCH_ON] = Field(False, description="never touch the network")
    sources: Annotated[tuple[str, ...] | None, ProjectMay.NOTHING] = Field(
        None,
        description="in order of trust; null: own rates, accounts, plug-ins, AWS's files, gpuhunt, snapshot",
    )
    options: Annotated[Mapping[str, Mapping[str, object]], ProjectMay.NOTHING] = Field(
        {}, description="options of a source by its name, such as custom: {files: [...]}"
    )
