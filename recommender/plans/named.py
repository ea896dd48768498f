"""Plans by the names that people give them: an id, or words that are on it.

``p4d.24xlarge spot`` is a machine and a market, ``L4:4 us-east-1`` so many GPUs in a region, ``lab H100:8`` a
cluster's. Words stand in any order, and a slash between them is as good as a space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from advisor.core.errors import InputError, UnknownGpuError, did_you_mean
from advisor.core.gpus import GpuRequest, is_known, load_gpus, parse_gpu_request
from advisor.core.values import Plan

# As many as are listed where a name is too wide.
MOST_LISTED = 8
_BETWEEN_WORDS = re.compile(r"[\s/]+")
# A number of more digits is no number of machines.
_SEVERAL = re.compile(r"(?P<number>\d{1,4})x(?P<what>\S+)")
_GPUS_BY_NODES = re.compile(r"\S+:\d{1,4}x(?P<nodes>\d{1,4})")


def plans_named(name: str, plans: Sequence[Plan]) -> list[Plan]:
    """Those of one size of machine that have every word of a name, at all their places.

    Raises InputError: no plan has such a word, none has them all, or plans of several sizes do.
    """
    named, gpus = _named(name, plans)
    is_counted = any(request.counts for request in gpus)
    if gpus and not is_counted:
        # The smallest machines: ``L4`` is one of them.
        least = min((plan.num_gpus, plan.num_nodes) for plan in named)
        named = [plan for plan in named if (plan.num_gpus, plan.num_nodes) == least]
    # What must be the same of all, as far as the name leaves it open.
    sizes: set[object] = {plan.num_gpus for plan in named}
    if not is_counted:
        own = {(plan.gpu, plan.layout.gpus_per_node, plan.layout.num_nodes) for plan in named}
        sizes = {size[1:] for size in own} if gpus else {*own}
    if len(sizes) > 1:
        raise InputError(f"{name!r} is machines of {len(sizes)} sizes: add one of {_sizes(named)}.")
    return named


def plans_with_words(name: str, plans: Sequence[Plan]) -> list[Plan]:
    """As `plans_named`, whatever their sizes.

    Raises InputError: no plan has such a word, or none has them all.
    """
    return _named(name, plans)[0]


def words_of_name(name: str) -> frozenset[str]:
    """The words of a name, whatever their order and case."""
    return frozenset(word.casefold() for word in _BETWEEN_WORDS.split(name.strip()) if word)


def num_nodes_of(name: str) -> int:
    """How many nodes a name asks for: those of ``2xp5.48xlarge``, ``H100:8x2`` and ``cluster/lab/2x8xH100``.

    >>> num_nodes_of("aws/2xp5.48xlarge"), num_nodes_of("H100:8x4"), num_nodes_of("lab 8xH100-SXM-80GB")
    (2, 4, 1)
    """
    numbers = []
    for word in words_of_name(name):
        if (laid_out := _GPUS_BY_NODES.fullmatch(word)) is not None:
            numbers.append(int(laid_out["nodes"]))
        elif (several := _SEVERAL.fullmatch(word)) is not None and not is_known(several["what"]):
            numbers.append(int(several["number"]))  # a GPU behind them says that they count GPUs
    return max(numbers, default=1)


def places_of(plan: Plan) -> frozenset[str]:
    """Region and zone of a rented plan, in lower case."""
    places = () if plan.offer is None else (plan.offer.region, plan.offer.zone or "")
    return frozenset(place.casefold() for place in places if place)


def _named(name: str, plans: Sequence[Plan]) -> tuple[list[Plan], list[GpuRequest]]:
    """Those that have all its words, and the words that are GPUs, with the numbers that they name."""
    words = [word for word in _BETWEEN_WORDS.split(name.strip()) if word]
    if not words:
        raise InputError(f"{name!r} names no plan: {_ALLOWED}.")
    words_of = {plan.id: places_of(plan) | {word.casefold() for word in plan.id.split("/")} for plan in plans}
    known = frozenset[str]().union(*words_of.values())
    requests = {word: _gpus(word, known) for word in words if word.casefold() not in known}

    def has(plan: Plan, word: str) -> bool:
        request = requests.get(word)
        if request is None:
            return word.casefold() in words_of[plan.id]
        is_counted = not request.counts or plan.num_gpus in request.counts
        is_laid_out = request.num_nodes in (None, plan.num_nodes)
        return is_counted and is_laid_out and any(plan.gpu == gpu.name for gpu in request.gpus)

    for word in words:
        if not any(has(plan, word) for plan in plans):
            gpus = {gpu.name for gpu in requests[word].gpus}
            there_are = _sizes(plan for plan in plans if plan.gpu in gpus)
            there_are = there_are or _listed(sorted({plan.gpu for plan in plans}))
            raise InputError(f"no plan has {word!r}; there are {there_are}.")
    matching = [plan for plan in plans if all(has(plan, word) for word in words)]
    if not matching:
        raise InputError(f"each word of {name!r} is on some plan, but no plan has them all: leave one out.")
    return matching, list(requests.values())


_ALLOWED = (
    "give an id of a recommendation, an instance type, a GPU with its number (L4:4), a cluster or local,"
    " with a region or a market beside it where several would do"
)


def _gpus(word: str, known: Iterable[str]) -> GpuRequest:
    """The GPUs that a word means which is on no plan.

    Raises InputError: it is no GPU either, or its number is none.
    """
    try:
        return parse_gpu_request(word)
    except UnknownGpuError as error:
        near = did_you_mean(word, [*known, *load_gpus()])
        raise InputError(f"no plan has {word!r}.{near} A plan's name: {_ALLOWED}.") from error


def _sizes(plans: Iterable[Plan]) -> str:
    """``L4:1, L4:4, L4:8``."""
    sizes = sorted({(plan.gpu, plan.num_gpus) for plan in plans})
    return _listed([f"{gpu}:{count}" for gpu, count in sizes])


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
    return ", ".join([*names[:MOST_LISTED], *more])
