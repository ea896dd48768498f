"""AWS Cost Explorer -> a bill: what each day cost by project tag and instance type, before tax.

AWS asks 0.01 USD for each call. https://docs.aws.amazon.com/aws-cost-management/latest/APIReference
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TypedDict

from advisor.pricing.sources.aws.aws_calls import HOME_REGION, AwsOptions, Clients, items_of
from advisor.spend import cells
from advisor.spend.charges import Bill, Charge, RowFault

NAME = "AWS Cost Explorer"
ACTION = "ce:GetCostAndUsage"
# What is billed, and the same with what was paid ahead spread over its time.
_BILLED, _EFFECTIVE = "UnblendedCost", "AmortizedCost"
_NO_MACHINE = "NoInstanceType"
_NO_TAX = {"Not": {"Dimensions": {"Key": "RECORD_TYPE", "Values": ["Tax"]}}}


class _Money(TypedDict):
    Amount: str
    Unit: str


class _Group(TypedDict):
    Keys: list[str]
    Metrics: Mapping[str, _Money]


class _Span(TypedDict):
    Start: str
    End: str


class _Day(TypedDict):
    TimePeriod: _Span
    Groups: list[_Group]


def ask_cost_explorer(options: AwsOptions, since: datetime, until: datetime, project_tag: str) -> Bill:
    """What AWS billed on whole days (UTC); list and contracted costs and regions it does not tell.

    ``project_tag`` is the cost allocation tag that names a project. Raises CloudError: AWS refuses or does
    not answer.
    """
    client = Clients(options).client("ce", HOME_REGION)
    days: list[_Day] = items_of(
        client,
        ACTION,
        "ResultsByTime",
        TimePeriod={"Start": f"{_day(since)}", "End": f"{_day(until, is_end=True)}"},
        Granularity="DAILY",
        Metrics=[_BILLED, _EFFECTIVE],
        GroupBy=[{"Type": "TAG", "Key": project_tag}, {"Type": "DIMENSION", "Key": "INSTANCE_TYPE"}],
        Filter=_NO_TAX,
    )
    charges: list[Charge] = []
    faults: list[RowFault] = []
    groups = ((day["TimePeriod"], group) for day in days for group in day["Groups"])
    for number, (span, group) in enumerate(groups, start=1):
        try:
            charges += _charge(span, group)
        except (KeyError, ValueError) as error:
            reason = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            faults.append(RowFault(line=number, reason=reason))
    return Bill(name=NAME, charges=tuple(charges), faults=tuple(faults))


def _day(moment: datetime, *, is_end: bool = False) -> date:
    """The day of a moment; as an end, which Cost Explorer leaves out, the day after the last moment."""
    utc = moment.astimezone(UTC)
    return (utc - timedelta(microseconds=1)).date() + timedelta(days=1) if is_end else utc.date()


def _charge(span: _Span, group: _Group) -> Iterator[Charge]:
    tagged, machine = group["Keys"]
    billed, effective = group["Metrics"][_BILLED], group["Metrics"][_EFFECTIVE]
    start, end = cells.period(dict(span), "Start", "End")
    cost = cells.required_amount(dict(billed), "Amount")
    if cost == 0 == cells.required_amount(dict(effective), "Amount"):
        return
    # Cost Explorer writes a tag as "project$resnet", and "project$" where a charge has none.
    project = tagged.partition("$")[2]
    yield Charge(
        start=start,
        end=end,
        provider="aws",
        service="Amazon Web Services",
        instance_type=None if machine == _NO_MACHINE else machine,
        project=project or None,
        billed_cost=cost,
        effective_cost=cells.amount(dict(effective), "Amount"),
        currency=cells.currency(dict(billed), "Unit"),
    )
