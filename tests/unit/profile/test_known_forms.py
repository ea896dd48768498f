"""Calls of a known form are answered as FakeTensorMode answered the first of them."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: E402

from advisor.payload.fake import known_forms  # noqa: E402 - needs torch
from advisor.payload.fake.gpu import CUDA  # noqa: E402
from advisor.payload.fake.known_forms import KnownForms  # noqa: E402

pytestmark = pytest.mark.torch
aten = torch.ops.aten


class NoDevice(FakeTensorMode):
    """For a machine without a GPU."""

    avoid_device_init = True


class Forms:
    """Known forms over a FakeTensorMode whose work is counted."""

    def __init__(self) -> None:
        self.mode = NoDevice(allow_non_fake_inputs=True)
        self.num_worked_out = 0
        self.known = KnownForms(self.mode, self._work)
        self.known.is_used = True

    def _work(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        self.num_worked_out += 1
        return self.mode.dispatch(func, types, args, kwargs)

    def tensor(self, *shape: int, dtype: Any = None) -> Any:
        return FakeTensor(self.mode, torch.empty(shape, dtype=dtype, device="meta"), CUDA)

    def __call__(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        return self.known.answer(func, (), args, kwargs)[0]

    def learns(self, func: Any, *args: Any, **kwargs: Any) -> bool:
        """Whether the second of two equal calls is answered from memory."""
        self(func, *args, **kwargs)
        before = self.num_worked_out
        self(func, *args, **kwargs)
        return self.num_worked_out == before


@pytest.fixture
def forms():
    return Forms()


def facts(tensor: Any) -> tuple[Any, ...]:
    return (tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype, tensor.fake_device,
            tensor.untyped_storage().nbytes(), torch._C._dispatch_key_set(tensor))  # fmt: skip


CALLS = {
    "a new tensor": lambda forms: (aten.mm.default, forms.tensor(4, 3), forms.tensor(3, 5)),
    "a view": lambda forms: (aten.transpose.int, forms.tensor(4, 3), 0, 1),
    "a part": lambda forms: (aten.slice.Tensor, forms.tensor(4, 3), 0, 1, 3),
    "an unsafe view": lambda forms: (aten._unsafe_view.default, forms.tensor(4, 3), [2, 6]),
    "several views": lambda forms: (aten.split.Tensor, forms.tensor(4, 3), 2),
    "several tensors": lambda forms: (
        aten.native_layer_norm.default, forms.tensor(4, 3), [3], None, None, 1e-5,
    ),
    "a list of tensors": lambda forms: (aten._foreach_add.Scalar, [forms.tensor(2), forms.tensor(3)], 1),
    "integers as indices": lambda forms: (
        aten.embedding.default, forms.tensor(9, 3), forms.tensor(4, dtype=torch.int64),
    ),
}  # fmt: skip


def test_a_list_is_learnt_without_comparing_each_tensor_with_each(forms, monkeypatch):
    original = FakeTensor.untyped_storage
    num_asked = 0

    def counted(tensor: Any) -> Any:
        nonlocal num_asked
        num_asked += 1
        return original(tensor)

    tensors = [forms.tensor(2) for _ in range(100)]
    monkeypatch.setattr(FakeTensor, "untyped_storage", counted, raising=False)
    assert forms.learns(aten._foreach_add.Scalar, tensors, 1)
    assert num_asked < 20 * len(tensors)


@pytest.mark.parametrize("name", CALLS)
def test_a_known_answer_is_like_the_first(forms, name):
    func, *args = CALLS[name](forms)
    first = forms(func, *args)
    forms(func, *args)  # what FakeTensorMode took apart is learnt from its own cache
    num_worked_out = forms.num_worked_out
    last = forms(func, *args)
    assert forms.num_worked_out == num_worked_out
    assert isinstance(first, type(last))
    pairs = zip(first, last, strict=True) if isinstance(first, (list, tuple)) else [(first, last)]
    for one, other in pairs:
        assert facts(one) == facts(other)
        assert vars(one) == vars(other)


@pytest.mark.parametrize("name", ["a view", "a part", "an unsafe view", "several views"])
def test_a_view_shares_the_storage_of_its_own_input(forms, name):
    func, source, *args = CALLS[name](forms)
    forms(func, source, *args)
    other = forms.tensor(*source.shape)
    made = forms(func, other, *args)
    for view in made if isinstance(made, (list, tuple)) else [made]:
        assert view.untyped_storage()._cdata == other.untyped_storage()._cdata


def test_two_new_tensors_share_nothing(forms):
    left, right = forms.tensor(4, 3), forms.tensor(3, 5)
    made = [forms(aten.mm.default, left, right) for _ in range(3)]
    assert len({tensor.untyped_storage()._cdata for tensor in made}) == 3


def test_work_in_place_returns_the_tensor_itself(forms):
    one, other = forms.tensor(3), forms.tensor(3)
    assert forms(aten.add_.Scalar, one, 1) is one
    assert forms(aten.add_.Scalar, other, 1) is other
    assert forms.num_worked_out == 1


def test_one_tensor_twice_tells_not_which_of_them_is_returned(forms):
    first, out = forms.tensor(3), forms.tensor(3)
    forms(aten.add.out, out, out, out=out)
    assert forms(aten.add.out, first, first, out=out) is out


def test_an_integer_a_float_and_a_truth_are_different_forms(forms):
    counts = forms.tensor(3, dtype=torch.int64)
    for _ in range(2):
        dtypes = [forms(aten.add.Tensor, counts, number).dtype for number in (1, 1.0, True)]
        assert dtypes == [torch.int64, torch.float32, torch.int64]


def test_the_default_dtype_is_part_of_the_form(forms):
    counts = forms.tensor(3, dtype=torch.int64)
    forms(aten.add.Tensor, counts, 1.0)
    torch.set_default_dtype(torch.float64)
    try:
        assert forms(aten.add.Tensor, counts, 1.0).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_inference_tensors_are_their_own_form(forms):
    source = forms.tensor(3)
    plain = forms(aten.neg.default, source)
    with torch.inference_mode():
        inferred = forms(aten.neg.default, source)
    assert (plain.is_inference(), inferred.is_inference()) == (False, True)


@pytest.mark.parametrize(
    "call",
    [
        lambda forms: (aten.resize_.default, forms.tensor(3), [6]),
        lambda forms: (aten.is_same_size.default, forms.tensor(3), forms.tensor(3)),
        lambda forms: (aten.mul.Tensor, forms.tensor(3), torch.tensor(2.0)),
        lambda forms: (aten._conj.default, forms.tensor(3, dtype=torch.complex64)),
    ],
    ids=["changes the form", "is a question", "takes a real tensor", "is conjugated"],
)
def test_what_follows_from_more_is_worked_out_each_time(forms, call):
    assert not forms.learns(*call(forms))


def test_switched_off_it_works_everything_out(forms):
    forms.known.is_used = False
    func, *args = CALLS["a new tensor"](forms)
    assert not forms.learns(func, *args)


def test_a_number_that_always_changes_does_not_fill_the_memory(forms, monkeypatch):
    monkeypatch.setattr(known_forms, "_MOST_FORMS", 2)
    source = forms.tensor(3)
    for number in range(4):
        forms(aten.add.Tensor, source, float(number))
    assert len(forms.known._calls) == 2
