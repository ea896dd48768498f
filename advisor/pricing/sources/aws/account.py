"""What AWS says of the account: spot placement scores, quotas and the regions of its buckets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from advisor.core.errors import CloudError
from advisor.core.values import Market
from advisor.pricing.providers import shipped_quotas
from advisor.pricing.sources.aws import aws_calls

if TYPE_CHECKING:
    from botocore.client import BaseClient

BUCKET_ACTION = "s3:GetBucketLocation"
# Names from before all regions had one: https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLocation.html
_OLD_NAMES = {None: aws_calls.HOME_REGION, "": aws_calls.HOME_REGION, "EU": "eu-west-1"}


def bucket_region(bucket: str, options: aws_calls.AwsOptions | None = None) -> str:
    """The region of a bucket, as its owner's credentials may ask.

    Raises CloudError: no permission for `BUCKET_ACTION`, no such bucket, or the call failed.
    """
    client = aws_calls.Clients(options or aws_calls.AwsOptions()).client("s3", aws_calls.HOME_REGION)

    def ask() -> str:
        reply = aws_calls.in_time(client, lambda: client.get_bucket_location(Bucket=bucket))
        region = reply["LocationConstraint"]
        return _OLD_NAMES.get(region, str(region))

    return aws_calls.explaining(BUCKET_ACTION, ask)


QUOTA_ACTION = "servicequotas:GetServiceQuota"
SCORE_ACTION = "ec2:GetSpotPlacementScores"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementScore:
    """How likely a spot request succeeds at this moment, by AWS's own judgement."""

    region: str
    zone: str
    """Zone ID."""
    score: int
    """1 (unlikely) to 10 (highly likely); no promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VcpuQuota:
    """How many vCPUs of some families may run at once in a region."""

    region: str
    market: Market
    families: tuple[str, ...]
    """Such as ``("g", "vt")``: letters at the beginning of the instance type."""
    code: str
    num_vcpus: int
    """0 lets none start."""


def placement_scores(
    instance_types: Sequence[str],
    *,
    num_instances: int,
    regions: Sequence[str],
    options: aws_calls.AwsOptions | None = None,
) -> tuple[PlacementScore, ...]:
    """Scores by zone for a request of so many machines of any of the types, best first.

    Raises CloudError: no permission for `SCORE_ACTION`, or the call failed.
    """
    client = aws_calls.Clients(options or aws_calls.AwsOptions()).client("ec2", aws_calls.HOME_REGION)
    rows: list[aws_calls.Row] = aws_calls.items_of(
        client,
        SCORE_ACTION,
        "SpotPlacementScores",
        InstanceTypes=list(instance_types),
        TargetCapacity=num_instances,
        SingleAvailabilityZone=True,
        RegionNames=list(regions),
    )
    scores = (
        PlacementScore(region=row["Region"], zone=row["AvailabilityZoneId"], score=int(row["Score"]))
        for row in rows
    )
    return tuple(sorted(scores, key=lambda score: (-score.score, score.region, score.zone)))


def vcpu_quotas(region: str, *, options: aws_calls.AwsOptions | None = None) -> tuple[VcpuQuota, ...]:
    """Quotas for GPU machines that the region knows. Raises CloudError: `QUOTA_ACTION` failed."""
    client = aws_calls.Clients(options or aws_calls.AwsOptions()).client("service-quotas", region)
    quotas = []
    # Codes are the same in all accounts and regions.
    for row in (quota for quota in shipped_quotas() if quota.provider == "aws"):
        value = aws_calls.explaining(QUOTA_ACTION, partial(_quota, client, row.quota))
        if value is not None:
            # "p4" of "p4d.*": its letters and its generation.
            families = dict.fromkeys(re.sub(r"^([a-z]+\d*).*", r"\1", name) for name in row.instance_types)
            told = VcpuQuota(
                region=region, market=row.market, families=tuple(families), code=row.quota, num_vcpus=value
            )
            quotas.append(told)
    return tuple(sorted(quotas, key=lambda quota: (quota.market, quota.families, quota.code)))


def _quota(client: BaseClient, code: str) -> int | None:
    """Number of vCPUs; None where the region has no such quota."""
    try:
        reply = aws_calls.in_time(client, lambda: client.get_service_quota(ServiceCode="ec2", QuotaCode=code))
    except client.exceptions.NoSuchResourceException:
        return None
    value = reply["Quota"]["Value"]
    if value < 0:
        raise CloudError(f"AWS says that the quota {code} is {value:g}: try again later.")
    return int(value)
