"""In which region a bucket of S3 lies."""

from __future__ import annotations

from advisor.pricing.sources.aws.calls import HOME_REGION, Clients, explaining, in_time
from advisor.pricing.sources.aws.options import AwsOptions

ACTION = "s3:GetBucketLocation"
# Names from before all regions had one: https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLocation.html
_OLD_NAMES = {None: HOME_REGION, "": HOME_REGION, "EU": "eu-west-1"}


def bucket_region(bucket: str, options: AwsOptions | None = None) -> str:
    """The region of a bucket, as its owner's credentials may ask.

    Raises:
        CloudError: no permission for ``s3:GetBucketLocation``, no such bucket, or the call failed.
    """
    client = Clients(options or AwsOptions()).client("s3", HOME_REGION)

    def ask() -> str:
        reply = in_time(client, lambda: client.get_bucket_location(Bucket=bucket))
        region = reply["LocationConstraint"]
        return _OLD_NAMES.get(region, str(region))

    return explaining(ACTION, ask)
