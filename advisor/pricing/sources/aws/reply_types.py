"""What we read of AWS's replies, as its API reference has them; a garbled reply may hold anything else."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict


class AvailabilityZone(TypedDict):
    """Of ``ec2:DescribeAvailabilityZones``."""

    ZoneName: str
    ZoneId: str
    ZoneType: NotRequired[str]


class RegionRow(TypedDict):
    """Of ``ec2:DescribeRegions``."""

    RegionName: str


class TypeOffering(TypedDict):
    """Of ``ec2:DescribeInstanceTypeOfferings``."""

    InstanceType: str


class SpotPrice(TypedDict):
    """Of ``ec2:DescribeSpotPriceHistory``."""

    AvailabilityZone: str
    InstanceType: str
    ProductDescription: str
    SpotPrice: str
    Timestamp: datetime


class CapacityBlock(TypedDict):
    """Of ``ec2:DescribeCapacityBlockOfferings``."""

    InstanceType: str
    AvailabilityZone: str
    UpfrontFee: str
    CurrencyCode: str
    CapacityBlockDurationHours: int
    StartDate: datetime


class PlacementScoreRow(TypedDict):
    """Of ``ec2:GetSpotPlacementScores``."""

    Region: str
    AvailabilityZoneId: str
    Score: int


class MiB(TypedDict):
    """An amount of memory."""

    SizeInMiB: int


class Gpu(TypedDict):
    """A kind of GPU of a machine."""

    Name: str
    Manufacturer: NotRequired[str]
    Count: NotRequired[int]
    GpuPartitionSize: NotRequired[float]
    MemoryInfo: MiB


class GpuInfo(TypedDict):
    """The GPUs of a machine."""

    Gpus: NotRequired[list[Gpu]]


class InstanceStorage(TypedDict):
    """The disks of a machine."""

    TotalSizeInGB: NotRequired[int]


class VCpus(TypedDict):
    """The cores of a machine."""

    DefaultVCpus: int


class Processor(TypedDict):
    """The CPU of a machine."""

    SupportedArchitectures: list[str]


class InstanceTypeRow(TypedDict):
    """Of ``ec2:DescribeInstanceTypes``."""

    InstanceType: str
    GpuInfo: NotRequired[GpuInfo]
    VCpuInfo: VCpus
    MemoryInfo: MiB
    InstanceStorageInfo: NotRequired[InstanceStorage]
    ProcessorInfo: Processor


class PriceDimension(TypedDict):
    """One price of a product."""

    unit: str
    pricePerUnit: dict[str, str]


class Term(TypedDict):
    """On what terms a product is sold, with its prices."""

    priceDimensions: dict[str, PriceDimension]


class Product(TypedDict):
    """Of ``pricing:GetProducts``, which writes each as a JSON text."""

    product: dict[str, dict[str, str]]
    terms: dict[str, dict[str, Term]]
