"""``advisor doctor``: what is set up on this machine, and what to do about the rest."""

from __future__ import annotations

from advisor.cli.common import chosen_format
from advisor.cli.shared_options import FormatOption, JsonOption
from advisor.report.printing import Format, print_document


def doctor(output: FormatOption = Format.TABLE, as_json: JsonOption = False) -> None:
    """Check this installation; exits with 1 if the main job cannot work."""
    from advisor.cli.common import load_settings
    from advisor.core.errors import AdvisorError
    from advisor.report.checks import checks_document
    from advisor.report.project import refused_in_words
    from advisor.service.health import run_checks

    checks = run_checks(load_settings, refused_in_words)
    print_document(checks_document(checks), chosen_format(output, as_json))
    broken = [check.name for check in checks if check.state == "broken"]
    if broken:
        raise AdvisorError(f"not in working order: {', '.join(broken)}.")
