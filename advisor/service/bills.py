"""What clouds billed: files of the settings and of the caller, and Cost Explorer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.config.settings import PriceSettings, ReportSettings
    from advisor.review.period import Period
    from advisor.service.listening import Listener
    from advisor.spend.charges import Bill


def bills_of(
    report: ReportSettings, prices: PriceSettings, files: Sequence[Path], period: Period, listener: Listener
) -> tuple[Bill, ...]:
    """Every bill that is given; Cost Explorer is asked for the days of the period.

    Args:
        report: names files, too, and says whether Cost Explorer is asked.
        prices: how AWS is asked.
        files: of the caller.
        period: of the report.
        listener: follows long files.

    Raises:
        BillError: a file cannot be read, or is no bill.
        CloudError: AWS refuses to tell, or does not answer.
        ConfigError: an option of AWS is wrong.
    """
    from advisor.formats.user_files import at_home
    from advisor.spend.bill_files import read_bill

    bills: list[Bill] = []
    for path in dict.fromkeys(at_home(path) for path in (*report.bills, *files)):
        with listener.step(f"reading {path.name}"):
            bills.append(read_bill(path, report.project_tag))
    if report.cost_explorer:
        from advisor.pricing.sources.aws.calls import read_options
        from advisor.spend.cost_explorer import ask_cost_explorer

        options = read_options(prices.options.get("aws", {}))
        with listener.step("asking AWS Cost Explorer", at_once=True):
            bills.append(ask_cost_explorer(options, period.since, period.until, report.project_tag))
    return tuple(bills)
