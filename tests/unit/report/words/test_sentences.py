"""Every code has its words, all words have a code, and no sentence loses a fact."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from dataclasses import replace

import pytest

from advisor.core.errors import InputError
from advisor.core.findings import Code, Finding, finding
from advisor.report import words
from advisor.report.words import WORDS, error_text, finding_json, sentence, warnings_json
from advisor.report.writers.text_formats import to_json
from tests.findings import FACTS, sample, texts

MODULES = [
    importlib.import_module(f"{words.__name__}.{one.name}")
    for one in pkgutil.iter_modules(words.__path__)
    if one.name not in ("sentences", "table")
]
# They are no finding's: another table of the same figures has them, too.
SHARED = {"basis", "at_least", "of_rank", "remedy_text"}


def test_every_code_has_words_in_one_table() -> None:
    tables = [
        table
        for module in MODULES
        for name, table in vars(module).items()
        if name.isupper() and name[0] != "_"
    ]
    tables = [table for table in tables if isinstance(table, dict)]
    assert set(WORDS) == set(Code)
    assert sum(map(len, tables)) == len(Code) - len({Code.TEXT})


def test_every_function_of_words_has_a_code() -> None:
    functions = {
        function
        for module in MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_") and name not in SHARED
    }
    assert functions == {words for words in WORDS.values() if callable(words)}


@pytest.mark.parametrize("code", Code)
def test_every_code_has_a_sentence_of_its_facts(code: Code) -> None:
    text = sentence(sample(code))
    assert text.strip() == text != ""
    assert not text.endswith(".")
    assert "Finding(" not in text
    assert "{" not in text


@pytest.mark.parametrize("code", FACTS)
def test_a_fact_that_words_need_cannot_be_left_out(code: Code) -> None:
    for name in FACTS[code]:
        facts = {key: fact for key, fact in FACTS[code].items() if key != name}
        words_of_code = WORDS[code]
        if isinstance(words_of_code, str) and f"{{{name}" not in words_of_code:
            continue  # for programs alone
        with pytest.raises((KeyError, TypeError)):
            sentence(Finding(code, facts))


@pytest.mark.parametrize("code", Code)
def test_programs_read_code_severity_and_facts(code: Code) -> None:
    document = json.loads(to_json({"finding": finding_json(sample(code))}))["finding"]
    assert (document["code"], document["severity"]) == (code.value, code.severity.value)
    assert set(document["facts"]) == set(FACTS.get(code, {}))


def test_a_finding_within_another_is_told_and_read() -> None:
    risk = sample(Code.RISK_PREEMPTION)
    assert "per hour assumed" in sentence(risk)
    assert finding_json(risk)["facts"]["rate_source"] == {
        "code": "rate-assumed",
        "severity": "note",
        "facts": FACTS[Code.RATE_ASSUMED],
    }


def test_braces_in_a_name_are_no_part_of_the_words() -> None:
    one = Finding(Code.APPROVAL_NEEDED, {"by": "{by.__class__}", "detail": "x", "file": "f"})
    assert sentence(one) == "needs approval by {by.__class__}: x (f)"
    assert sentence(texts("{0} {text}")[0]) == "{0} {text}"


def test_warnings_stand_beside_their_findings() -> None:
    warnings = [*texts("one"), sample(Code.CLUSTER_WAIT_UNKNOWN)]
    document = json.loads(json.dumps(warnings_json(warnings)))
    assert document["warnings"] == ["one", sentence(sample(Code.CLUSTER_WAIT_UNKNOWN))]
    assert [one["code"] for one in document["warning_findings"]] == ["text", "cluster-wait-unknown"]


def variant(code: Code, **facts: object) -> str:
    return sentence(replace(sample(code), facts={**FACTS[code], **facts}))


def test_what_would_fit_depends_on_how_much_does() -> None:
    text = variant(Code.MEMORY)
    assert text == (
        "does not fit: needs 20 GiB, the GPU has 16 GiB; a batch of 32 instead of 64 would fit; the"
        " least slow change: activation checkpointing (12 GiB, 1.30 times as long)"
    )
    assert "profile the script" in variant(Code.MEMORY, fitting_share=None, fitting_batch_size=None)
    assert "state alone do not fit" in variant(Code.MEMORY, fitting_share=0.0, fitting_batch_size=0)
    assert "not even a batch of one" in variant(Code.MEMORY, fitting_share=0.01, fitting_batch_size=0)
    unknown = variant(Code.MEMORY, batch_size=None, fitting_batch_size=None)
    assert "a batch of about 50% of this one" in unknown


def test_what_preemptions_make_of_a_plan() -> None:
    assert variant(Code.SPOT, best=None, checkpoint_interval_h=2.0) == (
        "refused: 73.5 h of training and $80.00 are expected with a checkpoint every 2 h, against 12.0 h on"
        " demand"
    )
    assert "; with one every 30 min: 14.0 h and $15.00" in variant(Code.SPOT)
    assert "more than a century of training" in variant(Code.SPOT, training_h=float("inf"))


def test_a_wait_that_never_pays_and_one_that_is_known() -> None:
    assert variant(Code.RENT_OR_WAIT, break_even_wait_s=-1.0).endswith("pays even without a wait at $10/h")
    assert variant(Code.RENT_OR_WAIT, mean_wait_s=7200.0).endswith("the wait is 2 h on average")


def test_shares_and_times_keep_their_units() -> None:
    assert "within 5 % in time and cost" in sentence(sample(Code.TIE))
    assert "each kernel takes 2 us or more, each forward operator 5 us" in sentence(sample(Code.KERNEL_FLOOR))
    assert "takes the host 23 ms (14 ms .. 38 ms)" in sentence(sample(Code.LAUNCHING))
    assert "buckets as backward completes them, kernels run 30 % slower" in sentence(
        sample(Code.DATA_PARALLEL)
    )
    assert "peak + 5% fragmentation (12% at worst)" in sentence(sample(Code.MEMORY_BY_PART))
    assert "(20:00 UTC)" in sentence(sample(Code.LATER_START))


def test_an_error_speaks_flags_on_the_command_line_and_names_in_python() -> None:
    error = InputError("set iterations_per_epoch.", finding=sample(Code.EPOCH_LENGTH_UNKNOWN))
    assert str(error) == "set iterations_per_epoch."
    assert error_text(error).endswith(
        "(its data has no length): add --iterations-per-epoch N, or give --iterations N instead of --epochs;"
        " --samples N is the length of --fake-data."
    )
    assert error_text(InputError("no such file.")) == "no such file."


def test_the_age_of_prices() -> None:
    text = sentence(sample(Code.PRICES_NOT_LIVE))
    assert text == (
        "1 of 2 prices are not live: aws 124 to 511 days old (2025-06-28 to 2026-07-20);"
        " `advisor prices refresh` pulls newer ones and needs no account"
    )
    one_day = {**FACTS[Code.PRICES_NOT_LIVE]["ages"][0], "oldest_days": 124, "oldest_on": "2026-07-20"}
    same = variant(Code.PRICES_NOT_LIVE, num_dated=2, ages=[one_day], is_public=False)
    assert same == "prices are not live: aws 124 days old (2026-07-20)"


def test_what_becomes_of_doubtful_prices() -> None:
    assert "could not price aws p5 on-demand in us-east-1 and 1 more: 3" in sentence(
        sample(Code.PRICES_STALE)
    )
    assert "older than allowed and left out" in variant(Code.PRICES_STALE, is_kept=False)
    assert sentence(sample(Code.PRICES_IMPLAUSIBLE)).startswith(
        "1 price of aws that no such machine can have"
    )
    assert "2 prices of aws far from" in variant(Code.PRICES_IMPLAUSIBLE, is_kept=True, num_prices=2)


def test_who_was_profiled_alone_is_no_rank_of_one() -> None:
    for code in (Code.SHARDING, Code.OTHER_WORLD):
        several, alone = (sentence(finding(code, num_ranks=ranks, num_gpus=16)) for ranks in (8, 1))
        assert several.startswith("the trace is of one of 8 ranks that share the model")
        assert alone.startswith("the script divides its model, and was profiled alone")
        assert "--world 16" in several
        assert "--world 16" in alone
