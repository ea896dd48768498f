"""What Python shows of answers: HTML in notebooks, and messages through ``logging``."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from advisor.core.findings import Finding
from advisor.core.values import Recommendation, Trace
from advisor.report.plain import shown_lines
from advisor.service.listening import Listener, Step


def html_of(value: object) -> str | None:
    """HTML of a value that has a form of its own in a notebook; None leaves it to the notebook."""
    # Late, for numpy.
    from recommender.comparison import PlanComparison

    match value:
        case Recommendation():
            from advisor.report.recommendation import notebook_document
            from advisor.report.writers.html import to_html

            return to_html(notebook_document(value))
        case PlanComparison():
            from advisor.report.document import Document
            from advisor.report.plan_comparison import comparison_blocks
            from advisor.report.writers.html import to_html

            return to_html(Document(facts={}, blocks=comparison_blocks(value)))
        case Trace():
            from advisor.report.document import Document, warnings_of
            from advisor.report.estimates import trace_table
            from advisor.report.words import in_names
            from advisor.report.writers.html import to_html

            table = trace_table(value, caption=value.script)
            return to_html(
                Document(facts={}, blocks=(table, *warnings_of(list(map(in_names, value.warnings)))))
            )
        case _:
            return None


_LOGGER = logging.getLogger("advisor")
# Settings that the functions of ``advisor.api`` take as arguments of their own.
_ARGUMENTS = (
    "cloud.providers", "cloud.regions", "cloud.markets", "cloud.max_nodes", "cloud.data", "cloud.dataset_gb",
    "profile.scaling",
    "prices.max_age", "prices.offline",
)  # fmt: skip


class Logged(Listener):
    """Receives what use cases have to say through ``logging``."""

    def note(self, message: str) -> None:
        """One record at INFO."""
        _LOGGER.info("%s", shown_lines(message))

    def warn(self, messages: Iterable[str | Finding]) -> None:
        """One record each, at WARNING."""
        from advisor.report.words import in_names

        for message in messages:
            _LOGGER.warning("%s", shown_lines(message if isinstance(message, str) else in_names(message)))

    @contextmanager
    def step(self, name: str, *, limit_s: float | None = None, at_once: bool = False) -> Iterator[Step]:
        """One record as the step begins, at INFO."""
        self.note(name)
        with super().step(name, limit_s=limit_s, at_once=at_once) as step:
            yield step

    @contextmanager
    def count(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """One record as the step begins, at INFO."""
        self.note(name)
        with super().count(name) as count:
            yield count

    def name_of(self, argument: str) -> str:
        """The argument of those functions, or the setting."""
        return argument.rpartition(".")[2] if argument in _ARGUMENTS else argument
