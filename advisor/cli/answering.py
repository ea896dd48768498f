"""A process that answers requests of `advisor sweep`, one after another, in lines of JSON.

Started by `advisor.service.sweep_engines`, here or on a worker, as ``python -m advisor.cli.answering``.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from advisor.cli.common import sweep_settings
from advisor.core.errors import AdvisorError, StoreError
from advisor.core.processes import ANSWER_FILE_VARIABLE
from advisor.report.plain import print_error

if TYPE_CHECKING:
    from advisor.service.sweeping import World


def answered(line: str) -> dict[str, Any]:
    """The reply to a request, as `sweep_engines.Children.answer` says.

    The database of prices may be away for a minute. An answer counts if the world was the same before and
    after.
    """
    from advisor.service.sweeping import WAITS_S, Advice

    facts = json.loads(line)
    for wait_s in (*WAITS_S, 0):
        try:
            return _reply(facts)
        except StoreError as error:
            why = str(error)
            time.sleep(wait_s)
    return {"advice": asdict(Advice(error=why, is_final=False))}


def _world(*, offline: bool) -> World:
    from advisor.service.sweeping import world_of

    config = sweep_settings(offline=offline)
    return world_of(config.pricing, config.settings.policy, config.settings.model_dump_json())


def _reply(facts: Mapping[str, Any]) -> dict[str, Any]:
    from advisor.service.sweeping import Job, Request, World, advice_of, key_of, rests_on, words_of

    job = Job(**{**facts["job"], "options": tuple(facts["job"]["options"])})
    request = Request(**{**facts, "job": job, "world": World(**facts["world"])})
    try:
        os.chdir(request.folder)
        here = _world(offline=request.offline)
        if why := request.world.differs(here):
            return {"refused": why}
        if key_of(job, rests_on(job, here)) != request.key:
            return {"refused": f"files of {job.subject} differ there"}
    except StoreError:
        raise
    except (OSError, AdvisorError) as error:
        return {"refused": f"it needs the same files at the same place: {error}"}
    advice = advice_of(*_said(words_of(request)))
    if why := here.differs(_world(offline=request.offline)):
        return {"refused": f"{why} any more"}
    return {"advice": asdict(advice)}


def _said(words: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command line, run in this process."""
    from advisor.cli import app
    from advisor.report.words import error_text

    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            app(list(words))
        except AdvisorError as error:
            print_error(error_text(error))
            code = error.exit_code
        except SystemExit as end:
            code = end.code
    return code if isinstance(code, int) else 0, out.getvalue(), err.getvalue()


def main() -> None:
    """Answer until there is nothing more to read."""
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    # What a command and its programs read is nothing, and what they print is no reply.
    with open(os.devnull) as null:  # noqa: PTH123 - its number
        os.dup2(null.fileno(), 0)
    os.dup2(2, 1)
    os.environ["ADVISOR_PRICES__REFRESH"] = "never"
    os.environ.pop(ANSWER_FILE_VARIABLE, None)
    for line in requests:
        print(json.dumps(answered(line)), file=replies, flush=True)


if __name__ == "__main__":
    main()
