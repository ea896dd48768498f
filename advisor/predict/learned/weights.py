"""Networks in an ``.npz`` of half-precision arrays, one group of arrays a family; no pickle."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.errors import CatalogError
from advisor.files import write_atomically
from advisor.predict.learned.network import Network
from advisor.predict.learned.shapes import NUM_VALUES

VERSION = 1
# What a network is told of the board: its power limit and compute capability.
NUM_BOARD = 2
_VECTORS = ("low", "high", "mean", "scale")
_LAYERS = 3


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
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise _broken(path, str(error)) from error
    version = int(arrays.pop("version", np.array(0)))
    if version != VERSION:
        raise _broken(path, f"they are of version {version}, this advisor reads version {VERSION}")
    try:
        return {family: _network(arrays, family) for family in {name.partition(".")[0] for name in arrays}}
    except (KeyError, ValueError) as error:
        raise _broken(path, f"arrays are missing or do not fit together: {error}") from error


def _network(arrays: Mapping[str, NDArray[np.generic]], family: str) -> Network:
    def found(name: str) -> NDArray[np.float32]:
        values = arrays[f"{family}.{name}"].astype(np.float32)
        if not np.isfinite(values).all():
            raise ValueError(f"{family}.{name} holds values that are no numbers")
        return values

    first, second, third = (found(f"weight{layer}") for layer in range(_LAYERS))
    biases = (found("bias0"), found("bias1"), found("bias2"))
    network = Network(
        **{name: found(name) for name in _VECTORS}, weights=(first, second, third), biases=biases
    )
    num_features = NUM_VALUES[family] + NUM_BOARD
    if len(network.low) != num_features:
        raise ValueError(f"{family} takes {len(network.low)} features, this advisor has {num_features}")
    network.outputs(network.mean[None])  # raises where arrays do not fit together
    return network


def _broken(path: Path, why: str) -> CatalogError:
    return CatalogError(f"cannot use the learned weights in {str(path)!r}: {why}. Reinstall gpu-advisor.")
