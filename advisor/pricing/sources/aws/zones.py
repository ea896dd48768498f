"""Zone names, which differ by account, to zone IDs, which do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from advisor.pricing.sources.aws.calls import items_of
from advisor.pricing.sources.aws.reply_types import AvailabilityZone

if TYPE_CHECKING:
    from botocore.client import BaseClient


def zone_ids(ec2: BaseClient) -> Mapping[str, str]:
    """IDs by name of a region's availability zones; local and wavelength zones are none of them.

    Raises:
        CloudError: the call failed.
    """
    rows: list[AvailabilityZone] = items_of(ec2, "ec2:DescribeAvailabilityZones", "AvailabilityZones")
    return {
        row["ZoneName"]: row["ZoneId"]
        for row in rows
        if row.get("ZoneType", "availability-zone") == "availability-zone"
    }
