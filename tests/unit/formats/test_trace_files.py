"""Traces and their warnings survive a round trip; anything else says what is wrong."""

import gzip
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import TraceError
from advisor.core.findings import TraceWarning
from advisor.core.findings.about_traces import EvaluationSeen, KernelsLeftOut, TorchUntested, World
from advisor.core.values import Collective, Flow, Kernel, Op, Phase, Role, TensorSpec
from advisor.formats.trace_files import (
    SCHEMA_VERSION,
    is_trace,
    known_warning,
    read_trace,
    warning_of,
    write_trace,
)
from advisor.payload.protocol import Warned
from advisor.report.words import in_names
from tests.builders import make_op, make_trace
from tests.findings import sample, texts

KERNEL = Kernel(
    name="k", grid=(1, 2, 3), block=(4, 5, 6), registers_per_thread=32, shared_bytes=None, duration_s=1e-6
)
SHAPES = st.lists(st.integers(0, 1000), max_size=4).map(tuple)
ATTRIBUTES = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=5)
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3).map(tuple),
        max_leaves=5,
    ),
    max_size=4,
)
TENSORS = SHAPES.flatmap(
    lambda shape: st.builds(
        TensorSpec,
        shape=st.just(shape),
        dtype=st.sampled_from(["float32", "int64"]),
        stride=st.none() | st.tuples(*(st.integers(0, 10**6) for _ in shape)),
    )
)
OPS = st.builds(
    Op,
    name=st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=20),
    phase=st.sampled_from(Phase),
    inputs=st.lists(TENSORS, max_size=3).map(tuple),
    outputs=st.lists(TENSORS, max_size=2).map(tuple),
    attributes=ATTRIBUTES,
    flops=st.integers(0, 10**15),
    bytes=st.integers(0, 10**12),
    count=st.integers(1, 1000),
    measured_s=st.none() | st.floats(0, 1),
    kernels=st.just(()) | st.just((KERNEL,)),
)


def followed(op: Op) -> st.SearchStrategy[Op]:
    """The operator with each of its calls from anywhere, in at most two flows."""
    numbers = st.integers(0, 10**6)
    flows = st.builds(
        Flow,
        id=st.integers(len(Role), 10**6),
        count=st.just(1),
        sources=st.tuples(*(numbers for _ in op.inputs)),
        new_parameters=st.integers(0, 9),
        forward=st.none() | numbers,
        is_of_view=st.booleans(),
    )
    return st.tuples(flows, flows).map(
        lambda two: replace(op, flows=(two[0], replace(two[1], count=op.count)), count=op.count + 1)
    )


@given(st.lists(OPS | OPS.flatmap(followed), min_size=1, max_size=5))
def test_round_trip(tmp_path_factory, ops):
    collective = Collective(kind="all_reduce", num_bytes=10, world_size=8, count=2)
    collectives = (collective,)
    trace = make_trace(
        ops=tuple(ops),
        collectives=collectives,
        warnings=(*texts("a"), *map(sample, TraceWarning.__subclasses__())),
        world_size=8,
        is_sharded=True,
        has_sparse_gradients=True,
        awaits_reductions=True,
        compile_mode="max-autotune",
        loader_cpu_s_per_sample=0.02,
        batch_variation=0.38,
        parallel_by="transformers",
    )
    path = tmp_path_factory.mktemp("traces") / "t.json.gz"
    write_trace(trace, path)
    assert read_trace(path) == trace


def rewritten(path, change, trace=None):
    """A trace's file, its document changed in place or to what the change returns."""
    write_trace(make_trace() if trace is None else trace, path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps(change(document) or document))
    return path


LATER = (
    "world_size", "is_sharded", "has_sparse_gradients", "awaits_reductions", "loader_cpu_s_per_sample",
    "compile_mode", "launch", "batch_variation", "parallel_by",
)  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        lambda document: {name: value for name, value in document.items() if name not in LATER},
        # Before operands were followed.
        lambda document: [entry.pop("flows") for entry in document["ops"]] and document,
        # Tools such as jq sort the names: the operators may stand anywhere.
        lambda document: dict(sorted(document.items())),
        lambda document: dict(sorted(document.items(), reverse=True)),
    ],
)
def test_older_files_and_sorted_ones(tmp_path, change):
    assert read_trace(rewritten(tmp_path / "t.json", change)) == make_trace()


FLOW = {"id": 3, "count": 1, "sources": [0], "new_parameters": 0, "forward": None, "is_of_view": False}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": 2}, "id of flows of aten::op0 is 2"),
        ({"count": 2}, "the flows of aten::op0 are not of its 1 calls"),
        ({"count": 0}, "count of flows of aten::op0 is 0"),
        ({"sources": []}, "a flow of aten::op0 has 0 sources of 1 operands"),
        ({"sources": [-1]}, "sources of flows of aten::op0 is -1"),
        ({"sources": "3"}, "sources of flows of aten::op0 is '3'"),
        ({"new_parameters": True}, "new_parameters of flows of aten::op0 is True"),
        ({"forward": 0.5}, "forward of flows of aten::op0 is 0.5"),
        ({"is_of_view": 1}, "is_of_view of flows of aten::op0 is 1"),
    ],
)
def test_flows_that_cannot_be(tmp_path, changes, message):
    path = rewritten(
        tmp_path / "t.json",
        lambda document: document["ops"][0].update(flows=[FLOW | changes]),
        make_trace(ops=(make_op("aten::op0"),)),
    )
    with pytest.raises(TraceError, match=re.escape(message)):
        read_trace(path)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_plain_and_zipped(tmp_path, name):
    write_trace(make_trace(), tmp_path / name)
    assert read_trace(tmp_path / name) == make_trace()
    assert is_trace(tmp_path / name)
    assert (tmp_path / name).read_bytes()[:1] == (b"\x1f" if name.endswith("gz") else b"{")
    # Nothing else is left behind.
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_equal_traces_are_equal_files(tmp_path):
    for name in ("a.json.gz", "b.json.gz"):
        write_trace(make_trace(), tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(TraceError, match="`out`"):
        write_trace(make_trace(), tmp_path / "missing" / "t.json")


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "t.json.gz"
    write_trace(make_trace(ops=tuple(make_op(f"aten::op{i}") for i in range(50))), path)
    return path


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated(written, keep):
    raw = written.read_bytes()
    written.write_bytes(raw[: int(len(raw) * keep)])
    with pytest.raises(TraceError, match=r"truncated|not a trace"):
        read_trace(written)


def test_a_flipped_byte(written):
    raw = bytearray(written.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    written.write_bytes(bytes(raw))
    with pytest.raises(TraceError):
        read_trace(written)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (None, "advisor profile"),
        (b'{"traceEvents": []}', "not a trace of advisor profile"),
        (bytes(range(256)), "damaged"),
        (gzip.compress(b"hello"), "damaged"),
        (b'{"format": "advisor-trace", "x": ' + b"[" * 100_000, "damaged"),
    ],
)
def test_what_is_no_trace(tmp_path, payload, words):
    path = tmp_path / "t.json"
    if payload is not None:
        path.write_bytes(payload)
    assert is_trace(path) == (b"advisor-trace" in (payload or b""))
    with pytest.raises(TraceError, match=words):
        read_trace(path)


def of_op(**members):
    return lambda document: document["ops"][0].update(members)


def of_tensor(**members):
    return lambda document: document["ops"][0]["inputs"][0].update(members)


def attribute(value):
    return lambda document: document["ops"][0]["attributes"].update(a=value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda document: document.update(schema_version=SCHEMA_VERSION + 1), "upgrade gpu-advisor"),
        *(
            (lambda document, name=name: {key: document[key] for key in document if key != name}, "damaged")
            for name in ("ops", "memory", "batch_size", "precision")
        ),
        (of_op(flops=-1), "flops"),
        (of_op(flops="many"), "flops"),
        (of_op(bytes=1.5), "bytes"),
        (of_op(count=True), "count"),
        (of_op(measured_s="slow"), "measured_s"),
        (of_op(measured_s=-1.0), "measured_s"),
        (lambda document: document.update(ops=[]), "no operators"),
        (of_tensor(shape=[1] * 65), "a tensor of aten::mm has 65 dimensions"),
        (of_tensor(stride=[1] * 65), "a tensor of aten::mm has 65 dimensions"),
        (of_tensor(stride={}), "stride of inputs of aten::mm is {}"),
        (of_tensor(stride=[1, 1, 1]), "a tensor of aten::mm has 3 strides and 2 dimensions"),
        (attribute([[[[[[[[[[1]]]]]]]]]]), "a of attributes of aten::mm is nested too deeply"),
    ],
)
def test_traces_that_cannot_be(tmp_path, change, words):
    path = rewritten(tmp_path / "t.json", change)
    with pytest.raises(TraceError, match=words):
        read_trace(path)


def test_attributes_may_be_nested(tmp_path):
    op = read_trace(rewritten(tmp_path / "t.json", attribute([[[1, 2]]]))).ops[0]
    assert op.attributes["a"] == (((1, 2),),)


def test_a_kernel_without_threads(tmp_path):
    empty = replace(KERNEL, grid=(0, 1, 1))
    write_trace(make_trace(ops=(replace(make_op(), kernels=(empty,)),)), tmp_path / "t.json")
    with pytest.raises(TraceError, match="grid"):
        read_trace(tmp_path / "t.json")


def test_alike_operators_become_one_object_and_others_stay_apart(tmp_path):
    one, other = make_op("aten::mm", flops=1), make_op("aten::mm", flops=True)
    write_trace(make_trace(ops=(one, other, one, replace(one, count=2))), tmp_path / "t.json")
    with pytest.raises(TraceError, match="flops of aten::mm is True"):  # though 1 == True
        read_trace(tmp_path / "t.json")
    write_trace(make_trace(ops=(one, one, replace(one, count=2))), tmp_path / "t.json")
    first, second, twice = read_trace(tmp_path / "t.json").ops
    assert first is second is not twice
    assert (first, twice) == (one, replace(one, count=2))


def test_more_after_the_end_is_damage(tmp_path):
    path = tmp_path / "t.json"
    write_trace(make_trace(), path)
    path.write_text(path.read_text() + "}")
    with pytest.raises(TraceError, match="there is more after its end"):
        read_trace(path)


WARNINGS = (*texts("a"), *map(sample, TraceWarning.__subclasses__()))


def test_the_parent_knows_whatever_a_child_warns_of():
    assert all(known_warning(code.value) is not None for code in Warned)


@pytest.mark.parametrize("warning", WARNINGS, ids=lambda one: one.code)
def test_the_facts_of_each_are_of_their_types(warning):
    facts = dict(warning.facts)
    assert warning_of(type(warning), facts) == warning
    for name in facts:
        for other in (object(), {"a": 1}, -1, 2**63, float("nan"), [[]]):
            with pytest.raises(ValueError, match=name):
                warning_of(type(warning), facts | {name: other})
        if not hasattr(type(warning), name):
            with pytest.raises(ValueError, match=f"facts of {warning.code}"):
                warning_of(type(warning), {key: fact for key, fact in facts.items() if key != name})
    with pytest.raises(ValueError, match="facts of"):
        warning_of(type(warning), facts | {"more": 1})


def test_numbers_and_truth_are_not_mixed_up():
    for is_newer in (1, "yes"):
        with pytest.raises(ValueError, match="is_newer"):
            warning_of(TorchUntested, {"version": "2.14", "tested": "2.13", "is_newer": is_newer})
    with pytest.raises(ValueError, match="num_batches"):
        warning_of(EvaluationSeen, {"where": "left-out", "num_batches": True})
    assert (
        warning_of(KernelsLeftOut, {"which": "exchange", "num_kernels": 1, "time_s": 0}).facts["time_s"] == 0
    )


@pytest.fixture
def path(tmp_path):
    """A file with every warning there is."""
    path = tmp_path / "t.json"
    write_trace(make_trace(ops=(make_op(),), warnings=WARNINGS), path, words=in_names)
    return path


def test_every_warning_survives_its_file(path):
    assert read_trace(path).warnings == WARNINGS


def test_an_older_advisor_reads_sentences(path):
    document = json.loads(path.read_text())
    assert document["warnings"] == list(map(in_names, WARNINGS))
    assert document["schema_version"] == 1


def test_sentences_of_an_older_advisor_are_texts(path):
    document = json.loads(path.read_text())
    del document["warning_findings"]
    path.write_text(json.dumps(document))
    assert read_trace(path).warnings == texts(*map(in_names, WARNINGS))


@pytest.mark.parametrize(
    "finding", [{"code": "of-tomorrow", "facts": {"any": ["thing"]}}, {"code": "budget", "facts": {}}]
)
def test_a_code_of_a_newer_advisor_or_of_no_trace_is_its_sentence(path, finding):
    document = json.loads(path.read_text())
    document["warnings"][1] = "something new"
    document["warning_findings"][1] = finding
    path.write_text(json.dumps(document))
    assert read_trace(path).warnings == (WARNINGS[0], *texts("something new"), *WARNINGS[2:])


def test_wrong_facts_are_damage(path):
    document = json.loads(path.read_text())
    document["warning_findings"][1]["facts"] = {"num": 1}
    path.write_text(json.dumps(document))
    with pytest.raises(TraceError, match="is damaged: the facts of") as failed:
        read_trace(path)
    assert "\n" not in str(failed.value)


def test_without_words_a_file_has_the_codes(tmp_path):
    warnings = (*texts("as somebody wrote"), sample(World, of="one"))
    write_trace(make_trace(ops=(make_op(),), warnings=warnings), tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["warnings"] == ["as somebody wrote", "world"]
    assert read_trace(tmp_path / "t.json").warnings == warnings
