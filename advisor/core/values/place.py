"""Where a job's data set lies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlace:
    """Where a data set lies: in a region of a cloud, or with its owner.

    Attributes:
        name: as it was given: ``s3://bucket``, ``us-east-1``, ``local``.
        provider: the cloud that bills what leaves; None where the data lies with its owner.
        region: None where nobody knows, or where there is none.
    """

    name: str
    provider: str | None = None
    region: str | None = None

    def is_at(self, provider: str, region: str | None) -> bool:
        """Whether a machine there reads the data without moving it."""
        return self.region is not None and (self.provider, self.region) == (provider, region)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A data set: how large it is, and where it lies if anybody said."""

    gib: float
    place: DataPlace | None = None
