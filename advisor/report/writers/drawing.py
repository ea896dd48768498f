"""Draws for another process: requests come as lines of JSON, and answers go the same way.

V8, which vl-convert draws with, ends its process where memory is too scarce; this one holds nothing else.
"""

import base64
import json
import sys
from collections.abc import Callable, Mapping

import vl_convert


def _png(spec: str, scale: float) -> str:
    return base64.b64encode(vl_convert.vegalite_to_png(spec, scale=scale)).decode()


_WAYS: Mapping[str, Callable[..., str]] = {
    "svg": vl_convert.vegalite_to_svg,
    "png": _png,
    "javascript": vl_convert.javascript_bundle,
}


def main() -> None:
    """Answer each request until there are no more; what cannot be drawn is null."""
    for line in sys.stdin:
        way, *arguments = json.loads(line)
        try:
            answer = _WAYS[way](*arguments)
        except ValueError:
            answer = None
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
