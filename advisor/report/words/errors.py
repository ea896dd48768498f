"""What is missing or wrong in what was asked, with the flags that mend it."""

from __future__ import annotations

from advisor.core.findings import Code
from advisor.report.words.table import Words


def epoch_length_unknown(*, script: str, is_of_profiler: bool, has_loader: bool) -> str:
    """Why nobody knows how long an epoch is, and what to say instead."""
    why = "its data has no length" if has_loader else "it uses no torch DataLoader"
    # What is made up in the place of data has the length that somebody gives it.
    instead = "; --samples N is the length of --fake-data" if has_loader else ""
    if is_of_profiler:
        why, instead = "a profile does not tell", ""
    return (
        f"how many iterations an epoch of {script!r} has is unknown ({why}): add --iterations-per-epoch N, or"
        f" give --iterations N instead of --epochs{instead}"
    )


ERRORS: Words = {
    Code.EPOCH_LENGTH_UNKNOWN: epoch_length_unknown,
    Code.NOTHING_TO_CHOOSE_FROM: (
        "there is nothing to choose from: no local GPU, no cluster and no offer matches. Widen --gpu,"
        " --provider, --region or --market, or give --local-gpu NAME"
    ),
    Code.TOO_MANY_EPOCHS: (
        "{epochs:,g} epochs of {iterations_per_epoch:,} iterations are more than {most_iterations:,}"
        " iterations: give fewer --epochs, or --iterations-per-epoch N where the epoch has no real end"
    ),
}
