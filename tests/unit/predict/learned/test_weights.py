"""Weights on disk: read back as written, refused with the path and what to do where anything is wrong."""

import errno
import gc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from advisor.core.errors import CatalogError
from advisor.predict import knowledge
from advisor.predict.knowledge import VERSION, read_networks, write_networks
from tests.unit.predict.learned.values import make_network, make_networks

Arrays = dict[str, np.ndarray]


class Harmful:
    """Touches a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., None], tuple[Path]]:
        return Path.touch, (self.path,)


NETWORKS = {family: make_networks()[family] for family in ("pointwise", "norm")}
VECTORS = ("low", "high", "mean", "scale")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "learned.npz"
    write_networks(NETWORKS, path)
    return path


def arrays_of(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def refused(path: Path) -> str:
    """Why the file is refused; the message says which file, and what to do."""
    with pytest.raises(CatalogError) as caught:
        read_networks(path)
    message = str(caught.value)
    del caught
    gc.collect(1)  # what numpy left open shows here, not in another test; it is young
    assert repr(str(path)) in message
    assert message.endswith("Reinstall gpu-advisor.")
    assert "\n" not in message
    return message


def test_what_is_written_is_read(path):
    networks = read_networks(path)
    assert networks.keys() == NETWORKS.keys()
    for family, network in NETWORKS.items():
        for name in VECTORS:
            assert (getattr(networks[family], name) == getattr(network, name)).all()
        assert all((a == b).all() for a, b in zip(networks[family].weights, network.weights, strict=True))
        assert all((a == b).all() for a, b in zip(networks[family].biases, network.biases, strict=True))
        every = (*(getattr(networks[family], name) for name in VECTORS), *networks[family].weights)
        assert {array.dtype for array in (*every, *networks[family].biases)} == {np.dtype(np.float32)}


def test_weights_are_rounded_to_16_bits_once(tmp_path):
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"
    fine = make_network(6)
    thirds = tuple(weight / np.float32(3) for weight in fine.weights)
    fine = type(fine)(low=fine.low / 3, high=fine.high, mean=fine.mean, scale=fine.scale, weights=thirds,
                      biases=fine.biases)  # fmt: skip
    write_networks({"pointwise": fine}, first)
    networks = read_networks(first)
    for a, b in zip(networks["pointwise"].weights, thirds, strict=True):
        assert (a == b.astype(np.float16)).all()
    assert (networks["pointwise"].low == fine.low).all()  # ranges keep all their bits
    write_networks(networks, second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("networks", [{}, make_networks()], ids=["none", "all"])
def test_any_number_of_families_replaces_the_file_and_leaves_nothing_beside_it(path, networks):
    write_networks(networks, path)
    assert read_networks(path).keys() == networks.keys()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    assert "No such file" in refused(tmp_path / "learned.npz")
    assert "directory" in refused(tmp_path)


@pytest.mark.parametrize("payload", [b"", b"hello", b"\x80\x04N.", b"PK", b"\0" * 100], ids=repr)
def test_what_is_no_archive_is_refused(tmp_path, payload):
    (tmp_path / "learned.npz").write_bytes(payload)
    refused(tmp_path / "learned.npz")


# numpy leaves the file open where it is no archive (see the test of open files below).
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("part", [0.001, 0.1, 0.5, 0.9, 0.99])
def test_half_a_file_is_refused(path, part):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    refused(path)


def test_pickles_are_never_loaded(path, tmp_path):
    changed = arrays_of(path) | {"pointwise.low": np.array([Harmful(tmp_path / "harmed")], dtype=object)}
    np.savez(path, **changed)
    assert "allow_pickle=False" in refused(path)
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize(
    "name", sorted(f"pointwise.{name}" for name in (*VECTORS, "weight0", "weight2", "bias1"))
)
def test_a_missing_array_is_refused_by_name(path, name):
    changed = arrays_of(path)
    del changed[name]
    np.savez(path, **changed)
    assert name in refused(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["pointwise.low", "pointwise.scale", "norm.weight1", "norm.bias2"])
def test_what_is_no_number_is_refused_by_name(path, name, value):
    changed = arrays_of(path)
    changed[name].flat[-1] = value
    np.savez(path, **changed)
    assert f"{name} holds values that are no numbers" in refused(path)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        *(
            ({f"pointwise.{name}": shape}, "do not fit together")
            for name, shape in (
                ("low", (7,)), ("mean", (5,)), ("scale", (2,)), ("weight0", (3, 7, 8)),
                ("weight0", (2, 6, 8)), ("weight1", (3, 8, 7)), ("weight1", (3, 7, 8)),
                ("weight2", (3, 9, 3)), ("bias0", (3, 1, 7)), ("bias1", (2, 1, 8)), ("bias2", (3, 1, 4)),
            )
        ),
        # Only broadcasting makes these fit.
        *(
            ({f"pointwise.{name}": shape}, "")
            for name, shape in (("low", ()), ("high", (1,)), ("weight1", (8, 8)), ("bias0", (3, 1, 1)))
        ),
        # A network has three outputs.
        *(({"pointwise.weight2": (3, 8, n), "pointwise.bias2": (3, 1, n)}, "") for n in (1, 2, 5)),
    ],
    ids=str,
)  # fmt: skip
def test_arrays_that_do_not_fit_together_are_refused(path, shapes, said):
    ones = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    np.savez(path, **(arrays_of(path) | ones))
    assert said in refused(path)


def test_what_is_no_array_of_numbers_or_an_array_alone_is_refused(path):
    np.savez(path, **(arrays_of(path) | {"pointwise.low": np.array(["a", "b", "c", "d", "e", "f"])}))
    refused(path)
    with path.open("wb") as out:
        np.save(out, np.arange(3.0))
    refused(path)


def test_a_network_for_other_features_is_refused(tmp_path):
    write_networks({"pointwise": make_network(5)}, tmp_path / "learned.npz")
    assert "pointwise has arrays of" in refused(tmp_path / "learned.npz")


def test_a_family_that_nobody_knows_is_refused_by_name(tmp_path):
    write_networks({"fft": make_network(4)}, tmp_path / "learned.npz")
    assert "fft" in refused(tmp_path / "learned.npz")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        *((np.array(version), f"version {version}, this") for version in (0, VERSION + 1, 99)),
        (None, "version 0, this"),
        *((odd, "") for odd in (np.arange(2), np.array("new"), np.array(np.nan))),
    ],
    ids=str,
)
def test_another_version_is_refused_with_both_numbers(path, version, said):
    changed = arrays_of(path)
    del changed["version"]
    np.savez(path, **(changed if version is None else changed | {"version": version}))
    message = refused(path)
    assert said in message
    assert not said or f"advisor reads version {VERSION}" in message


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    def full(_path: Path, _payload: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(knowledge, "write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        write_networks({"pointwise": make_network(6, seed=7)}, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_flipped_byte_escapes(path):
    whole = path.read_bytes()
    for place in range(0, len(whole), 11):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        path.write_bytes(damaged)
        try:
            read_networks(path)  # bytes that no one reads may be anything
        except CatalogError as error:
            assert repr(str(path)) in str(error)  # noqa: PT017 - not each one is refused


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_a_scale_that_is_not_positive_is_refused(path, scale):
    changed = arrays_of(path)
    changed["pointwise.scale"].flat[-1] = scale
    np.savez(path, **changed)
    assert "pointwise.scale holds values that are not positive" in refused(path)


def test_a_broken_file_is_not_left_open(path):
    path.write_bytes(path.read_bytes()[:-100])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            read_networks(path)
        except CatalogError as error:
            assert isinstance(error.__cause__, zipfile.BadZipFile)  # noqa: PT017
            error.__cause__.__traceback__ = None
    assert [warning for warning in caught if warning.category is ResourceWarning] == []
