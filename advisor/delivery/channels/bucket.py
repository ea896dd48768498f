"""What buckets have in common: an object is written on the condition that there is none."""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.config.delivery_settings import GcsChannel, S3Channel
from advisor.delivery.channel import Parcel, PermanentError
from advisor.delivery.channels.local import file_of, text_of
from advisor.delivery.secret_values import Secrets

KEY_NAME = "advisor-delivery-key"
"""Metadata of an object: whose it is."""
IS_THERE = 412
"""The status that says that there is an object already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A place in a bucket."""

    settings: S3Channel | GcsChannel
    secrets: Secrets = field(repr=False)
    drops_repeats: bool = field(default=True, init=False)

    @property
    def target(self) -> str:
        """Bucket and name, with what it has in braces."""
        return self.settings.url

    def preview(self, parcel: Parcel) -> str:
        """Where it is written, and the content."""
        return f"{parcel.fill(self.target)}\n\n{text_of(file_of(parcel, self.target))}"

    def check_ours(self, key: str | None, parcel: Parcel) -> None:
        """Refuse to take another answer's object for ours.

        Args:
            key: in the metadata of the object that is there.
            parcel: what was to be written.

        Raises:
            PermanentError: it is another's.
        """
        if key != parcel.key:
            raise PermanentError(
                f"another object is at {parcel.fill(self.target)}, and nothing is overwritten:"
                " put {key} into the name"
            )
