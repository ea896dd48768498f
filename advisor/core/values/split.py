"""How a script is supposed to divide its model among GPUs, other than by copies of it."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.values.layout import Layout
from advisor.core.values.memory import Sharding


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A model divided among GPUs. By default each GPU has all of it.

    Ranks are ordered as Megatron-LM orders them: the parts of a layer are neighbours in a node, then come
    copies, then stages (Narayanan et al., SC 2021).

    Attributes:
        sharding: what the copies of a part keep once among them.
        tensor: GPUs of a node among which each layer is divided.
        pipeline: stages of layers, one after the other.
        micro_batches: passes of an iteration; None for as many as let a pipeline be fastest.
    """

    sharding: Sharding = Sharding.NONE
    tensor: int = 1
    pipeline: int = 1
    micro_batches: int | None = None

    @property
    def gpus_per_copy(self) -> int:
        """GPUs that hold one copy of the model, its shards aside.

        >>> Split(tensor=8, pipeline=4).gpus_per_copy
        32
        """
        return self.tensor * self.pipeline

    @property
    def divides_layers(self) -> bool:
        """Whether a GPU runs a part of the model, rather than all of it."""
        return self.gpus_per_copy > 1

    @property
    def is_none(self) -> bool:
        """Whether the script runs as it is."""
        return self.sharding is Sharding.NONE and not self.divides_layers

    @property
    def name(self) -> str:
        """As somebody would ask for it.

        >>> Split(tensor=8, sharding=Sharding.ZERO_1).name
        'zero-1+tensor-8'
        """
        parts = {"tensor": self.tensor, "pipeline": self.pipeline}
        names = [f"{name}-{number}" for name, number in parts.items() if number > 1]
        return "+".join([*([] if self.sharding is Sharding.NONE else [self.sharding]), *names])

    def suits(self, layout: Layout) -> bool:
        """Whether so many GPUs can hold whole copies, with the parts of a layer in one node.

        >>> eight = Layout(gpus_per_node=8)
        >>> Split(tensor=8).suits(eight), Split(tensor=16).suits(eight), Split(pipeline=3).suits(eight)
        (True, False, False)
        """
        if layout.num_gpus % self.gpus_per_copy or layout.gpus_per_node % self.tensor:
            return False
        copies = layout.num_gpus // self.gpus_per_copy
        return copies % min(copies, layout.gpus_per_node // self.tensor) == 0

    def copies(self, layout: Layout) -> Layout:
        """The GPUs that hold the same part of a model, for a layout that suits.

        >>> Split(tensor=4).copies(Layout(gpus_per_node=8, num_nodes=4)).of("A100")
        '4 x 2 x A100'
        """
        if not self.divides_layers:
            return layout
        copies = layout.num_gpus // self.gpus_per_copy
        within = min(copies, layout.gpus_per_node // self.tensor)
        return Layout(gpus_per_node=within, num_nodes=copies // within, fabric=layout.fabric)


WHOLE = Split()
"""Each GPU has all of the model."""
