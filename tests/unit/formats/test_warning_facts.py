"""Warnings of a trace: each code has types for its facts, words, and a place in files of both kinds."""

import json

import pytest

from advisor.core.errors import TraceError
from advisor.core.findings import TraceWarning
from advisor.core.findings.about_traces import EvaluationSeen, KernelsLeftOut, TorchUntested, World
from advisor.formats.trace_files import known_warning, read_trace, warning_of, write_trace
from advisor.payload.protocol import Warned
from advisor.report.words import in_names
from tests.builders import make_op, make_trace
from tests.findings import sample, texts

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
