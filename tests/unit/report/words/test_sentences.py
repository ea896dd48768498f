"""Every finding has a sentence, and programs read its facts."""

import json

import pytest

from advisor.core.errors import InputError
from advisor.core.findings import Finding
from advisor.core.findings.about_answers import EpochLengthUnknown
from advisor.core.findings.about_estimates import DataParallel, HostLaunches, MemoryByPart, OtherWorld
from advisor.core.findings.about_options import (
    ApprovalNeeded,
    LaterStart,
    RemovedByMemory,
    RemovedBySharding,
    RemovedBySpot,
    RentOrWait,
    Risk,
    Tie,
    Unknown,
)
from advisor.core.findings.about_spending import PricesImplausible, PricesNotLive, PricesStale
from advisor.report.words import error_text, finding_json, sentence, warnings_json
from advisor.report.words.sentences import in_names
from advisor.report.words.sentences import texts as written_texts
from advisor.report.writers.text_formats import to_json
from tests.findings import FACTS, sample, samples, texts
from tools.build_docs import finding_kinds

KINDS = tuple(finding_kinds())


@pytest.mark.parametrize("kind", KINDS)
def test_every_finding_has_a_sentence_of_its_facts(kind):
    for found in samples(kind):
        text = sentence(found)
        assert text.strip() == text != ""
        assert not text.endswith(".")
        assert "Finding(" not in text
        assert "{" not in text
        assert "None" not in text


def test_each_has_one_sentence_and_each_sentence_is_of_one():
    functions = {kind.__name__ for kind in in_names.registry} - {"object"}
    assert not functions & written_texts().keys()
    assert functions | written_texts().keys() == {kind.__name__ for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_programs_read_code_severity_and_facts(kind):
    document = json.loads(to_json({"finding": finding_json(sample(kind))}))["finding"]
    assert (document["code"], document["severity"]) == (kind.code, kind.severity.value)
    assert set(document["facts"]) == set(kind.fact_names)


def test_a_finding_within_another_is_told_and_read():
    risk = sample(Risk)
    assert "per hour assumed" in sentence(risk)
    assert finding_json(risk)["facts"]["rate_source"] == {
        "code": "preemption-rate",
        "severity": "note",
        "facts": dict(risk.rate_source.facts),
    }


@pytest.mark.parametrize(
    ("recovery", "num_zones", "end"),
    [
        ("wait", 0, "the median or more"),
        ("move", 1, "; when preempted, moves to the other zone of the region"),
        ("wait-or-on-demand", 0, "; continues on demand where spot would miss the deadline"),
        ("move-or-on-demand", 2, "the region; continues on demand where spot would miss the deadline"),
    ],
)
def test_a_risk_tells_how_the_job_recovers(recovery, num_zones, end):
    assert variant(Risk, recovery=recovery, num_zones=num_zones).endswith(end)


def test_braces_in_a_name_are_no_part_of_the_words():
    one = ApprovalNeeded(by="{by.__class__}", detail="x", file="f")
    assert sentence(one) == "needs approval by {by.__class__}: x (f)"
    assert sentence(texts("{0} {text}")[0]) == "{0} {text}"


def test_warnings_stand_beside_their_findings():
    warnings = [*texts("one"), Unknown(what="cluster-wait", names=["lab"])]
    document = json.loads(json.dumps(warnings_json(warnings)))
    assert document["warnings"] == ["one", sentence(Unknown(what="cluster-wait", names=["lab"]))]
    assert [one["code"] for one in document["warning_findings"]] == ["text", "unknown"]


def variant(kind: type[Finding], **facts: object) -> str:
    return sentence(kind(**{**FACTS[kind], **facts}))


def test_what_would_fit_depends_on_how_much_does():
    text = variant(RemovedByMemory)
    assert text == (
        "does not fit: needs 20 GiB, the GPU has 16 GiB; a batch of 32 instead of 64 would fit; the"
        " least slow change: activation checkpointing (12 GiB, 1.30 times as long)"
    )
    assert "profile the script" in variant(RemovedByMemory, fitting_share=None, fitting_batch_size=None)
    assert "state alone do not fit" in variant(RemovedByMemory, fitting_share=0.0, fitting_batch_size=0)
    assert "not even a batch of one" in variant(RemovedByMemory, fitting_share=0.01, fitting_batch_size=0)
    unknown = variant(RemovedByMemory, batch_size=None, fitting_batch_size=None)
    assert "a batch of about 50% of this one" in unknown


def test_what_preemptions_make_of_a_plan():
    assert variant(RemovedBySpot, best=None, checkpoint_interval_h=2.0) == (
        "refused: 73.5 h of training and $80.00 are expected with a checkpoint every 2 h, against 12.0 h on"
        " demand"
    )
    assert "; with one every 30 min: 14.0 h and $15.00" in variant(RemovedBySpot)
    assert "more than a century of training" in variant(RemovedBySpot, training_h=float("inf"))


def test_a_wait_that_never_pays_and_one_that_is_known():
    assert variant(RentOrWait, break_even_wait_s=-1.0).endswith("pays even without a wait at $10/h")
    assert variant(RentOrWait, mean_wait_s=7200.0).endswith("the wait is 2 h on average")


def test_shares_and_times_keep_their_units():
    assert "within 5 % in time and cost" in sentence(sample(Tie))
    assert "each kernel takes 2 us or more, each forward operator 5 us" in sentence(
        sample(HostLaunches, of="floor")
    )
    assert "takes the host 23 ms (14 ms .. 38 ms)" in sentence(sample(HostLaunches, of="step"))
    assert "buckets as backward completes them, kernels take 30 % longer" in sentence(sample(DataParallel))
    assert "peak + 5% fragmentation (12% at worst)" in sentence(sample(MemoryByPart))
    assert "(20:00 UTC)" in sentence(sample(LaterStart))


def test_an_error_speaks_flags_on_the_command_line_and_names_in_python():
    error = InputError("set iterations_per_epoch.", finding=sample(EpochLengthUnknown))
    assert str(error) == "set iterations_per_epoch."
    assert error_text(error).endswith(
        "(its data has no length): add --iterations-per-epoch N, or give --iterations N instead of --epochs;"
        " --samples N is the length of --fake-data."
    )
    assert error_text(InputError("no such file.")) == "no such file."


def test_the_age_of_prices():
    text = sentence(sample(PricesNotLive))
    assert text == (
        "1 of 2 prices are not live: aws 124 to 511 days old (2025-06-28 to 2026-07-20);"
        " `advisor prices refresh` pulls newer ones and needs no account"
    )
    one_day = {**FACTS[PricesNotLive]["ages"][0], "oldest_days": 124, "oldest_on": "2026-07-20"}
    same = variant(PricesNotLive, num_dated=2, ages=[one_day], is_public=False)
    assert same == "prices are not live: aws 124 days old (2026-07-20)"


def test_what_becomes_of_doubtful_prices():
    assert "could not price aws p5 on-demand in us-east-1 and 1 more: 3" in sentence(sample(PricesStale))
    assert "older than allowed and left out" in variant(PricesStale, is_kept=False)
    assert sentence(sample(PricesImplausible)).startswith("1 price of aws that no such machine can have")
    assert "2 prices of aws far from" in variant(PricesImplausible, is_kept=True, num_prices=2)


def test_who_was_profiled_alone_is_no_rank_of_one():
    for kind in (RemovedBySharding, OtherWorld):
        several, alone = (sentence(kind(num_ranks=ranks, num_gpus=16)) for ranks in (8, 1))
        assert several.startswith("the trace is of one of 8 ranks that share the model")
        assert alone.startswith("the script divides its model, and was profiled alone")
        assert "--world 16" in several
        assert "--world 16" in alone
