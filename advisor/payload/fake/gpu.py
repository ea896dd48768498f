"""The GPU that the script believes it has."""

from __future__ import annotations

from dataclasses import dataclass

from ..protocol import Gpu


@dataclass(frozen=True)
class PretendedGpu:
    """Facts that ``torch.cuda`` reports."""

    name: str
    major: int
    minor: int
    num_sms: int
    memory_bytes: int

    @classmethod
    def from_job(cls, facts: Gpu) -> PretendedGpu:
        """Read the facts of a job file."""
        major, minor = facts["compute_capability"].split(".")
        return cls(
            name=facts["name"],
            major=int(major),
            minor=int(minor),
            num_sms=facts["num_sms"],
            memory_bytes=facts["memory_bytes"],
        )
