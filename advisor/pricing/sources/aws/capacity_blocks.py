"""Capacity blocks of a region: machines reserved for whole days from a set time, paid ahead."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping

from advisor.core.units import HOUR_S
from advisor.core.values import Market, Offer
from advisor.pricing.sources.aws.calls import items_of
from advisor.pricing.sources.aws.reply_types import CapacityBlock, InstanceTypeRow
from advisor.pricing.sources.aws.survey import Region, Survey
from advisor.pricing.sources.aws.wording import listed
from advisor.pricing.sources.aws.zones import zone_ids
from advisor.pricing.sources.protocol import Part

ACTION = "ec2:DescribeCapacityBlockOfferings"
BLOCK_H = 24
"""The shortest block that AWS sells (EC2 user guide, Capacity Blocks for ML)."""


def capacity_block_part(region: Region, survey: Survey, scope: str) -> Part:
    """The cheapest block of a day for one machine, by type and zone.

    Its price per hour is the fee paid ahead over the block's hours; the least time billed is the block.

    Raises:
        CloudError: a call failed.
    """
    zones = zone_ids(region.ec2)
    cheapest: dict[tuple[str, str | None], Offer] = {}
    unread = set()
    for row in _blocks(region, survey):
        offer = _offer(row, region, survey, zones)
        if offer is None:
            unread.add(row["InstanceType"])
        elif offer.usd_per_h <= cheapest.get((offer.instance_type, offer.zone), offer).usd_per_h:
            cheapest[offer.instance_type, offer.zone] = offer
    gaps = [f"blocks without a known zone or a fee above 0 in US dollars: {listed(unread)}"] if unread else []
    return Part(
        scope=scope,
        offers=tuple(filter(region.query.matches, cheapest.values())),
        gaps=(*survey.gaps, *gaps),
        troubles=survey.troubles,
    )


def _blocks(region: Region, survey: Survey) -> Iterator[CapacityBlock]:
    """Blocks of every type that is sold so, types in alphabetical order."""
    for name in _types_sold_in_blocks(region, survey):
        blocks: list[CapacityBlock] = items_of(
            region.ec2,
            ACTION,
            "CapacityBlockOfferings",
            InstanceType=name,
            InstanceCount=1,
            CapacityDurationHours=BLOCK_H,
        )
        yield from blocks


def _types_sold_in_blocks(region: Region, survey: Survey) -> list[str]:
    filters = [
        {"Name": "supported-usage-class", "Values": ["capacity-block"]},
        {"Name": "instance-type", "Values": sorted(survey.rentable)},
    ]
    rows: list[InstanceTypeRow] = items_of(
        region.ec2, "ec2:DescribeInstanceTypes", "InstanceTypes", Filters=filters
    )
    return sorted(row["InstanceType"] for row in rows if row["InstanceType"] in survey.rentable)


def _offer(row: CapacityBlock, region: Region, survey: Survey, zones: Mapping[str, str]) -> Offer | None:
    fee_usd, hours = float(row["UpfrontFee"]), int(row["CapacityBlockDurationHours"])
    zone = zones.get(row["AvailabilityZone"])
    if not 0 < fee_usd < math.inf or hours < 1 or row["CurrencyCode"] != "USD" or zone is None:
        return None
    offer = survey.rentable[row["InstanceType"]].offer(
        region=region.name,
        market=Market.CAPACITY_BLOCK,
        usd_per_h=fee_usd / hours,
        retrieved_at=region.clock(),
        source=f"AWS capacity block of {hours} h from {row['StartDate']:%Y-%m-%d %H:%M} UTC",
        zone=zone,
    )
    block_s = hours * HOUR_S
    return dataclasses.replace(offer, minimum_billed_s=block_s, billed_step_s=block_s)
