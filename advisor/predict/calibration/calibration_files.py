"""Constants that were calibrated here or from a recording: one TOML file a GPU in the user's data folder."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from advisor.core.errors import CalibrationError, CatalogError
from advisor.core.files import write_atomically
from advisor.formats.foreign_files import read_plain
from advisor.operators import registry
from advisor.operators.registry import rows

Kernels = Mapping[str, Sequence[Sequence[float]]]
"""By family of networks: of each measured kernel its sizes, and the part of the learned rate it reached."""
Constants = Mapping[str, str | float | Mapping[str, float]]
"""Of a GPU: numbers by name, tables of a number a rate, and texts about where they come from."""
# How the source of every calibration begins.
CALIBRATED = "calibrated"
HERE, RECORDED = "on this machine", "from a recording"
# The table of what the GPU reaches of the learned rates, by family of networks.
CORRECTIONS = "learned"
# The table of the kernels that told it, where those of other sizes may reach another part.
KERNELS = "kernels"
# The fingerprint of the networks that they correct.
NETWORKS = "networks"
MOST_CORRECTION = 10.0
_MOST_FRACTION = 2.0
_MOST_SIZE = 1e12
_MOST_BYTES = 100_000
_TEXTS = {"source", NETWORKS}


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

    Raises:
        CatalogError: the file is broken, or holds what is no fraction.
    """
    path = calibration_path(gpu)
    if not path.is_file():
        return None
    try:
        table = tomllib.loads(read_plain(path, most_bytes=_MOST_BYTES).decode())
        _check(table)
    except (OSError, ValueError, RecursionError) as error:
        raise CatalogError(
            f"the calibration {str(path)!r} cannot be used: {error}. Delete it, and run advisor calibrate"
            " again."
        ) from error
    return table


def is_of_other_networks(table: Constants, fingerprint: str | None) -> bool:
    """Whether a calibration corrects networks that are not these, so that its corrections mean nothing here.

    Args:
        table: of `read_calibration`.
        fingerprint: of ``Knowledge``.
    """
    return CORRECTIONS in table and table.get(NETWORKS) != fingerprint


def corrections_of(table: Constants) -> Mapping[str, float]:
    """What the GPU reaches of the learned rates, by family of networks; empty where that was not measured."""
    corrections = table.get(CORRECTIONS, {})
    return corrections if isinstance(corrections, Mapping) else {}


def kernels_of(table: Mapping[str, object]) -> Kernels:
    """The kernels that told it, by family of networks; empty where none did."""
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
        kernels: of networks that learn from each.
        where: it was measured, ``HERE`` or ``RECORDED``.
        networks: fingerprint of those that the constants of ``learned`` correct.

    Raises:
        CalibrationError: the folder cannot be written, or the disk is full.
    """
    path = calibration_path(gpu)
    lines = ["# Written by advisor calibrate; delete it to go back to the catalog's constants."]
    lines += [f'source = "{_plain(f"{CALIBRATED} {where}, {source}")}"']
    lines += [] if networks is None else [f'{NETWORKS} = "{networks}"']
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


def _plain(text: str) -> str:
    """The text without what would end a string of TOML."""
    return "".join(letter for letter in text if letter.isprintable() and letter not in '"\\')


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
            if name not in _TEXTS and not _is_between(0, fraction, most):
                raise ValueError(f"{name} is {fraction!r}")


def _check_kernels(kernels: Mapping[str, object]) -> None:
    for network, told in kernels.items():
        likeness = rows().network[network][1].likeness if network in rows().network else None
        if likeness is None:
            raise ValueError(f"{KERNELS} has {network!r}, which is no network that learns from them")
        width = len(likeness.lengths) + 1
        if not isinstance(told, list) or not all(_is_kernel(kernel, width) for kernel in told):
            raise ValueError(f"a kernel of {network} is not {width} positive numbers")


def _is_kernel(kernel: object, width: int) -> bool:
    if not isinstance(kernel, list) or len(kernel) != width:
        return False
    *sizes, share = kernel
    return all(_is_between(0, size, _MOST_SIZE) for size in sizes) and _is_between(0, share, MOST_CORRECTION)


def _is_between(low: float, value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low < value <= most
