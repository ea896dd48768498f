"""GPUs from ``catalogs/gpus.toml``, and which GPU a name means.

Names. A GPU is called MODEL[-FORM][-MEMORY], as in ``RTX-3090``, ``A100-SXM-80GB``: the vendor's
model words joined by hyphens, without vendor and brand ("NVIDIA", "Tesla", "GeForce", "Instinct");
then PCIE, SXM or NVL and the marketed memory where the model was sold in several.

Two names are equal if their normal forms are: lower case, cut wherever letters and digits meet and
at everything else, vendor and brand words dropped. A name is never matched by its beginning: "L40"
is not an L40S. What stands for several GPUs ("A100", "A100-80GB") is a family, listed by members.

Before that, a few texts are taken literally (letter case aside), because a cloud or torch gives
them one meaning: "nvidia-tesla-a100" is GCP's A100-SXM-40GB, though "A100" is a family.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from advisor.core.errors import AmbiguousGpuError, CatalogError, InputError, UnknownGpuError, did_you_mean
from advisor.core.values import GpuSpec, OccupancyLimits

_WORD = re.compile(r"[a-z]+|[0-9]+")
_BRAND_WORDS = frozenset({"nvidia", "tesla", "geforce", "amd", "instinct"})
_NODES = re.compile(r"\s*(\d+)\s*x\s*(\d+)\s*")
_COUNT_OR_RANGE = re.compile(r"\s*(\d+)\s*(?:\.\.\s*(\d+)\s*)?")
_MAX_COUNT = 4096
_Table = Mapping[str, Any]  # of TOML, whose keys are checked before they become a GpuSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRequest:
    """What a GPU string such as ``A100-80GB:1..8`` asks for."""

    text: str
    """As typed."""
    gpus: tuple[GpuSpec, ...]
    """Every GPU meant; several if a family was named, which the caller says aloud."""
    counts: tuple[int, ...]
    """Numbers of GPUs, of all nodes, in ascending order; empty if the text names none."""
    num_nodes: int | None = None
    """Nodes of which each has an equal part of them; None if the text does not say."""


class _ByName(dict[str, GpuSpec]):
    def __missing__(self, name: str) -> GpuSpec:
        """An alias has its GPU; an unknown name is an error with near names, not a bare KeyError."""
        return resolve_gpu(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Catalog:
    gpus: Mapping[str, GpuSpec]
    exact: Mapping[str, str]
    normal: Mapping[str, tuple[str, ...]]
    families: tuple[str, ...]
    provider_names: Mapping[str, Mapping[str, str]]


def catalog_path(name: str) -> Path:
    """Where a shipped catalog is: inside the installed package, else in the checkout beside it.

    Args:
        name: relative to the catalog folder, such as ``"prices/aws.csv"``.

    Raises CatalogError: there is no such file.
    """
    package = Path(__file__).resolve().parents[1]
    folders = (package / "_catalogs", package.parent / "catalogs")
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise CatalogError(
        f"catalog file {name!r} is missing: looked in {' and '.join(map(str, folders))}."
        " Install gpu-advisor again."
    )


def load_gpus() -> Mapping[str, GpuSpec]:
    """Every GPU of the catalog by name, in the order of the file (read once).

    Other names of a GPU will do in brackets, as for ``resolve_gpu``, and raise what that raises.

    Raises CatalogError: ``gpus.toml`` is missing, broken or gives one name two meanings.
    """
    return _catalog().gpus


def family_names() -> tuple[str, ...]:
    """Every name that stands for several GPUs, such as ``"A100"``, in the order of the file.

    Raises CatalogError: as ``load_gpus``.
    """
    return _catalog().families


def resolve_gpu(name: str) -> GpuSpec:
    """The one GPU a name means.

    Raises:
        AmbiguousGpuError: the name is a family of several GPUs.
        UnknownGpuError: no GPU has this name.

    >>> resolve_gpu("NVIDIA A100-SXM4-80GB").name
    'A100-SXM-80GB'
    """
    gpus = resolve_gpus(name)
    if len(gpus) > 1:
        members = ", ".join(gpu.name for gpu in gpus)
        raise AmbiguousGpuError(f"{name!r} means several GPUs: choose one of {members}.")
    return gpus[0]


def resolve_gpus(name: str) -> tuple[GpuSpec, ...]:
    """Every GPU a name means; several for a family, which the caller says aloud.

    Raises UnknownGpuError: no GPU and no family has this name.

    >>> [gpu.name for gpu in resolve_gpus("A100-80GB")]
    ['A100-PCIE-80GB', 'A100-SXM-80GB']
    """
    catalog = _catalog()
    literal = catalog.exact.get(name.strip().casefold())
    names = (literal,) if literal else catalog.normal.get(normal_form(name), ())
    if not names:
        words = re.findall(r"[a-z0-9]+", name.lower())
        near = did_you_mean(
            "-".join(word for word in words if word not in _BRAND_WORDS), [*catalog.gpus, *catalog.families]
        )
        raise UnknownGpuError(f"no GPU is called {name!r}.{near} `advisor gpus` lists all.")
    return tuple(catalog.gpus[member] for member in names)


def is_known(name: str) -> bool:
    """Whether exactly one GPU has this name."""
    try:
        resolve_gpu(name)
    except UnknownGpuError:
        return False
    return True


def parse_gpu_request(text: str) -> GpuRequest:
    """Parses ``NAME[:COUNTS]``; COUNTS is ``8``, ``1,2,4``, ``1..8`` or a mix of them, or ``8x4``.

    The last is eight GPUs on each of four nodes. The name may itself hold colons (``A100:80GB``).

    Raises:
        UnknownGpuError: no GPU and no family has this name.
        InputError: the counts are not positive whole numbers in ascending ranges.

    >>> request = parse_gpu_request("A100:80GB:1..4")
    >>> [gpu.name for gpu in request.gpus], request.counts
    (['A100-PCIE-80GB', 'A100-SXM-80GB'], (1, 2, 3, 4))
    """
    head, colon, last = text.rpartition(":")
    if colon and (nodes := _NODES.fullmatch(last)):
        num_nodes = _parse_counts(nodes[2], text)[0]
        counts = _parse_counts(str(int(nodes[1]) * num_nodes), text)
        return GpuRequest(text=text, gpus=resolve_gpus(head), counts=counts, num_nodes=num_nodes)
    if colon and not any(letter.isalpha() for letter in last):
        return GpuRequest(text=text, gpus=resolve_gpus(head), counts=_parse_counts(last, text))
    return GpuRequest(text=text, gpus=resolve_gpus(text), counts=())


def provider_gpu(provider: str, name: str, memory: str) -> GpuSpec:
    """The GPU that a cloud's own table means, by name and documented memory.

    Args:
        provider: ``"aws"`` or ``"gcp"``.
        name: as the cloud writes it, such as ``"A100"``.
        memory: as the cloud documents it, such as ``"40 GiB"``.

    Raises UnknownGpuError: the catalog has no such pair.

    >>> provider_gpu("aws", "A100", "40 GiB").name
    'A100-SXM-40GB'
    """
    catalog = _catalog()
    known = catalog.provider_names.get(provider, {})
    try:
        return catalog.gpus[known[f"{name} {memory}"]]
    except KeyError:
        raise UnknownGpuError(
            f"{provider} has a GPU {name!r} with {memory} that the catalog does not know."
            f" Add it to [provider_names.{provider}] in gpus.toml."
        ) from None


def normal_form(name: str) -> str:
    """What is left of a name when letter case, separators, vendor and brand do not count.

    >>> normal_form("NVIDIA GeForce RTX 3090")
    'rtx-3090'
    >>> normal_form("A100-SXM4-80GB")
    'a-100-sxm-4-80-gb'
    """
    return "-".join(word for word in _WORD.findall(name.lower()) if word not in _BRAND_WORDS)


def _parse_counts(text: str, request: str) -> tuple[int, ...]:
    counts: set[int] = set()
    for part in text.split(","):
        match = _COUNT_OR_RANGE.fullmatch(part)
        low = int(match[1]) if match else 0
        high = int(match[2]) if match and match[2] else low
        if not 1 <= low <= high <= _MAX_COUNT:
            raise InputError(
                f"{text!r} in {request!r} is not a number of GPUs: write NAME:8, NAME:1,2,4, NAME:1..8 or"
                f" NAME:8x4 (four nodes) with numbers from 1 to {_MAX_COUNT}."
            )
        counts.update(range(low, high + 1))
    return tuple(sorted(counts))


@cache
def _catalog() -> _Catalog:
    return read_catalog(catalog_path("gpus.toml"))


def read_catalog(path: Path) -> _Catalog:
    """Reads and checks one catalog file; `load_gpus` does it once for the shipped one.

    Raises CatalogError: the file cannot be read, an entry is incomplete, or a name has two meanings.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        limits = {
            capability: OccupancyLimits(**table)
            for capability, table in document["compute_capability"].items()
        }
        gpus = {
            name: _spec(name, table, limits.get(table.get("compute_capability")))
            for name, table in document["gpu"].items()
        }
        exact = {key.casefold(): gpu for key, gpu in document["exact_names"].items()}
        provider_names = document["provider_names"]
        own: dict[str, str] = {}
        for gpu in gpus.values():
            for form in map(normal_form, (gpu.name, *gpu.aliases)):
                if not form or own.setdefault(form, gpu.name) != gpu.name:
                    raise ValueError(f"{form!r} means both {own.get(form)!r} and {gpu.name!r}")
        names: dict[str, tuple[str, ...]] = {form: (gpu,) for form, gpu in own.items()}
        families = ((normal_form(one), gpu.name) for gpu in gpus.values() for one in gpu.families)
        for form, member in families:
            if form in own:
                raise ValueError(f"{form!r} is a family of {member!r} and a name of {own[form]!r}")
            names[form] = (*names.get(form, ()), member)
        named = {gpu for table in (exact, *provider_names.values()) for gpu in table.values()}
        if unknown := named - gpus.keys():
            raise ValueError(f"names point to unknown GPUs {', '.join(sorted(unknown))}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"missing {error}" if isinstance(error, KeyError) else str(error)
        raise CatalogError(f"{path}: {problem}. Install gpu-advisor again.") from error
    return _Catalog(
        gpus=MappingProxyType(_ByName(gpus)),
        exact=exact,
        normal=names,
        families=tuple(dict.fromkeys(f for gpu in gpus.values() for f in gpu.families)),
        provider_names=provider_names,
    )


def _spec(name: str, table: _Table, occupancy: OccupancyLimits | None) -> GpuSpec:
    expected = {spec_field.name for spec_field in fields(GpuSpec)} - {"name", "occupancy"}
    if wrong := expected.symmetric_difference(table):
        raise ValueError(f"[gpu.{name}] lacks or should not have {', '.join(sorted(wrong))}")
    if occupancy is None and table["vendor"] == "NVIDIA":
        raise ValueError(f"[gpu.{name}] has a compute capability without occupancy limits")
    values = dict(table)
    for key in ("aliases", "families"):
        values[key] = tuple(values[key])
    for key in ("vector_flops_per_s", "tensor_flops_per_s"):
        values[key] = MappingProxyType({dtype: float(v) for dtype, v in values[key].items()})
    for key in [key for key in values if key.endswith(("_hz", "_per_s", "_w"))]:
        if "flops" not in key:
            values[key] = float(values[key])
    return GpuSpec(name=name, occupancy=occupancy, **values)
