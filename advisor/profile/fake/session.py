"""All parts of one profiling run; every patch gets it."""

from __future__ import annotations

from typing import Any

from .gpu import PretendedGpu
from .loading import Loading
from .memory import MemoryTracker
from .mode import HybridMode
from .recorder import Recorder
from .saved_files import SavedFiles
from .stop import Stopper


class Session:
    """One run of the script.

    Attributes:
        amp_dtype: what autocast cast to in the current span, None if it did not.
        warnings: what the user should know about this run, in order, each once.
        refused: what was not downloaded, in order.
        saved: where the script's checkpoints go instead of their place.
        restores_to_gpu: whether what was saved on the GPU is loaded to it; ``torch.load`` may say no.
    """

    def __init__(self, gpu: PretendedGpu) -> None:
        self.gpu = gpu
        self.recorder = Recorder()
        self.memory = MemoryTracker()
        self.loading = Loading()
        self.stopper = Stopper()
        self.mode = HybridMode(self.recorder, self.memory, self.stopper)
        self.amp_dtype: str | None = None
        self.autocast_library: Any = None
        self.warnings: dict[str, None] = {}
        self.refused: dict[str, None] = {}
        self.saved = SavedFiles()
        self.restores_to_gpu = True

    def warn(self, message: str) -> None:
        """Keep a warning for the trace."""
        self.warnings[message] = None

    def all_warnings(self) -> list[str]:
        """The warnings of patches and of operators without fake kernels."""
        unknown = [
            f"{name} has no shape rule for fake tensors ({error}); its result's shape comes from"
            " the CPU kernel on zeros"
            for name, error in self.mode.unknown_operators.items()
        ]
        return [*self.warnings, *unknown]

    def is_fake(self, value: Any) -> bool:
        """Whether the value is a tensor on the pretended GPU."""
        from torch._subclasses.fake_tensor import FakeTensor

        return isinstance(value, FakeTensor)
