"""Every error a person can meet, each with the exit code of the command it ends.

::

    AdvisorError                 1  the root; nothing else reaches a user
    ├── InputError               2  what was typed or written is wrong
    │   ├── ConfigError          2  a setting, a YAML file
    │   ├── PolicyError          2  a policy file that cannot be read
    │   ├── TraceError           2  a trace file: truncated, foreign, too new
    │   ├── RecordingError       2  a recording of kernels: the same, or of another device
    │   ├── BillError            2  what a cloud billed: cut off, foreign, without its columns
    │   └── UnknownGpuError      2  no GPU of that name
    │       └── AmbiguousGpuError 2 a family where one GPU is needed
    ├── ProfileError             1  the script did not yield an iteration
    │   ├── GpuUnusableError     1  this machine's GPU is missing, busy or too small
    │   └── CalibrationError     1  measured kernels make no sense beside the data sheet
    ├── CatalogError             1  shipped facts are missing or contradict each other
    │   └── StaleCatalogError    1  prices older than ``--max-age``
    ├── StoreError               1  the database cannot be reached, read or written
    │   └── LockedError          1  another process does what only one may do at a time
    ├── ReceiptLostError         1  a command ran and its receipt is lost; an instance has the command's code
    ├── CloudError               1  a cloud refused a call or did not answer
    ├── DeliveryError            1  an answer did not reach a channel, or only perhaps
    ├── NoOfferError             1  nothing is for rent under this query
    ├── PolicyViolationError     3  the policy removed everything
    ├── NothingFeasibleError     4  no option meets memory, budget and deadline
    └── ThresholdExceededError   5  ``--fail-above``

A message says what was wrong, what is allowed, and what to do next.
"""

import difflib
from collections.abc import Iterable

from advisor.core.findings import Finding


class AdvisorError(Exception):
    """The root of the tree.

    Args:
        args: the message, in the words of Python: an argument or setting has its name in backquotes, such as
            ```profile.python```, and the command line puts its flag there.
        finding: the same for a caller that has other words for it, such as flags.
    """

    exit_code = 1

    def __init__(self, *args: object, finding: Finding | None = None) -> None:
        super().__init__(*args)
        self.finding = finding


class InputError(AdvisorError):
    """Something typed on the command line or written in a file is wrong."""

    exit_code = 2


class ConfigError(InputError):
    """A setting is unknown, has the wrong type, or its file cannot be read."""


class PolicyError(InputError):
    """A policy file cannot be read or contradicts itself."""


class TraceError(InputError):
    """A trace file is missing, truncated, foreign or from a newer version."""


class RecordingError(InputError):
    """A recording of kernels is missing, damaged, foreign, too new or of another device."""


class BillError(InputError):
    """A file of charges is missing, cut off, foreign, or lacks a column."""


class UnknownGpuError(InputError):
    """No GPU in the catalog has this name."""


class AmbiguousGpuError(UnknownGpuError):
    """A family name was given where exactly one GPU is needed."""


class ProfileError(AdvisorError):
    """The script could not be profiled."""


class GpuUnusableError(ProfileError):
    """This machine's GPU is missing, busy or too small to profile on; without it, it may work.

    Its first argument is why, its second what to do about it.
    """

    def __str__(self) -> str:
        """Both."""
        return " ".join(map(str, self.args))


class CalibrationError(ProfileError):
    """What was measured cannot be true of this GPU, or is too little to fit anything."""


class CatalogError(AdvisorError):
    """A shipped or cached catalog is missing or broken."""


class StaleCatalogError(CatalogError):
    """Prices are older than the user allows."""


class StoreError(AdvisorError):
    """The database of prices and runs cannot be reached, read or written, or is from a newer version."""


class ReceiptLostError(AdvisorError):
    """A command ran and no receipt of it could be made.

    Args:
        exit_code: the command's, which is ours too.
    """

    def __init__(self, message: str, *, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class LockedError(StoreError):
    """Another process does what only one may do at a time, such as a refresh."""


class CloudError(AdvisorError):
    """A cloud refused a call, did not answer, or gave an unreadable answer; never with a secret in it."""


class DeliveryError(AdvisorError):
    """An answer did not reach a channel, or it is unknown whether it did."""


class NoOfferError(AdvisorError):
    """No offer matches a query."""


class PolicyViolationError(AdvisorError):
    """The policy removed every plan."""

    exit_code = 3


class NothingFeasibleError(AdvisorError):
    """No plan meets memory, budget and deadline."""

    exit_code = 4


class ThresholdExceededError(AdvisorError):
    """Something costs or grows more than the user allows."""

    exit_code = 5


def did_you_mean(name: str, choices: Iterable[str], *, most: int = 3) -> str:
    """Near matches as the end of a message: ``" Did you mean 'A100-SXM-40GB'?"``, or ``""``.

    >>> did_you_mean("budgt", ["budget", "deadline"])
    " Did you mean 'budget'?"
    >>> did_you_mean("zzz", ["budget"])
    ''
    """
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(name.lower(), list(by_lower), n=most, cutoff=0.6)
    if not near:
        return ""
    return f" Did you mean {' or '.join(repr(by_lower[key]) for key in near)}?"
