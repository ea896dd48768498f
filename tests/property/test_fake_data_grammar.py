"""Laws of the ``--fake-data`` grammar: what is written is read back, anything else is an InputError."""

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import InputError
from advisor.profile.epoch import CLASS, DTYPES, FakeField, parse_fake_data

SIZES = st.lists(st.integers(1, 300), max_size=3).map(tuple)
TENSORS = st.tuples(SIZES, st.sampled_from(DTYPES))
LABELS = st.tuples(st.integers(1, 10**6).map(lambda n: (n,)), st.just(CLASS))
PARTS = st.lists(TENSORS | LABELS, min_size=1, max_size=5)


def written(field: FakeField) -> str:
    name = "" if field.name is None else f"{field.name}="
    shape = "x".join(map(str, field.shape)) + ":" if field.shape else ""
    return name + shape + field.kind


@given(PARTS, st.booleans())
def test_what_is_written_is_read_back(parts, named):
    fields = tuple(
        FakeField(name=f"part_{number}" if named else None, shape=shape, kind=kind)
        for number, (shape, kind) in enumerate(parts)
    )
    assert parse_fake_data(",".join(map(written, fields))) == fields


@given(st.text(max_size=40) | st.text(alphabet="=:,x 0123class float", max_size=40))
def test_any_other_text_is_an_input_error(text):
    try:
        fields = parse_fake_data(text)
    except InputError as error:
        assert "`profile.fake_data`" in str(error)  # noqa: PT017
    else:
        assert parse_fake_data(",".join(map(written, fields))) == fields
