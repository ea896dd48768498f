"""Laws of GPU names: every way to write a name means the same GPU."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import UnknownGpuError
from advisor.core.gpus import load_gpus, normal_form, parse_gpu_request, resolve_gpu, resolve_gpus

GPUS = tuple(load_gpus().values())
NAMES = st.sampled_from([(gpu, name) for gpu in GPUS for name in (gpu.name, *gpu.aliases)])
FAMILIES = st.sampled_from([(gpu, family) for gpu in GPUS for family in gpu.families])
SEPARATORS = st.sampled_from([" ", "-", "_", "  "])
BRANDS = st.sampled_from(["", "NVIDIA ", "nvidia ", "Tesla ", "NVIDIA GeForce "])


@given(st.text())
def test_the_normal_form_of_a_normal_form_is_itself(text):
    assert normal_form(normal_form(text)) == normal_form(text)


@given(NAMES, SEPARATORS, st.booleans())
def test_separators_and_letter_case_do_not_count(named, separator, upper):
    gpu, name = named
    written = separator.join(name.replace("-", " ").split())
    assert resolve_gpu(written.upper() if upper else written.lower()) is gpu


@given(st.sampled_from(GPUS), BRANDS)
def test_a_brand_before_the_catalog_name_does_not_count(gpu, brand):
    assert resolve_gpu(brand + gpu.name) is gpu


@given(NAMES, st.sets(st.integers(1, 64), min_size=1))
def test_a_gpu_string_round_trips(named, counts):
    gpu, name = named
    request = parse_gpu_request(f"{name}:{','.join(map(str, counts))}")
    assert request.gpus == (gpu,)
    assert request.counts == tuple(sorted(counts))


@given(st.sampled_from(GPUS), st.integers(1, 64), st.integers(0, 64))
def test_a_range_holds_both_ends(gpu, low, more):
    request = parse_gpu_request(f"{gpu.name}:{low}..{low + more}")
    assert request.counts == tuple(range(low, low + more + 1))


@given(FAMILIES)
def test_a_family_holds_exactly_the_gpus_that_say_so(named):
    _, family = named
    members = tuple(gpu for gpu in GPUS if family in gpu.families)
    assert resolve_gpus(family) == members


@given(NAMES, st.sampled_from("xqz789"))
def test_a_longer_name_never_matches_by_its_beginning(named, tail):
    gpu, name = named
    try:
        gpus = resolve_gpus(name + tail)
    except UnknownGpuError:
        return
    assert normal_form(name + tail) != normal_form(name)
    assert all(normal_form(name + tail) in _forms(other) for other in gpus), gpu.name


def _forms(gpu) -> set[str]:
    return {normal_form(name) for name in (gpu.name, *gpu.aliases, *gpu.families)}


@given(st.text(max_size=20))
def test_any_text_is_a_gpu_or_an_unknown_gpu(text):
    with contextlib.suppress(UnknownGpuError):
        assert resolve_gpus(text)
