"""The grammar of ``--fake-data`` and the errors that propose it."""

import pytest

from advisor.core.errors import InputError
from advisor.profile.epoch import DTYPES, EXAMPLE, FakeField, parse_fake_data
from advisor.profile.failures import failure, fed_hint, missing_data_hint


def field(kind, *shape, name=None):
    return FakeField(name=name, shape=shape, kind=kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (EXAMPLE, (field("float32", 3, 224, 224), field("class", 1000))),
        ("1024:int64", (field("int64", 1024),)),
        ("float32", (field("float32"),)),
        ("3x4:torch.uint8", (field("uint8", 3, 4),)),
        (" 3x4 : bool , 2:class ", (field("bool", 3, 4), field("class", 2))),
        ("a=5:int64,b=int64", (field("int64", 5, name="a"), field("int64", name="b"))),
    ],
)
def test_what_can_be_written(text, expected):
    assert parse_fake_data(text) == expected


@pytest.mark.parametrize("kind", DTYPES)
def test_every_dtype_is_one_of_torchs(kind):
    torch = pytest.importorskip("torch")
    assert isinstance(getattr(torch, kind), torch.dtype)
    assert parse_fake_data(f"2:{kind}")[0].kind == kind


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("3x8:flaot32", ["character 1", "unknown kind 'flaot32'", "Did you mean 'float32'", EXAMPLE]),
        ("3x8:float32,10:klass", ["character 13", "'10:klass'", "'class'"]),
        ("3x0:float32", ["'0' is no size"]),
        ("3x-1:float32", ["'-1' is no size"]),
        ("3xx8:float32", ["'' is no size"]),
        ("3x8", ["unknown kind '3x8'"]),
        ("class", ["number of classes"]),
        ("3x10:class", ["number of classes"]),
        ("", ["character 1", "an empty field"]),
        ("3:int64,", ["character 9", "an empty field"]),
        ("3:4:int64", ["SIZExSIZE:KIND"]),
        ("a b=3:int64", ["'a b' is no name"]),
        ("a=3:int64,3:int64", ["name all fields"]),
        ("a=3:int64,a=3:int64", ["twice"]),
        ("99999x99999x99999:float32", ["too large"]),
    ],
)
def test_what_cannot_is_told_with_its_place(text, parts):
    with pytest.raises(InputError) as caught:
        parse_fake_data(text)
    for part in ("`profile.fake_data`", *parts):
        assert part in str(caught.value)


NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: "


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (f"{NO_FILE}'data/train.csv'", "'data/train.csv'"),
        (f"{NO_FILE}'data/train.bin'", "'data/train.bin'"),
        ("FileNotFoundError: Couldn't find any class folder in /data/imagenet.", "Its data set"),
        ("RuntimeError: Dataset not found or corrupted. You can use download=True", "Its data set"),
        ("DatasetNotFoundError: Dataset 'me/mine' doesn't exist on the Hub", "'me/mine'"),
        ("ConnectionError: Couldn't reach 'imdb' on the Hub (LocalEntryNotFoundError)", "'imdb'"),
        # Other errors have other reasons.
        ("ValueError: too few values", None),
        (f"{NO_FILE}'runs/model.pt'", None),
        (f"{NO_FILE}'checkpoints/last'", None),
        (f"{NO_FILE}'out/pytorch_model-00001-of-00002.bin'", None),
    ],
)
def test_a_missing_data_set_is_named_and_fake_data_proposed(message, name):
    hint = missing_data_hint(message)
    assert (hint == "") == (name is None)
    assert name is None or (name in hint and f"`profile.fake_data` {EXAMPLE}" in hint)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("KeyError: 'label'", "the form that its data set gives"),
        ("FileNotFoundError: 'vocabulary.txt'", "read elsewhere"),
    ],
)
def test_a_script_that_fails_on_fake_samples_is_told_why(message, words):
    assert words in fed_hint(message)
    recording = {"status": "crashed", "message": message, "fed_fake_data": True}
    error = failure(recording, script="t.py", python="python", returncode=0, log="", timeout_s=1.0)
    assert words in str(error)
