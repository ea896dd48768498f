"""Forward passes before training that only repeat those before them: their result without their operators.

A script may evaluate its model a thousand times before the first step, and is not to be stopped there: it may
use what it computes. On the pretended GPU a result has a form and no values, so that one more pass like the
last ten gives what they gave. Passes are alike if module, inputs and result have the same form, if they run
as many operators, and if nothing but the result is left of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Sized
from typing import NamedTuple

import torch
from torch.utils import _pytree

from ..composite import Args, Kwargs
from ..recording.iteration import Iterations
from ..replacing import Original, replace, wrap
from ..session import Session
from . import values

LEAST_ALIKE = 10
"""Passes after which one more tells nothing new."""
_PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device)


class _TensorForm(NamedTuple):
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class _Pass(NamedTuple):
    """What a pass gives."""

    module: weakref.ref[torch.nn.Module]
    """Whose pass it is."""
    leaves: tuple[object, ...]
    """Forms of tensors, and plain values."""
    spec: _pytree.TreeSpec
    num_calls: int
    num_alike: int = 1
    """Passes so far that were the same."""

    def result(self) -> object:
        made = [
            torch.empty_strided(leaf.shape, leaf.stride, dtype=leaf.dtype, device="cuda")
            if isinstance(leaf, _TensorForm)
            else leaf
            for leaf in self.leaves
        ]
        return _pytree.tree_unflatten(made, self.spec)


class RepeatedPasses:
    """Runs top-level modules without gradients, or repeats what they gave."""

    def __init__(self, session: Session, iterations: Iterations) -> None:
        self._session, self._iterations = session, iterations
        self._known: dict[object, _Pass] = {}

    def begin(self) -> None:
        """Look at passes from now on, until training begins."""
        self._original: Original = torch.nn.Module._call_impl
        wrap(torch.nn.Module, "_call_impl", self._run)

    def _run(self, original: Original, module: torch.nn.Module, *args: object, **kwargs: object) -> object:
        if torch.is_grad_enabled() or module.training or self._iterations.depth:
            return original(module, *args, **kwargs)
        recorder, memory = self._session.recorder, self._session.memory
        if recorder.num_backward_passes or self._iterations.num_spans:
            replace(torch.nn.Module, _call_impl=self._original)  # what passes run now belongs to iterations
            return original(module, *args, **kwargs)
        form = self._form(module, args, kwargs)
        known = None if form is None else self._known.get(form)
        if known is not None and known.num_alike >= LEAST_ALIKE and known.module() is module:
            self._session.stopper.check()
            recorder.next_call += known.num_calls
            self._iterations.passed(module, known.num_calls)
            return known.result()
        if form is None:
            return original(module, *args, **kwargs)
        state, first_call = _state(module), recorder.next_call
        num_storages, num_bytes = memory.num_storages, memory.current_bytes
        result = original(module, *args, **kwargs)
        made = self._made(result, num_storages, memory.current_bytes - num_bytes)
        if made is None or state != _state(module):
            self._known.pop(form, None)
            return result
        found = _Pass(weakref.ref(module), *made, recorder.next_call - first_call)
        is_alike = known is not None and known[:4] == found[:4]
        num_alike = known.num_alike + 1 if known is not None and is_alike else 1
        self._known[form] = found._replace(num_alike=num_alike)
        return result

    def _form(self, module: torch.nn.Module, args: Args, kwargs: Kwargs) -> object:
        """All that a result may follow from; None if that is more than forms."""
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        forms = tuple(_form_of(leaf) for leaf in leaves)
        if module._forward_hooks or module._forward_pre_hooks or None in forms:
            return None
        autocast = torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda")
        return id(module), forms, str(spec), autocast, torch.is_inference_mode_enabled()

    def _made(
        self, result: object, num_storages: int, num_bytes: int
    ) -> tuple[tuple[object, ...], _pytree.TreeSpec] | None:
        """Leaves and form of a result, if its tensors are new, without values, and all that is left."""
        memory = self._session.memory
        leaves, spec = _pytree.tree_flatten(result)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        made = {memory.serial(tensor): tensor for tensor in tensors if self._session.is_fake(tensor)}
        is_plain = all(isinstance(leaf, (torch.Tensor, *_PLAIN)) for leaf in leaves)
        is_new = all(serial is not None and serial >= num_storages for serial in made)
        is_unknown = all(self._session.is_fake(one) and values.of(one) is None for one in tensors)
        is_all = num_bytes == sum(map(memory.size, made.values()))
        if not (made and is_plain and is_new and is_unknown and is_all):
            return None
        return tuple(_tensor_form(one) if isinstance(one, torch.Tensor) else one for one in leaves), spec


def _state(module: torch.nn.Module) -> list[object]:
    """Numbers and lengths that a pass would change if it counted, or kept something."""
    own = (value for part in module.modules() for value in vars(part).values())
    own = (0 if isinstance(value, torch.Tensor) else value for value in own)
    return [
        len(value) if isinstance(value, Sized) else value if isinstance(value, _PLAIN) else 0 for value in own
    ]


def _form_of(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return (*_tensor_form(value), value.device) if value.layout is torch.strided else None
    return (type(value), value) if isinstance(value, _PLAIN) else None


def _tensor_form(tensor: torch.Tensor) -> _TensorForm:
    return _TensorForm(tuple(tensor.shape), tensor.stride(), tensor.dtype)
