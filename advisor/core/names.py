"""Names that the system gives as bytes -> text that JSON, databases and reports take."""

from __future__ import annotations


def as_text(name: str) -> str:
    r"""The name with each byte that is no UTF-8 written as ``\xff``; others are as they were.

    Python reads such bytes of arguments, variables and paths as halves of characters (surrogates), so that it
    can give them back to the system unchanged. Nothing else takes them.

    >>> as_text("caf\udce9.py"), as_text("café.py")
    ('caf\\xe9.py', 'café.py')
    """
    if name.isascii():
        return name
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # halves that stand for no byte, as JSON can write them
        return name.encode("utf-8", "backslashreplace").decode()
