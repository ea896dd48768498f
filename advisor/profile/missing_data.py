"""A script's error that means its data is not here -> what is missing and what to do."""

from __future__ import annotations

import re

from advisor.profile.fake_data import EXAMPLE

# What a script saves and reads back is no data set; but train.bin holds tokens, pytorch_model.bin weights.
_CHECKPOINT = re.compile(
    r"\.(pt|pth|ckpt|safetensors)\b|(model|weights|optimizer|scheduler|args)[\w-]*\.bin\b|checkpoint",
    re.IGNORECASE,
)
# Not the apostrophe of "couldn't".
_QUOTED = re.compile(r"""(?<!\w)['"]([^'"]+)['"]""")
# The error of a missing data set: the system's, torchvision's, Hugging Face's, a download's.
_SIGNS = (
    "FileNotFoundError",
    "NotADirectoryError",
    "Dataset not found",
    "DatasetNotFoundError",
    "DataFilesNotFoundError",
    "Couldn't reach",
)


def missing_data_hint(message: str) -> str:
    """What is missing and how to do without, or nothing where the error is another one.

    >>> missing_data_hint("ValueError: too few values")
    ''
    """
    if not _is_missing(message):
        return ""
    name = _QUOTED.search(message)
    what = "Its data set is" if name is None else f"The data set {name[1]!r} is"
    return (
        f" {what} not here: profile where it is, pass the path that the script needs after `--`, or let"
        f" samples of its form stand in for torch data sets, such as `profile.fake_data` {EXAMPLE}."
    )


def fed_hint(message: str) -> str:
    """Why a script can fail that was fed fake samples."""
    if _is_missing(message):
        return (
            " `profile.fake_data` takes the place of torch Dataset classes and of what DataLoaders give; this"
            " is read elsewhere: pass the path that the script needs after `--`."
        )
    return (
        " It ran on the samples of `profile.fake_data`: they must have the form that its data set gives, in"
        " the same order or with the same names."
    )


def _is_missing(message: str) -> bool:
    return not _CHECKPOINT.search(message) and any(sign in message for sign in _SIGNS)
