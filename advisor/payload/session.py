"""All parts of one profiling run; every patch gets it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TypeGuard, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .fake.collectives import Collectives
from .fake.fake_samples import SampleMaker
from .fake.gpu import PretendedGpu, PretendedWorld
from .fake.mode import HybridMode
from .fake.saved_files import SavedFiles
from .progress import Stopper
from .protocol import Fact, Notice, SampleField, Warned, notice
from .real_device import WatchingMode
from .recording.compiled_calls import Compiled
from .recording.loading import ScriptLoaders
from .recording.memory import MemoryTracker
from .recording.recorder import Recorder
from .script import is_library

# Which variables the script asks for and does not get: their names, since their values are not here.

_MOST = 20


class Variables:
    """Looks on while ``os.environ`` is read."""

    def __init__(self) -> None:
        self.asked: dict[str, None] = {}
        """Names that the script's own code asked for in vain, in order."""

    def watch(self, withheld: Iterable[str]) -> None:
        """From now on, for these names. Libraries ask for tokens of their own accord: they do not count."""
        names, asked = frozenset(withheld), self.asked
        kind: type = type(os.environ)

        class Watched(kind):  # type: ignore[misc]
            """``os.environ``, whose every way of reading begins here."""

            def __getitem__(self, name: str) -> str:
                try:
                    return str(super().__getitem__(name))
                except KeyError:
                    if name in names and len(asked) < _MOST and _is_the_scripts():
                        asked[name] = None
                    raise

        if names:
            os.environ.__class__ = Watched

    def warnings(self) -> list[Notice]:
        return [notice(Warned.VARIABLES_WITHHELD, names=list(self.asked))] if self.asked else []


def _is_the_scripts() -> bool:
    """Whether neither a library nor we called ``os.environ``."""
    frame = sys._getframe(2)
    # os.getenv and Mapping.get are on the way.
    while frame.f_back is not None and (
        frame.f_globals.get("__name__") in ("os", "collections.abc", "_collections_abc")
    ):
        frame = frame.f_back
    return not is_library(frame.f_code.co_filename)


class Session:
    """One run of the script."""

    def __init__(self, gpu: PretendedGpu, backend: str = "fake", world: PretendedWorld | None = None) -> None:
        self.gpu = gpu
        self.backend = backend
        """``fake``, ``cpu`` or ``cuda``."""
        self.device_type = "cpu" if backend == "cpu" else "cuda"
        """Where the operators that count run; ``cuda`` for the fake backend, too."""
        self.world = world or PretendedWorld()
        self.torch_version = str(torch.__version__)
        self.memory = MemoryTracker()
        self.recorder = Recorder(self.memory, self.device_type)
        self.compiled = Compiled(self.recorder)
        self.loading = ScriptLoaders(backend)
        self.recorder.is_evaluating = self.loading.evaluates
        self.collectives = Collectives()
        self.stopper = Stopper()
        self.mode: HybridMode | WatchingMode
        if backend == "fake":
            self.mode = HybridMode(self.recorder, self.memory, self.stopper, self.collectives)
        else:
            self.mode = WatchingMode(self.recorder, self.memory, self.stopper, self.device_type)
        self.amp_dtype: str | None = None
        """What autocast cast to in the current span, None if it did not."""
        self.autocast_dtype: str | None = None
        """What it casts to now, on a real device; it may have been entered spans ago."""
        self.single_kernels_library: torch.library.Library | None = None
        self.autocast_library: torch.library.Library | None = None
        self.torchvision_library: torch.library.Library | None = None
        self.fake_data: SampleMaker | None = None
        self.warnings: dict[str, Notice] = {}
        """What the user should know about this run, in order, each once."""
        self.refused: dict[str, None] = {}
        """What was not downloaded, in order."""
        self.variables = Variables()
        """Those that the script asked for and was not given."""
        self.num_processes = 0
        self.saved = SavedFiles()
        """Where the script's checkpoints go instead of their place."""
        self.has_sparse_gradients = False
        """A gradient on the GPU was a sparse tensor."""
        self.restores_to_gpu = True
        """Whether what was saved on the GPU is loaded to it; ``torch.load`` may say no."""

    @property
    def pretending(self) -> HybridMode:
        return cast("HybridMode", self.mode)

    @property
    def watching(self) -> WatchingMode:
        return cast("WatchingMode", self.mode)

    def use_fake_data(self, fields: list[SampleField], num_samples: int | None) -> None:
        """Feed samples of these fields; how long they take to make says nothing of the script's data."""
        self.loading.is_timed = False
        self.fake_data = SampleMaker(fields, num_samples, self.warn, self.loading.forget_lengths)

    def warn(self, code: Warned, **facts: Fact) -> None:
        self.warnings.setdefault(f"{code} {facts}", notice(code, **facts))

    def all_warnings(self) -> list[Notice]:
        """The warnings of patches, of the process group and of operators whose results are guessed."""
        unknown = [
            notice(Warned.OPERATOR_UNKNOWN, operator=name, error=error)
            for name, error in self.mode.unknown_operators.items()
        ]
        if self.mode.assumptions:
            unknown.append(notice(Warned.PROFILE_LACKS, what="values", names=list(self.mode.assumptions)))
        if self.fake_data is not None:
            unknown.append(self.fake_data.summary())
        return [*self.warnings.values(), *self.variables.warnings(), *self.world.warnings(), *unknown]

    @property
    def making_s(self) -> float | None:
        """Seconds in which the script made what it copied to the GPU in this span.

        None where it is not measured, where samples are made up, or where processes make them unseen.
        """
        is_seen = self.backend == "fake" and self.loading.is_timed and not self.num_processes
        return self.recorder.making.seconds() if is_seen else None

    @property
    def is_watched(self) -> bool:
        """Whether the run may be slowed: on a real GPU not before it was timed."""
        return self.backend != "cuda" or self.watching.marks_calls

    def is_fake(self, value: object) -> TypeGuard[FakeTensor]:
        """Whether the value is a tensor on the pretended GPU."""
        from torch._subclasses.fake_tensor import FakeTensor

        # torch.export makes fake tensors of its own, of CPU tensors too.
        return isinstance(value, FakeTensor) and value.fake_device.type == "cuda"
