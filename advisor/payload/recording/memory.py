"""Live device memory, counted as the caching allocator would: storages rounded up to 512 bytes."""

from __future__ import annotations

import functools
import weakref

import torch

from ..protocol import Memory

_BLOCK_BYTES = 512


class MemoryTracker:
    """Counts the storages of fake tensors from their birth to their end.

    Each storage gets a serial number. A span (one iteration) keeps the storages alive at its start and
    what happened since, so that the moment of the peak can be looked at afterwards, when optimizers
    have shown which storages hold parameters, gradients and state.
    """

    def __init__(self) -> None:
        self.current_bytes = 0
        self.peak_bytes = 0
        """The most that were ever alive at once."""
        self._live: dict[int, tuple[int, int, weakref.ref[torch.UntypedStorage]]] = {}
        self.num_storages = 0
        """How many were counted, and the serial number of the next."""
        self.kinds: dict[int, str] = {}
        """What storages hold, by their serial numbers."""
        self.shapes_of_models: set[torch.Size] = set()
        """Of parameters and buffers; those of averages of them are the same."""
        self._span_start: dict[int, int] = {}
        self._span_events: list[tuple[int, int]] = []
        self._of_steps: list[range] = []
        self._step_began = 0
        self._step_depth = 0
        self._stepped: dict[int, int] = {}

    def track(self, tensor: torch.Tensor) -> None:
        """Count the tensor's storage if it is new."""
        storage = tensor.untyped_storage()
        address = storage._cdata
        if address in self._live:
            return
        blocks = -(-storage.nbytes() // _BLOCK_BYTES)
        serial, num_bytes = self.num_storages, blocks * _BLOCK_BYTES
        self.num_storages += 1
        reference = weakref.ref(storage, functools.partial(self._free, address))
        self._live[address] = (serial, num_bytes, reference)
        self._change(serial, num_bytes)

    def _free(self, address: int, reference: weakref.ref[torch.UntypedStorage]) -> None:  # noqa: ARG002
        serial, num_bytes, _ = self._live.pop(address)
        self._change(serial, -num_bytes)

    def _change(self, serial: int, num_bytes: int) -> None:
        self.current_bytes += num_bytes
        self.peak_bytes = max(self.peak_bytes, self.current_bytes)
        self._span_events.append((serial, num_bytes))

    def resize(self, storage: torch.UntypedStorage) -> None:
        """Count a storage that changed its size in place as one that ended and one that began."""
        entry = self._live.get(storage._cdata)
        if entry is None:
            return
        serial, num_bytes, reference = entry
        self._change(serial, -num_bytes)
        blocks = -(-storage.nbytes() // _BLOCK_BYTES)
        self._live[storage._cdata] = (self.num_storages, blocks * _BLOCK_BYTES, reference)
        if serial in self.kinds:
            self.kinds[self.num_storages] = self.kinds[serial]
        self._change(self.num_storages, blocks * _BLOCK_BYTES)
        self.num_storages += 1

    def tag(self, tensor: torch.Tensor, kind: str) -> None:
        """Say what the tensor's storage holds.

        It is ``parameter``, ``gradient``, ``optimizer``, or ``kept``: no batch changes that. A storage
        made unwatched is counted from now on.
        """
        # A DTensor's own storage is empty; its shard holds the data.
        tensor = getattr(tensor, "_local_tensor", tensor)
        self.track(tensor)
        self.kinds[self._live[tensor.untyped_storage()._cdata][0]] = kind
        if kind == "parameter":
            self.shapes_of_models.add(tensor.shape)

    def kind(self, tensor: torch.Tensor) -> str | None:
        """What the tensor's storage was said to hold, None if nothing was said."""
        serial = self.serial(tensor)
        return None if serial is None else self.kinds.get(serial)

    def serial(self, tensor: torch.Tensor) -> int | None:
        """The number of the tensor's storage, None of one that is not counted."""
        if tensor.layout is not torch.strided:
            return None
        tensor = getattr(tensor, "_local_tensor", tensor)
        entry = self._live.get(tensor.untyped_storage()._cdata)
        return None if entry is None else entry[0]

    def outlives_steps(self, serial: int | None) -> bool:
        """Whether the storage is older than the current span."""
        return serial in self._span_start

    def size(self, tensor: torch.Tensor) -> int:
        """Bytes of the tensor's storage, as they are counted; 0 of one that is not."""
        entry = self._live.get(tensor.untyped_storage()._cdata)
        return 0 if entry is None else entry[1]

    def start_span(self) -> None:
        self._span_start = {serial: size for serial, size, _ in self._alive()}
        self._span_events = []
        self._of_steps = []
        self._step_began = 0
        self._stepped = {}
        live = self._span_start
        self.kinds = {serial: kind for serial, kind in self.kinds.items() if serial in live}

    def begin_step(self) -> None:
        """An optimizer steps, perhaps inside another; its own tensors do not grow with the batch."""
        self._step_depth += 1
        if self._step_depth == 1:
            self._step_began = len(self._span_events)

    def end_step(self) -> None:
        self._step_depth -= 1
        self._of_steps.append(range(self._step_began, len(self._span_events)))
        self._stepped = self._most_gradients()

    def usage(self) -> Memory:
        """Bytes by kind in the current span.

        Parameters, gradients and optimizer state are totals; activations are what else is alive at
        the peak, so the four exceed the peak where gradients are not all alive by then. The same again
        where only forward and backward passes are looked at, and the most that activations take in them.
        """
        of_steps = frozenset(index for step in self._of_steps for index in step)
        events, kinds = list(self._span_events), self.kinds
        at_peak = self._alive_at_peak(events)
        in_passes = self._alive_at_peak(events, of_steps)
        unnamed = [(serial, 0 if serial in kinds else size) for serial, size in events]
        most = self._alive_at_peak(unnamed, of_steps)
        ever = dict(self._span_start)
        ever.update((serial, size) for serial, size in self._span_events if size > 0)
        # Where the script's step ends with gradients set to None, its optimizer saw them.
        gradients = self._most_gradients()
        total = sum(at_peak.values())
        sums = {"parameter": 0, "gradient": 0, "optimizer": 0}
        for serial, kind in self.kinds.items():
            # Gradients of the step before may also have been alive during this span.
            if kind in sums and serial in ever and (serial in gradients or kind != "gradient"):
                sums[kind] += ever[serial]
        return {
            "parameter_bytes": sums["parameter"], "gradient_bytes": sums["gradient"],
            "optimizer_bytes": sums["optimizer"], "activation_bytes": self._unnamed_bytes(at_peak),
            "peak_bytes": total, "pass_activation_bytes": self._unnamed_bytes(in_passes),
            "pass_peak_bytes": sum(in_passes.values()), "most_activation_bytes": self._unnamed_bytes(most),
        }  # fmt: skip

    def _most_gradients(self) -> dict[int, int]:
        """Bytes of the gradients that are there now, or were when a step ended, whichever are more."""
        now = {n: size for n, size, _ in self._alive() if self.kinds.get(n) == "gradient"}
        return max(self._stepped, now, key=lambda sizes: sum(sizes.values()))

    def _alive(self) -> list[tuple[int, int, weakref.ref[torch.UntypedStorage]]]:
        # A copy: a storage may end at any time, in another thread or by the garbage collector.
        return list(self._live.values())

    def _unnamed_bytes(self, alive: dict[int, int]) -> int:
        return sum(size for serial, size in alive.items() if serial not in self.kinds)

    def _alive_at_peak(
        self, events: list[tuple[int, int]], left_out: frozenset[int] = frozenset()
    ) -> dict[int, int]:
        total = best = sum(self._span_start.values())
        position = 0
        for index, (_, size) in enumerate(events, start=1):
            total += size
            if total > best and index - 1 not in left_out:
                best, position = total, index
        alive = dict(self._span_start)
        for serial, size in events[:position]:
            if size > 0:
                alive[serial] = size
            else:
                alive.pop(serial, None)
        return alive
