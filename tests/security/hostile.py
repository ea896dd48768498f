"""Texts that a terminal, a spreadsheet or a browser would act on, and what is none of them."""

import unicodedata

from hypothesis import strategies as st

from advisor.core.findings import Text, quoted
from advisor.core.values import Collective, Job, Market, Option, Quantiles, Recommendation, Trace
from advisor.workloads.script_versions import as_written
from tests.builders import make_estimate, make_offer, make_plan, make_trace
from tests.recommendations import make_option, many_options

# Clears the screen, makes a link, sets the title, rings, returns, turns letters around, hides them.
ATTACK = "\x1b[2J\x1b]8;;http://evil.test\x07x\x1b]0;t\x9c\r\x00\x7f\x85\u202e\u2066\u200b\ufeff\u2028[red]b"
NOT_TEXT = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

_letters = st.one_of(
    st.sampled_from([*ATTACK, *"\n\t\v\ud800\U000e0041\u3164|<=-\\ "]),
    st.characters(categories=["C", "L", "M", "N", "P", "S", "Z"]),
)
texts = st.text(_letters, min_size=1, max_size=30)


def assert_is_text(output: str) -> None:
    """Nothing but letters, marks, spaces and ends of lines, and something that can be written at all."""
    letters = {letter for letter in output if letter != "\n" and unicodedata.category(letter) in NOT_TEXT}
    assert not letters, sorted(map(ascii, letters))
    output.encode("utf-8")


def trace_with(text: str, **changes: str | None) -> Trace:
    """A trace that says ``text`` wherever it can."""
    words = {"script": text, "backend": text, "origin_gpu": text}
    return make_trace(
        arguments=(text, "--name", text),
        versions={"torch": text, text: "1"},
        collectives=(Collective(kind=text, num_bytes=8, world_size=2, count=1),),
        warnings=(quoted(text), quoted(f"{text}\n{text}")),
        **(words | changes),
    )


def option_with(text: str, **changes: object) -> Option:
    """An option whose machine, place, GPU and reasons are ``text``."""
    one = Text(text=text)
    offer = make_offer(text, provider=text, instance_type=text, zone=text, region=text, source=text)
    plan = make_plan(text, offer=offer, provider=text, id=text, rates={text: text}, market=Market.ON_DEMAND)
    estimate = make_estimate(
        text, by_family={text: 0.05, "gemm": 0.05}, by_operator={text: 0.1}, assumptions=(one,)
    )
    words = {"reasons": (one,), "script_changes": (one,), "risk": one}
    return make_option(text, 1.0, 1.0, **({"plan": plan, "estimate": estimate} | words | changes))


def recommendation_with(text: str) -> Recommendation:
    """A recommendation of such an option among ordinary ones."""
    others = many_options(3, num_frontier=1)
    chosen = option_with(text, wait_s=Quantiles(p50=1.0, p90=2.0))
    return Recommendation(
        script=as_written(trace_with(text), {}, Job(iterations=1)).script,
        job=others.job,
        options=(chosen, *others.options),
        frontier=(text, *others.frontier),
        recommended=text,
        rule=Text(text=text),
        warnings=(Text(text=text),),
    )
