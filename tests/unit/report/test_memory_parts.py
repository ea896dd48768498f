"""Memory part by part as people and programs see it."""

from dataclasses import replace

import pytest

from advisor.core import values
from advisor.core.units import GIB
from advisor.predict.largest_batch import CHANGES
from advisor.report.estimates import memory_facts, memory_json
from advisor.report.words.estimate_notes import remedy_text
from tests.builders import make_estimate, make_trace

NEED = values.Interval(p10=15.0 * GIB, p50=17.0 * GIB, p90=20.0 * GIB)
MEMORY = values.MemoryEstimate(
    parts={values.MemoryPart.WEIGHTS: 7 * GIB, values.MemoryPart.ACTIVATIONS: 10 * GIB}, need_bytes=NEED
)
REMEDY = values.Remedy(
    changes=("checkpointing", "zero-3"),
    batch_size=64,
    need_bytes=values.Interval(p10=5.0 * GIB, p50=6.0 * GIB, p90=7.0 * GIB),
    fit=values.Fit.LIKELY,
    slower=values.Interval(p10=1.2, p50=1.3, p90=1.4),
)
LARGEST = values.LargestBatch(share=0.5, certain=24, likely=32)
TIGHT: values.IterationEstimate = make_estimate(memory=MEMORY, largest_batch=LARGEST, remedies=(REMEDY,))


def lines(estimate: values.IterationEstimate, **changes: object) -> dict[str, str]:
    return {fact.name: fact.value for fact in memory_facts(estimate, make_trace(**changes))}


def test_parts_the_need_and_what_would_fit():
    assert lines(TIGHT) == {
        "weights": "7 GiB",
        "activations": "10 GiB",
        "needed": "17 GiB (15 GiB .. 20 GiB)",
        "available": "16 GiB, not enough",
        "largest batch": "24, and likely up to 32; 64 was profiled",
        "would fit": "activation checkpointing and sharding the model (FSDP, ZeRO-3)"
        " (6 GiB, 1.30 times as long), likely",
    }


def test_how_surely_it_fits_and_a_part_of_nothing_has_no_line():
    for limit_gib, words in ((16, "16 GiB, not enough"), (18, "18 GiB, likely"), (24, "24 GiB")):
        assert lines(replace(TIGHT, memory_limit_bytes=limit_gib * GIB))["available"] == words
    parts = MEMORY.parts | {values.MemoryPart.TEMPORARY: 0}
    assert "temporary" not in lines(replace(TIGHT, memory=replace(MEMORY, parts=parts)))


def test_one_figure_where_certain_and_likely_agree():
    same = replace(TIGHT, largest_batch=replace(LARGEST, certain=32))
    assert lines(same)["largest batch"] == "32; 64 was profiled"
    unknown = replace(TIGHT, largest_batch=values.LargestBatch(share=0.5, certain=None, likely=None))
    assert lines(unknown)["largest batch"] == "0.5 of the profiled one"
    assert {fact.name: fact.value for fact in memory_facts(same)}["largest batch"] == "32"


def test_the_command_that_confirms_it_changes_the_batch_alone():
    arguments = ("--lr", "64", "--batch-size", "64", "x y")
    facts = lines(TIGHT, script="a script.py", arguments=arguments)
    assert facts["to confirm"] == "advisor predict 'a script.py' --gpu X -- --lr 64 --batch-size 32 'x y'"
    # Samples of a pass are what the script takes.
    assert lines(TIGHT, arguments=("--batch", "16"), accumulation=4)["to confirm"].endswith("-- --batch 8")
    none = replace(TIGHT, largest_batch=values.LargestBatch(share=0.0, certain=0, likely=0))
    assert "to confirm" not in lines(none, arguments=arguments)


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        ((), {}),
        (("--lr", "64"), {}),
        (("--batch-size", "32"), {}),
        (("--batch-size", "64", "--eval-batch", "64"), {}),
        (("--batch-size", "64"), {"batch_size": None}),
    ],
)
def test_no_command_where_nobody_knows_which_argument_it_is(arguments, changes):
    assert "to confirm" not in lines(TIGHT, arguments=arguments, **changes)


def test_an_unknown_need_is_told():
    unknown = make_estimate(memory=None)
    assert lines(unknown) == {"needed": "unknown", "available": "16 GiB"}
    assert memory_json(unknown) is None


def test_json_has_all_of_it():
    document = memory_json(TIGHT)
    assert document is not None
    assert document["parts"] == {"weights_bytes": 7 * GIB, "activations_bytes": 10 * GIB}
    assert document["need_bytes"] == {"p10": 15 * GIB, "p50": 17 * GIB, "p90": 20 * GIB}
    assert (document["fit"], document["largest_batch"]) == ("no", {"share": 0.5, "certain": 24, "likely": 32})
    (remedy,) = document["remedies"]  # type: ignore[misc]
    assert remedy["changes"] == ("checkpointing", "zero-3")
    assert remedy["slower"] == {"p10": 1.2, "p50": 1.3, "p90": 1.4}


def test_every_change_has_words():
    for name in CHANGES:
        assert remedy_text({"changes": [name], "needed_bytes": GIB, "slower": 1.0})
