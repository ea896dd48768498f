"""Options of a Recommendation: their order, names, prices, and their facts for JSON (docs/json.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from advisor.core.findings import about_options
from advisor.core.units import HOUR_S, format_usd
from advisor.core.values import Job, Option, PickName, Plan, Recommendation, Script
from advisor.report.document import facts_of
from advisor.report.estimates import estimate_json, memory_json
from advisor.report.prices import price_json
from advisor.report.words import all_told, finding_json, sentence, told, warnings_json
from advisor.report.words.sentences import named_work
from recommender.ranking.value import Worth, change_s, change_usd, total_usd, worth_for

_OF_RANKING = ("on_frontier", "tie_with", "folded_into", "recommended")
STATUS_OF_REMOVAL = {
    about_options.RemovedByMemory.code: "does not fit",
    about_options.RemovedByHostMemory.code: "small host",
    about_options.RemovedBySharding.code: "another world",
    about_options.RemovedBySpot.code: "hopeless on spot",
    about_options.RemovedBySoftware.code: "unsupported",
    about_options.RemovedByAttention.code: "attention refused",
    about_options.RemovedByPolicy.code: "policy",
    about_options.RemovedByQuota.code: "over quota",
    about_options.RemovedByQueue.code: "queue limit",
    about_options.RemovedByBudget.code: "over budget",
    about_options.RemovedByDeadline.code: "too late",
}


def ranked(recommendation: Recommendation) -> list[Option]:
    """The recommended one, other feasible ones, the removed, and what-ifs.

    Feasible ones stand by their expected total, as the choice compares them; removed ones and what-ifs by
    median cost.
    """
    worth = worth_for(recommendation.job)

    def order(option: Option) -> tuple[int, float, str]:
        if option.plan.id == recommendation.recommended:
            return 0, 0.0, ""
        if option.feasible and not option.what_if:
            return 1, total_usd(option, worth), option.plan.id
        return 3 if option.what_if else 2, option.cost_usd.p50, option.plan.id

    return sorted((*recommendation.options, *recommendation.what_ifs), key=order)


def status(option: Option, recommendation: Recommendation) -> str:
    """A few words on where an option stands; empty for a feasible, dominated one."""
    if option.plan.id == recommendation.recommended:
        return "recommended"
    if option.plan.id in recommendation.frontier:
        return "frontier"
    if option.what_if:
        return f"what if {option.what_if}"
    if option.removed_by:
        return STATUS_OF_REMOVAL[option.removed_by[0]]
    return "" if option.tie_with is None else "near tie"


def has_figures(option: Option) -> bool:
    """Whether its time and cost mean anything: what ranks of another number would do is unknown."""
    return about_options.RemovedBySharding.code not in option.removed_by


def numbered(recommendation: Recommendation) -> dict[str, tuple[int, Option]]:
    """By plan id: each option and its number, which is its place in the ranking, whatever is shown of it."""
    options = enumerate(ranked(recommendation), start=1)
    return {option.plan.id: (number, option) for number, option in options}


def selection(recommendation: Recommendation, top: int | None) -> list[tuple[int, Option]]:
    """Options worth showing, a row each: ``top`` of the ranking, one removed for each reason, own machines.

    What is folded into another row has none, and of the what-ifs those of the recommended plan and the
    cheapest of each change have one. None for ``top`` shows everything.
    """
    rows = list(numbered(recommendation).values())
    if top is None:
        return rows
    rows = [(number, option) for number, option in rows if option.folded_into is None]
    if len(rows) <= top:
        return rows
    options = [option for _, option in rows]
    changed = f"{recommendation.recommended}+"
    own = [i for i, o in enumerate(options) if o.plan.offer is None and not o.what_if]
    own += [i for i, o in enumerate(options) if o.what_if and o.plan.id.startswith(changed)]
    kinds: dict[str, int] = {}
    for i, option in enumerate(options):
        kinds.setdefault(status(option, recommendation), i)
    must = dict.fromkeys((*own, *kinds.values()))
    frontier = [i for i, option in enumerate(options) if option.plan.id in recommendation.frontier]
    for i in (*frontier, *range(len(options))):
        if len(must) >= top:
            break
        must.setdefault(i)
    return [rows[i] for i in sorted(must)]


def where(option: Option) -> str:
    """``aws p4d.24xlarge us-east-1 use1-az1 spot``, ``lab (cluster)`` or ``this machine``."""
    return " ".join([place(option), *market(option)])


def place(option: Option) -> str:
    """``aws p4d.24xlarge us-east-1 use1-az1``: the same without its market."""
    plan = option.plan
    if plan.offer is None:
        return "this machine" if plan.provider == "local" else f"{plan.provider} (cluster)"
    machines = (
        plan.offer.instance_type if plan.num_nodes == 1 else f"{plan.num_nodes} x {plan.offer.instance_type}"
    )
    return f"{plan.provider} {machines} {plan.offer.place}"


def market(option: Option) -> list[str]:
    """``["spot"]``; nothing for machines of one's own."""
    return [] if option.plan.offer is None else [option.plan.offer.market]


def gpus(option: Option) -> str:
    """``8 x L40S``; ``2 x 8 x L40S`` for two nodes of them."""
    return option.plan.layout.of(option.plan.gpu)


def work_lines(option: Option, worth: Worth) -> tuple[str, ...]:
    """``DDP`` and ``+$25 work``, which no cost contains; ``nothing`` for a script as it is."""
    if not option.work:
        return ("nothing",)
    return named_work(option.work), f"+{format_usd(change_usd(option, worth)).removesuffix('.00')} work"


# --- JSON ------------------------------------------------------------------------------------------


def options_facts(recommendation: Recommendation) -> list[Mapping[str, object]]:
    """The facts of every option, in the order of the table."""
    frontier = set(recommendation.frontier)
    chosen, worth = recommendation.recommended, worth_for(recommendation.job)
    return [_option(option, frontier, chosen, worth) for option in ranked(recommendation)]


def recommendation_facts(
    recommendation: Recommendation, options: Sequence[Mapping[str, object]], *, recorded_as: str | None = None
) -> Mapping[str, object]:
    """``advisor recommend --format json``, see docs/json.md."""
    return {
        "job": _job(recommendation.job, recommendation.script),
        "options": options,
        "frontier": recommendation.frontier,
        "recommended": recommendation.recommended,
        **told("rule", recommendation.rule),
        **all_told("summary", recommendation.summary),
        "as_it_is": _alone(recommendation.as_it_is, recommendation.job),
        "with_work": _alone(recommendation.with_work, recommendation.job),
        "batch_held": _alone(recommendation.batch_held, recommendation.job),
        "recorded_as": recorded_as,
        "shortlist": [
            {"id": row.option.plan.id, "work": list(row.option.work), "merits": list(row.merits)}
            for row in recommendation.shortlist
        ],
        "picks": {_json_name(pick.name): pick.plan_id for pick in recommendation.picks},
        "pick_reasons": {_json_name(pick.name): sentence(pick.reason) for pick in recommendation.picks},
        "pick_reason_findings": {
            _json_name(pick.name): finding_json(pick.reason) for pick in recommendation.picks
        },
        **warnings_json(recommendation.warnings),
    }


def _alone(option: Option | None, job: Job) -> Mapping[str, object] | None:
    return None if option is None else option_alone(option, worth_for(job))


def _json_name(name: PickName) -> str:
    return name.replace("-", "_")


def option_facts(option: Option, recommendation: Recommendation) -> Mapping[str, object]:
    """``--explain ID --format json``: one option as in the list, and how its iteration time was found."""
    worth = worth_for(recommendation.job)
    body = _option(option, set(recommendation.frontier), recommendation.recommended, worth)
    return {"option": body, "estimate": estimate_json(option.estimate)}


def option_alone(option: Option, worth: Worth) -> Mapping[str, object]:
    """An option beside no ranking, without what only one knows."""
    facts = _option(option, set(), None, worth)
    return {name: fact for name, fact in facts.items() if name not in _OF_RANKING}


def _job(job: Job, script: Script) -> Mapping[str, object]:
    known, is_given = script.checkpoints, script.is_checkpoint_use_given
    return {
        "script": script.name,
        "arguments": script.arguments,
        "origin_gpu": script.origin_gpu,
        "batch_size": script.batch_size,
        **asdict(job),
        "scaling": {
            "mode": script.steps.scaling,
            "source": script.steps.source,
            "num_gpus": script.steps.num_ranks,
            "global_batch_size": script.steps.global_batch_size(script.steps.num_ranks),
        },
        "checkpoints": {
            "use": "resumes" if known is None else known.use,
            "source": "assumed" if known is None else "given" if is_given else "seen",
            "saves": () if known is None else known.saves,
            "loads": () if known is None else known.loads,
        },
        "iterations_per_epoch": script.iterations_per_epoch,
    }


def _option(
    option: Option, frontier: set[str], recommended: str | None, worth: Worth
) -> Mapping[str, object]:
    plan, offer = option.plan, option.plan.offer
    return {
        **facts_of(plan, "id tier provider"),
        **facts_of(offer, "instance_type region zone"),
        **facts_of(plan, "gpu num_gpus num_nodes"),
        "gpus_per_node": plan.layout.gpus_per_node,
        **facts_of(offer, "market"),
        **_rent(plan),
        "iterations": option.iterations,
        **facts_of(option.estimate, "iteration_s samples_per_s mfu input_s binds"),
        "vcpus_per_gpu": option.plan.vcpus_per_gpu,
        **facts_of(option, "wait_s train_s time_s cost_usd counted_usd expected"),
        "cost_breakdown": option.cost_breakdown_usd,
        **facts_of(option, "p_within_budget p_within_deadline"),
        **facts_of(option.estimate, "memory_bytes fits_memory"),
        "memory": memory_json(option.estimate),
        **told("risk", option.risk),
        "feasible": option.feasible,
        "removed_by": ", ".join(option.removed_by) or None,
        "removed_by_codes": option.removed_by,
        **all_told("script_changes", option.script_changes),
        "work": {"kinds": option.work, "hours": change_s(option) / HOUR_S, "usd": change_usd(option, worth)},
        "what_if": option.what_if,
        "on_frontier": option.plan.id in frontier,
        "tie_with": option.tie_with,
        "folded_into": option.folded_into,
        "recommended": option.plan.id == recommended,
        **all_told("reasons", option.reasons),
    }


def _rent(plan: Plan) -> Mapping[str, object]:
    offer = plan.offer
    return {
        "usd_per_h": plan.usd_per_h,
        "price": price_json(plan.price),
        **facts_of(offer, "list_usd_per_h contracted_usd_per_h effective_usd_per_h"),
        **facts_of(plan, "storage_usd_per_h egress_usd"),
        "transfer": {"gib": plan.transfer_gib, "usd": plan.transfer_usd, "time_s": plan.download_s},
        "rates": plan.rates,
        "price_retrieved_at": offer.retrieved_at.isoformat() if offer else None,
        "price_source": offer.source if offer else None,
    }


def find_option(recommendation: Recommendation, wanted: str) -> Option | Sequence[str]:
    """The option with this id or number; or the ids there are."""
    options = ranked(recommendation)
    row = wanted.lstrip("#")
    # Not isdigit, which holds for a superscript; and int refuses thousands of digits.
    if row.isdecimal() and len(row) < 10 and 1 <= int(row) <= len(options):
        return options[int(row) - 1]
    by_id = {option.plan.id: option for option in options}
    return by_id.get(wanted) or list(by_id)
