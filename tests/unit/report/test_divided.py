"""The sentence on what would run if the script divided its model."""

from dataclasses import replace

from advisor.core.changes import parse_split
from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import DivideLayers, ShardModel
from advisor.core.values import WHOLE
from advisor.report.document import Document
from advisor.report.recommendation import recommendation_document
from recommender.ranking.what_ifs import WhatIfGain
from tests.builders import make_estimate
from tests.findings import sample
from tests.recommendations import make_option, many_options
from tests.unit.report.printed import json_of, on_screen


def document_of(name: str, *changes: type[Finding]) -> Document:
    # Plans of a divided model are those that ask for changes here.
    estimate = make_estimate("H100", split=parse_split(name.split("+")) if changes else WHOLE)
    must = tuple(map(sample, changes))
    option = make_option("H100", 1, 20, what_if=name, estimate=estimate, script_changes=must)
    nothing = replace(many_options(3), recommended=None, frontier=())
    what_if = WhatIfGain(change=name, same=None, instead=option)
    return recommendation_document(nothing, top=5, what_if=what_if)


def printed(name: str, *changes: type[Finding]) -> str:
    return " ".join(on_screen(document_of(name, *changes), 80).split())


def test_it_names_machine_time_price_and_how_to_rank_such_plans():
    text = printed("zero-3", ShardModel)
    assert "It would fit if the script divided its model (zero-3): " in text
    assert "1 h for $20.00. For that, wrap blocks and model in FSDP" in text
    assert text.endswith("All such plans: --suppose zero-3.")


def test_a_split_of_two_kinds_is_asked_for_twice():
    text = printed("tensor-8+pipeline-2", DivideLayers)
    assert "--suppose tensor-8 --suppose pipeline-2." in text
    assert "divide each layer among 8 GPUs of a node and divide the layers into 2 stages" in text


def test_a_program_reads_the_plan():
    divided = json_of(document_of("zero-3", ShardModel))["divided"]
    assert (divided["what_if"], divided["gpu"]) == ("zero-3", "H100")
    # A change of one line is no plan of its own.
    assert json_of(document_of("bf16"))["divided"] is None
