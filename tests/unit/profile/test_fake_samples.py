"""Samples in place of the script's data, and data sets that could not be made."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from advisor.payload.fake.fake_samples import STAND_IN_LENGTH, SampleMaker  # noqa: E402 - needs torch
from advisor.payload.protocol import Fact, Notice, Warned, notice  # noqa: E402
from tests.findings import of_child  # noqa: E402

pytestmark = pytest.mark.torch


def field(kind: str, *shape: int, name: str | None = None) -> dict[str, Any]:
    return {"name": name, "shape": list(shape), "kind": kind}


class Reported:
    """What the profile is told."""

    def __init__(self) -> None:
        self.warnings: list[Notice] = []
        self.forgotten = 0

    def warn(self, code: Warned, **facts: Fact) -> None:
        self.warnings.append(notice(code, **facts))

    def forget(self) -> None:
        self.forgotten += 1


@pytest.fixture
def reported():
    return Reported()


@pytest.fixture
def fake(reported):
    def make(*fields: dict[str, Any], num_samples: int | None = None) -> SampleMaker:
        return SampleMaker(list(fields), num_samples, reported.warn, reported.forget)

    return make


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self) -> Any:
        raise OSError("no such data")


class Broken(torch.utils.data.Dataset):
    def __init__(self, root: str, train: bool = True, split: str = "train") -> None:  # noqa: ARG002
        self.root = root
        raise OSError("no such data")

    def __getitem__(self, index: int) -> Any:
        raise AssertionError("its items are never read")

    def describe(self) -> str:
        return f"data at {self.root}"


def broken(cls: type = Broken) -> Any:
    data = cls.__new__(cls)
    data.root = "here"
    return data


def test_a_tuple_a_dict_and_a_single_field(fake):
    image, label = fake(field("float32", 3, 8), field("class", 10)).sample(23)
    assert (tuple(image.shape), image.dtype, label) == ((3, 8), torch.float32, 3)
    tokens = fake(field("int64", 5, name="ids"), field("bool", name="flag")).sample(0)
    assert {name: tuple(value.shape) for name, value in tokens.items()} == {"ids": (5,), "flag": ()}
    assert fake(field("uint8", 2)).sample(0).dtype is torch.uint8


def test_samples_are_on_the_cpu_and_nobody_shares_them(fake):
    source = fake(field("float32", 2))
    first = source.sample(0)
    first.add_(1)
    assert source.sample(0).sum() == 0
    with torch.device("meta"):
        assert source.sample(0).device.type == "cpu"


def test_a_data_set_keeps_its_length_and_what_else_it_knows(fake):
    source = fake(field("class", 4))
    data = torch.utils.data.TensorDataset(torch.zeros(6, 2))
    replaced = source.instead_of(data)
    assert (len(replaced), replaced[5], replaced.tensors is data.tensors) == (6, 1, True)
    with pytest.raises(AttributeError):
        _ = replaced._private


class Sized(Stream):
    def __len__(self) -> int:
        return 3


@pytest.mark.parametrize(
    ("data", "expected"),
    [(torch.utils.data.TensorDataset(torch.zeros(6, 2)), [0, 1, 2, 3, 0, 1]), (Sized(), [0, 1, 2])],
)
def test_a_loop_over_what_has_a_length_ends(fake, data, expected):
    replaced = fake(field("class", 4)).instead_of(data)
    assert [value for value, _ in zip(replaced, range(100), strict=False)] == expected


def test_a_stream_without_length_has_no_end(fake):
    replaced = fake(field("class", 4)).instead_of(Stream())
    assert [value for value, _ in zip(replaced, range(6), strict=False)] == [0, 1, 2, 3, 0, 1]
    with pytest.raises(TypeError):
        len(replaced)


def test_what_was_replaced_is_told(fake):
    source = fake(field("float32", 2))
    assert "replaced nothing" in of_child([source.summary()])[0]
    source.instead_of([1, 2])
    assert of_child([source.summary()])[0].startswith("1 DataLoader(s)")


def stood_in(source: SampleMaker, cls: type = Broken, *args: Any, **kwargs: Any) -> Any:
    data = broken(cls)
    source.stand_in(data, OSError("no such data"), Broken.__init__, args, kwargs)
    return data


def test_a_data_set_that_could_not_be_made_stays_what_it_is(fake, reported):
    data = stood_in(fake(field("float32", 2), field("class", 3), num_samples=7))
    assert isinstance(data, Broken)
    assert (len(data), data[4][1], data.describe(), data.classes) == (7, 1, "data at here", ["0", "1", "2"])
    assert data.class_to_idx == {"0": 0, "1": 1, "2": 2}
    assert reported.forgotten == 0
    assert (
        "Broken could not be made (OSError: no such data): 7 fake samples" in of_child(reported.warnings)[0]
    )


def test_of_an_unknown_length_nothing_is_claimed(fake, reported):
    data = stood_in(fake(field("float32", 2)))
    assert (len(data), hasattr(data, "classes")) == (STAND_IN_LENGTH, False)
    assert reported.forgotten == 1
    assert "`profile.samples` N" in of_child(reported.warnings)[0]


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "expected"),
    [
        ("CIFAR10", ("root",), {}, 50_000),
        ("CIFAR10", ("root", False), {}, 10_000),
        ("CIFAR10", ("root",), {"train": False}, 10_000),
        ("CIFAR10", ("root",), {"split": "test"}, 10_000),
        ("CIFAR10", (), {"unknown": 1}, 50_000),
        ("EMNIST", (), {"split": "letters"}, 124_800),
        ("EMNIST", (), {"split": "letters", "train": False}, 20_800),
        ("QMNIST", (), {"train": False}, 60_000),
        ("QMNIST", (), {"what": "nist"}, 402_953),
        ("SVHN", (), {"split": "extra"}, 531_131),
        ("STL10", (), {"split": "test"}, 8_000),
        ("STL10", (), {"split": "unlabeled"}, 100_000),
        # One of torchvision's that derives from MNIST and whose length is unknown.
        ("OtherMNIST", (), {}, STAND_IN_LENGTH),
    ],
)
def test_torchvisions_data_sets_have_the_lengths_their_authors_publish(fake, name, args, kwargs, expected):
    module = {"__module__": "torchvision.datasets.mnist"}
    published = type(name, (type("MNIST", (Broken,), module),), module)
    for cls in (published, type("Mine", (published,), {})):
        assert len(stood_in(fake(field("float32", 2)), cls, *args, **kwargs)) == expected
    assert len(stood_in(fake(field("float32", 2), num_samples=5), published)) == 5
    # A name alone is not torchvision.
    mine = type(name, (Broken,), {"__module__": "mine"})
    assert len(stood_in(fake(field("float32", 2)), mine)) == STAND_IN_LENGTH


class Named(Broken):
    """As torchvision's MNIST names its classes."""

    classes = ("zero", "one")

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.classes)}


def test_classes_that_are_a_property(fake):
    data = stood_in(fake(field("float32", 2), field("class", 3)), Named)
    assert (data.classes, data.class_to_idx) == (["0", "1", "2"], {"0": 0, "1": 1, "2": 2})
    assert stood_in(fake(field("float32", 2)), Named).class_to_idx == {"zero": 0, "one": 1}


def test_classes_that_the_constructor_named_before_it_failed(fake):
    data = broken()
    data.classes = ["cat", "dog"]
    fake(field("float32", 2), field("class", 3)).stand_in(data, OSError(), Broken.__init__, (), {})
    assert data.classes == ["0", "1", "2"]
