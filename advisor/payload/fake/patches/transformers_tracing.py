"""transformers does not take the pretended GPU for the tracing of a graph.

It asks whether a mask is a FakeTensor, and if so does what suits ``torch.export``: masks are kept although
they hide nothing, and attention takes the kernel for arbitrary masks where a real run takes flash attention.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from ...importing import when_imported

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:  # noqa: ARG001
    """Replace the question in the versions that ask it."""
    when_imported("transformers.utils.import_utils", _never_tracing)


def _never_tracing(module: ModuleType) -> None:
    if hasattr(module, "is_fake_tensor"):
        module.__dict__["is_fake_tensor"] = lambda x: False  # noqa: ARG005
