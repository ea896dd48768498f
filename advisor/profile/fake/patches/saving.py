"""``torch.save`` writes nothing.

A profiled script must not overwrite its owner's checkpoints with made-up weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from advisor.profile.fake.session import Session


def install(session: Session) -> None:
    """Replace ``torch.save``."""

    def save(obj: Any, f: Any, *_: Any, **__: Any) -> None:  # noqa: ARG001
        session.warn("torch.save wrote nothing while profiling")

    torch.save = torch.serialization.save = save
