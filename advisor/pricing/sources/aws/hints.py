"""Whether anything on this machine hints at AWS credentials, without loading the SDK or asking anybody."""

from __future__ import annotations

import os
from pathlib import Path

# What the firmware of Amazon's machines calls itself: there a service of the machine gives credentials.
VENDOR = Path("/sys/class/dmi/id/sys_vendor")
_VARIABLES = (
    "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
)  # fmt: skip
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config",
          "BOTO_CONFIG": "~/.boto"}  # fmt: skip


def may_have_credentials() -> bool:
    """False only where the SDK's chain has nowhere to find any."""
    files = (Path(os.environ.get(name) or usual).expanduser() for name, usual in _FILES.items())
    return any(map(os.environ.get, _VARIABLES)) or any(path.is_file() for path in files) or _is_amazons()


def _is_amazons() -> bool:
    try:
        return VENDOR.read_text(encoding="utf-8").startswith("Amazon")
    except OSError:
        return False
