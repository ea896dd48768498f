"""Networks in an ``.npz`` of half-precision arrays, one group of arrays a family; no pickle."""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.core.errors import CatalogError
from advisor.core.files import write_atomically
from advisor.formats.foreign_files import read_plain
from advisor.operators.registry import rows
from advisor.predict.learned.network import Network

VERSION = 2
_VECTORS = ("low", "high", "mean", "scale")
_LAYERS = 3
# Log-penalties of compute and memory, and the log-scale of what is left.
OUTPUTS = 3
# Fifty times those that are shipped.
_MOST_BYTES = 20_000_000
# Of a damaged archive zipfile and numpy raise any of these: a flipped bit may change a length, a method, a
# name or a dtype.
_DAMAGE = (
    OSError, ValueError, TypeError, EOFError, KeyError, NotImplementedError, RuntimeError, MemoryError,
    SyntaxError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def write_networks(networks: Mapping[str, Network], path: Path) -> None:
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


def read_networks(path: Path) -> dict[str, Network]:
    """Family -> network.

    Raises:
        CatalogError: missing, truncated, not ours, of a newer version, or its arrays do not fit together.
    """
    try:
        arrays = _arrays(read_plain(path, most_bytes=_MOST_BYTES))
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
        if sum(member.file_size for member in members) > _MOST_BYTES:
            raise ValueError(f"they unpack to more than {_MOST_BYTES / 1e6:.0f} MB")
        return {name: archive[name] for name in archive.files}


def _network(arrays: Mapping[str, NDArray[np.generic]], family: str) -> Network:
    def array(name: str) -> NDArray[np.float32]:
        values = arrays[f"{family}.{name}"].astype(np.float32)
        if not np.isfinite(values).all():
            raise ValueError(f"{family}.{name} holds values that are no numbers")
        return values

    network = Network(
        **{name: array(name) for name in _VECTORS},
        weights=tuple(array(f"weight{layer}") for layer in range(_LAYERS)),
        biases=tuple(array(f"bias{layer}") for layer in range(_LAYERS)),
    )
    _check_shapes(network, family)
    return network


def _check_shapes(network: Network, family: str) -> None:
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
