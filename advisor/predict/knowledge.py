"""What predictions rest on: constants and networks, shipped, from a folder, or calibrated here."""

import hashlib
import io
import tokenize
import tomllib
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from advisor.core.errors import CalibrationError, CatalogError
from advisor.core.files import write_atomically
from advisor.core.gpus import catalog_path
from advisor.formats.foreign_files import read_plain
from advisor.operators import registry
from advisor.operators.registry import rows
from advisor.predict.exchange.collective_time import ScalingConstants

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnedNetwork:
    """E members of two hidden layers of H units and SiLU activations; inputs of F features.

    Attributes:
        low, high: the range of each feature in training, [F]; inputs are cut to it, since outside of it
            only the roofline knows.
        mean, scale: what features are normalised by, [F].
        weights: [E, F, H], [E, H, H] and [E, H, 3].
        biases: [E, 1, H], [E, 1, H] and [E, 1, 3].
    """

    low: Array
    high: Array
    mean: Array
    scale: Array
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]

    def outputs(self, features: Array) -> Array:
        """What each member says of each row of ``features`` [N, F]: [E, N, 3]."""
        values: Array = (np.clip(features, self.low, self.high) - self.mean) / self.scale
        # One after the other: what all of them need at once does not fit into the cache.
        return np.array([self._member(number, values) for number in range(len(self.weights[0]))])

    def _member(self, number: int, values: Array) -> Array:
        *hidden, last = zip(self.weights, self.biases, strict=True)
        for weights, biases in hidden:
            values = silu(values @ weights[number] + biases[number])
        weights, biases = last
        return np.asarray(values @ weights[number] + biases[number])


def silu(values: Array) -> Array:
    """X / (1 + exp(-x)), without overflow.

    >>> silu(np.array([-1000.0, 0.0, 1000.0], np.float32)).tolist()
    [-0.0, 0.0, 1000.0]
    """
    # In one array: what several of them cost is memory's time.
    gates = np.multiply(values, 0.5, dtype=values.dtype)
    np.tanh(gates, out=gates)
    gates *= 0.5
    gates += 0.5
    gates *= values
    return gates


VERSION = 2
_VECTORS = ("low", "high", "mean", "scale")
_LAYERS = 3
# Log-penalties of compute and memory, and the log-scale of what is left.
OUTPUTS = 3
# Fifty times those that are shipped.
_MOST_NETWORK_BYTES = 20_000_000
# Of a damaged archive zipfile and numpy raise any of these: a flipped bit may change a length, a method, a
# name or a dtype.
_DAMAGE = (
    OSError, ValueError, TypeError, EOFError, KeyError, NotImplementedError, RuntimeError, MemoryError,
    SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def write_networks(networks: Mapping[str, LearnedNetwork], path: Path) -> None:
    """Write atomically; weights in 16 bits, the ranges of the features in 32."""
    arrays: dict[str, NDArray[np.generic]] = {"version": np.array(VERSION)}
    for family, network in networks.items():
        arrays |= {f"{family}.{name}": getattr(network, name) for name in _VECTORS}
        for layer in range(_LAYERS):
            arrays[f"{family}.weight{layer}"] = network.weights[layer].astype(np.float16)
            arrays[f"{family}.bias{layer}"] = network.biases[layer].astype(np.float16)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_atomically(path, buffer.getvalue())


def read_networks(path: Path) -> dict[str, LearnedNetwork]:
    """Family -> network.

    Raises CatalogError: missing, truncated, not ours, of a newer version, or its arrays do not fit together.
    """
    try:
        arrays = _arrays(read_plain(path, most_bytes=_MOST_NETWORK_BYTES))
        version = int(arrays.pop("version", np.array(0)))
    except _DAMAGE as error:
        raise _broken(path, str(error)) from error
    if version != VERSION:
        raise _broken(path, f"they are of version {version}, this advisor reads version {VERSION}")
    try:
        return {family: _network(arrays, family) for family in {name.partition(".")[0] for name in arrays}}
    except (KeyError, ValueError) as error:
        raise _broken(path, f"arrays are missing or do not fit together: {error}") from error


def _arrays(content: bytes) -> dict[str, NDArray[np.generic]]:
    archive = np.load(io.BytesIO(content), allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("it is one array, not an archive of them")
    with archive:
        members = archive.zip.infolist() if archive.zip else []
        if sum(member.file_size for member in members) > _MOST_NETWORK_BYTES:
            raise ValueError(f"they unpack to more than {_MOST_NETWORK_BYTES / 1e6:.0f} MB")
        return {name: archive[name] for name in archive.files}


def _network(arrays: Mapping[str, NDArray[np.generic]], family: str) -> LearnedNetwork:
    def array(name: str) -> NDArray[np.float32]:
        values = arrays[f"{family}.{name}"].astype(np.float32)
        if not np.isfinite(values).all():
            raise ValueError(f"{family}.{name} holds values that are no numbers")
        return values

    network = LearnedNetwork(
        **{name: array(name) for name in _VECTORS},
        weights=tuple(array(f"weight{layer}") for layer in range(_LAYERS)),
        biases=tuple(array(f"bias{layer}") for layer in range(_LAYERS)),
    )
    _check_shapes(network, family)
    return network


def _check_shapes(network: LearnedNetwork, family: str) -> None:
    learned = rows().network[family][1]
    num_features = learned.num_features + learned.board.num_features
    members, _, units = network.weights[0].shape
    sizes = [num_features, units, units, OUTPUTS]
    expected: list[tuple[int, ...]] = [(num_features,)] * len(_VECTORS)
    expected += [(members, sizes[i], sizes[i + 1]) for i in range(_LAYERS)]
    expected += [(members, 1, sizes[i + 1]) for i in range(_LAYERS)]
    vectors = [network.low, network.high, network.mean, network.scale]
    shapes = [array.shape for array in (*vectors, *network.weights, *network.biases)]
    if shapes != expected:
        raise ValueError(f"{family} has arrays of {shapes}, this advisor needs {expected}")
    if not (network.scale > 0).all():
        raise ValueError(f"{family}.scale holds values that are not positive")


def _broken(path: Path, why: str) -> CatalogError:
    return CatalogError(f"cannot use the learned weights in {str(path)!r}: {why}. Reinstall gpu-advisor.")


Kernels = Mapping[str, Sequence[Sequence[float]]]
"""By family of networks: of each measured kernel its sizes, and the part of the learned rate it reached."""
Constants = Mapping[str, str | float | Mapping[str, float]]
"""Of a GPU: numbers by name, tables of a number a rate, and texts about where they come from."""
# How the source of every calibration begins.
CALIBRATED = "calibrated"
HERE, RECORDED = "on this machine", "from a recording"
# The table of what the GPU reaches of the learned rates, by family of networks.
CORRECTIONS = "learned"
# The table of the kernels that it was learned from, where those of other sizes may reach another part.
KERNELS = "kernels"
# The fingerprint of the networks that they correct.
FINGERPRINT = "networks"
MOST_CORRECTION = 10.0
_MOST_FRACTION = 2.0
_MOST_EXCESS = 1.0
_MOST_SIZE = 1e12
_MOST_CALIBRATION_BYTES = 100_000
_TEXTS = {"source", FINGERPRINT}


def calibration_path(gpu: str) -> Path:
    """Where the calibration of a GPU of the catalog is, or would be."""
    import platformdirs

    return platformdirs.user_data_path("advisor") / "calibrations" / f"{gpu}.toml"


def calibrated_gpus() -> tuple[str, ...]:
    """Names of the GPUs for which there is a file, whole or not, in order."""
    folder = calibration_path("").parent
    return tuple(sorted(path.stem for path in folder.glob("*.toml") if path.is_file()))


def read_calibration(gpu: str) -> Constants | None:
    """The table of a GPU, with its source; None if there is no calibration.

    Raises CatalogError: the file is broken, or holds what is no fraction.
    """
    path = calibration_path(gpu)
    if not path.is_file():
        return None
    try:
        table = tomllib.loads(read_plain(path, most_bytes=_MOST_CALIBRATION_BYTES).decode())
        _check(table)
    except (OSError, ValueError, RecursionError) as error:
        raise CatalogError(
            f"the calibration {str(path)!r} cannot be used: {error}. Delete it, and run advisor calibrate"
            " again."
        ) from error
    return table


def is_of_other_networks(table: Constants, fingerprint: str | None) -> bool:
    """Whether a calibration corrects networks that are not these: its corrections mean nothing here."""
    return CORRECTIONS in table and table.get(FINGERPRINT) != fingerprint


def corrections_of(table: Constants) -> Mapping[str, float]:
    """What the GPU reaches of the learned rates, by family of networks; empty where that was not measured."""
    corrections = table.get(CORRECTIONS, {})
    return corrections if isinstance(corrections, Mapping) else {}


def kernels_of(table: Mapping[str, object]) -> Kernels:
    """The kernels that it was learned from, by family of networks; empty where there are none."""
    kernels = table.get(KERNELS, {})
    return kernels if isinstance(kernels, Mapping) else {}


def write_calibration(
    gpu: str,
    source: str,
    constants: Mapping[str, float],
    *,
    kernels: Kernels | None = None,
    where: str = HERE,
    networks: str | None = None,
) -> Path:
    """Write the file of a GPU, in place of an older one.

    Args:
        gpu: name in the catalog.
        source: when and with what it was calibrated, for the estimate's assumptions.
        constants: by dotted name, such as ``gemm_fraction.bf16``.
        where: it was measured, ``HERE`` or ``RECORDED``.
        networks: fingerprint of those that the constants of ``learned`` correct.

    Raises CalibrationError: the folder cannot be written, or the disk is full.
    """
    path = calibration_path(gpu)
    # Without what would end a string of TOML.
    plain = "".join(letter for letter in source if letter.isprintable() and letter not in '"\\')
    lines = ["# Written by advisor calibrate; delete it to go back to the catalog's constants."]
    lines += [f'source = "{CALIBRATED} {where}, {plain}"']
    lines += [] if networks is None else [f'{FINGERPRINT} = "{networks}"']
    lines += [f"{name} = {value:.4f}" for name, value in sorted(constants.items())]
    lines += _kernel_lines(kernels or {})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, "\n".join([*lines, ""]).encode())
    except OSError as error:
        raise CalibrationError(
            f"cannot write the calibration to {str(path)!r}: {error.strerror}. Make room, or choose another"
            " folder with the variable XDG_DATA_HOME."
        ) from error
    return path


def _kernel_lines(kernels: Kernels) -> Iterator[str]:
    if kernels:
        yield f"\n# Of each kernel its sizes, and the part of the learned rate that it reached.\n[{KERNELS}]"
    for network, told in sorted(kernels.items()):
        yield f"{network} = ["
        yield from ("    [" + ", ".join(f"{number:.6g}" for number in kernel) + "]," for kernel in told)
        yield "]"


def _check(table: Constants) -> None:
    if not str(table.get("source", "")).startswith(CALIBRATED):
        raise ValueError(f"its source does not begin with {CALIBRATED!r}")
    has_rates = {**registry.constants(), CORRECTIONS: True}
    for name in sorted(name for name, is_table in has_rates.items() if is_table):
        if not isinstance(table.get(name, {}), Mapping):
            raise ValueError(f"{name} is no table")
    _check_kernels(kernels_of(table))
    for name, value in table.items():
        if name == KERNELS:
            continue
        if name not in _TEXTS | has_rates.keys():
            raise ValueError(f"it holds {name!r}, which is no constant")
        most = MOST_CORRECTION if name == CORRECTIONS else _MOST_FRACTION
        for fraction in value.values() if isinstance(value, Mapping) else [value]:
            if name not in _TEXTS and not _is_up_to(fraction, most):
                raise ValueError(f"{name} is {fraction!r}")


def _check_kernels(kernels: Mapping[str, object]) -> None:
    for network, told in kernels.items():
        likeness = rows().network[network][1].likeness if network in rows().network else None
        if likeness is None:
            raise ValueError(f"{KERNELS} has {network!r}, which is no network that learns from them")
        most = [_MOST_SIZE] * len(likeness.lengths) + [MOST_CORRECTION]
        for kernel in told if isinstance(told, list) else [None]:
            numbers = kernel if isinstance(kernel, list) else []
            if len(numbers) != len(most) or not all(map(_is_up_to, numbers, most)):
                raise ValueError(f"a kernel of {network} is not {len(most)} positive numbers")


def _is_up_to(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most


CONSTANTS, NETWORKS, CARD, STEPS = "fitted.toml", "learned.npz", "learned.json", "steps.toml"


class Tables(TypedDict):
    """``fitted.toml``: constants by GPU that was measured, and what is assumed by architecture."""

    gpu: Mapping[str, Constants]
    assumed: Mapping[str, Constants]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Knowledge:
    """Constants and networks that were fitted to the same measurements; equals no other one but itself."""

    tables: Tables
    """Constants by GPU, and what is assumed for others."""
    networks: Mapping[str, LearnedNetwork]
    """By family; empty where none were trained, which leaves the roofline."""
    fingerprint: str | None = None
    """Of the networks' file: the first 16 hexadecimal digits of its SHA-256; None without one."""
    corrections: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By GPU and family, the part of the predicted rate that the GPU reached when it was calibrated."""
    kernels: Mapping[str, Mapping[str, Sequence[Sequence[float]]]] = field(default_factory=dict)
    """By GPU and family, as ``FittedConstants.learned_kernels``."""
    is_calibrated_here: bool = False
    """Whether this machine's calibrations count as well."""
    scaling: ScalingConstants = field(default_factory=ScalingConstants)
    """What several GPUs cost each other."""
    excess: Mapping[str, float] = field(default_factory=dict)
    """By kind of operator, the log of what it takes in a whole step over what it takes alone
    (``advisor.predict.methods``)."""


def read_knowledge(folder: Path) -> Knowledge:
    """The knowledge of a folder that holds ``fitted.toml`` and, where networks were trained, ``learned.npz``.

    Raises CatalogError: there is no ``fitted.toml``, or one of the files is broken.
    """
    constants, networks = folder / CONSTANTS, folder / NETWORKS
    try:
        tables = parsed(constants.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CatalogError(
            f"no {CONSTANTS} in {str(folder)!r}: name a folder that the training wrote."
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogError(f"cannot read {str(constants)!r}: {error}. Reinstall gpu-advisor.") from error
    except KeyError as error:
        raise CatalogError(
            f"{str(constants)!r} lacks [gpu] or [assumed.any]. Reinstall gpu-advisor."
        ) from error
    if not networks.exists():
        return Knowledge(tables=tables, networks={})
    return Knowledge(
        tables=tables,
        networks=read_networks(networks),
        fingerprint=hashlib.sha256(networks.read_bytes()).hexdigest()[:16],
    )


def parsed(text: str) -> Tables:
    """The constants of a ``fitted.toml``.

    Raises:
        TOMLDecodeError: it is no TOML.
        KeyError: it lacks ``[gpu]`` or ``[assumed.any]``.
    """
    document = tomllib.loads(text)
    if not isinstance(document.get("gpu"), dict) or "any" not in document.get("assumed", {}):
        raise KeyError("gpu" if "gpu" not in document else "assumed.any")
    return Tables(gpu=document["gpu"], assumed=document["assumed"])


@cache
def shipped() -> Knowledge:
    """What the catalog ships, with this machine's calibrations.

    Raises CatalogError: constants or networks are missing or broken.
    """
    catalog_path(NETWORKS)  # without networks the roofline would answer, unnoticed
    knowledge = read_knowledge(catalog_path(CONSTANTS).parent)
    return replace(knowledge, is_calibrated_here=True, excess=read_excess(catalog_path(STEPS)))


def read_excess(path: Path) -> Mapping[str, float]:
    """The excess of a ``steps.toml``.

    Raises CatalogError: the file is missing or broken, or has what is no kind or no log of a factor from 1
    on.
    """
    try:
        excess = tomllib.loads(path.read_text(encoding="utf-8"))["excess"]
        if not isinstance(excess, dict):
            raise ValueError("[excess] is no table")
        words = {family.word for family in rows().families}
        for kind, log in excess.items():
            if kind not in words:
                raise ValueError(f"{kind!r} is none of {', '.join(sorted(words))}")
            if log != 0 and not _is_up_to(log, _MOST_EXCESS):
                raise ValueError(f"{kind!r} is {log!r}, not from 0 to {_MOST_EXCESS:g}")
        return {kind: float(log) for kind, log in excess.items()}
    except (OSError, ValueError, KeyError) as error:
        raise CatalogError(f"cannot read {str(path)!r}: {error}. Reinstall gpu-advisor.") from error
