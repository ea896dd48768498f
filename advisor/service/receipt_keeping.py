"""A receipt on its way: a file while the command runs, then a row of the database, or the file again."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError, InputError
from advisor.core.files import as_text, write_atomically
from advisor.service.listening import Listener
from advisor.store.database import folder_of

if TYPE_CHECKING:
    from advisor.config.settings import StoreSettings
    from advisor.receipt.receipt_files import BegunFile, ReceiptFile
    from advisor.service.plan_facts import MachineHere
    from advisor.store.ledger import Run

_FOLDER = "receipts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run that goes on.

    Attributes:
        run: what is known of it if nobody sees its end.
        file: that says so; None where none could be made.
        warnings: what went wrong so far.
    """

    run: Run
    where: MachineHere
    file: BegunFile | None
    warnings: tuple[str, ...] = ()


def begin(run: Run, where: MachineHere, steps_folder: Path, database: StoreSettings) -> Begun:
    """Make the file of a run that has started."""
    from advisor.receipt.receipt_files import ReceiptFile
    from advisor.receipt.receipt_files import begin as begin_file

    try:
        file = begin_file(_folder(database), ReceiptFile(run=run, steps_folder=_writable(steps_folder)))
    except OSError as error:
        why = f"{error.strerror or error} ({_folder(database)})"
        lost = f"this run leaves no trace if advisor is killed: {why}"
        return Begun(run=run, where=where, file=None, warnings=(lost,))
    return Begun(run=run, where=where, file=file)


def _writable(folder: Path) -> str | None:
    """As JSON takes it: steps under a name of other bytes than UTF-8 are lost if advisor is killed."""
    return str(folder) if as_text(str(folder)) == str(folder) else None


def keep(begun: Begun, run: Run, database: StoreSettings, *, also: Path | None) -> tuple[bool, list[str]]:
    """Enter a run that has ended into the database, or leave its file for later.

    Args:
        begun: what there is of it.
        run: all of it.
        database: where it is.
        also: a file that the caller wants.

    Returns:
        Whether the database took it, and what went wrong.
    """
    from advisor.receipt.receipt_files import ReceiptFile
    from advisor.store.ledger import record_run

    receipt = ReceiptFile(run=run)
    trouble = [] if also is None else _write(also, receipt)
    # Before the database is asked: whoever ends us meanwhile loses nothing.
    path = _folder(database) / f"{run.id}.json"
    waits = _waits(begun, receipt, path)
    try:
        from advisor.store.database import open_store

        with open_store(database.url) as store:
            record_run(store, run)
    except AdvisorError as error:
        return False, [*trouble, str(error), waits]
    with suppress(OSError):
        path.unlink()
    return True, trouble


def _write(path: Path, receipt: ReceiptFile) -> list[str]:
    try:
        write_atomically(path, receipt.to_bytes())
    except OSError as error:
        return [f"cannot write the receipt {path}: {error.strerror or error}"]
    return []


def _waits(begun: Begun, receipt: ReceiptFile, path: Path) -> str:
    """Put the whole receipt where it can be entered later, and say where; the last resort is to print it."""
    try:
        if begun.file is not None:
            begun.file.replace(receipt)
        else:
            write_atomically(path, receipt.to_bytes(), private=True)
    except OSError as error:
        lost = f"the receipt cannot be kept either: {error.strerror or error}."
        takes = "`advisor run record --receipt FILE` takes it from a file that holds this:"
        return f"{lost} {takes}\n{receipt.to_bytes().decode()}"
    return (
        f"the receipt waits in {path}: `advisor run list` enters it, or `advisor run record --receipt {path}`"
    )


def enter_left_behind(database: StoreSettings, listener: Listener) -> int:
    """Enter receipts that the database did not take, and of runs that nobody saw end.

    Returns:
        How many files hold no receipt that can be true: a warning names each and its field.

    Raises StoreError: the database still takes none.
    """
    folder = _folder(database)
    if not folder.is_dir():
        return 0
    from advisor.receipt.receipt_files import left_behind, read_receipt
    from advisor.store.ledger import record_run

    num_refused = 0
    entered: list[str] = []
    with left_behind(folder) as paths:
        for path in paths:
            try:
                receipt = read_receipt(path)
            except InputError as error:
                listener.warn([f"{error} Look at it, or delete it."])
                num_refused += 1
                continue
            from advisor.store.database import open_store

            with open_store(database.url) as store:
                record_run(store, _with_steps(receipt))
            path.unlink(missing_ok=True)
            entered.append(receipt.run.status)
    if entered:
        by_status = ", ".join(f"{num:,} {status}" for status, num in sorted(Counter(entered).items()))
        runs = f"{len(entered):,} run{'' if len(entered) == 1 else 's'}"
        listener.note(f"entered {runs} that waited in {folder} ({by_status})")
    return num_refused


def _with_steps(receipt: ReceiptFile) -> Run:
    """The run, with the steps that it made before nobody saw it any more."""
    from advisor.receipt.receipt_files import read_steps

    if receipt.steps_folder is None:
        return receipt.run
    steps, _ = read_steps(Path(receipt.steps_folder), math.inf)
    if steps is None:
        return receipt.run
    return replace(receipt.run, num_steps=steps.num_steps, step_s=steps.step_s)


def _folder(database: StoreSettings) -> Path:
    return folder_of(database.url) / _FOLDER
