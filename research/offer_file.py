"""``python -m research.offer_file [MB]``: what reading an offer file of AWS takes of CPU and memory.

The file has AWS's columns and as many bytes as a large region's; a local server sends it, so the time is that
of reading alone.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from advisor.core.units import MB
from advisor.pricing.sources.aws_files import AwsFilesSource
from advisor.pricing.sources.query import OfferQuery
from tests.clouds.aws_offer_files import offer_file, publish, row

_PORT = 8753
_REGION = "us-east-1"
# Of a large region's rows so many are of machines with GPUs.
_OTHERS_PER_GPU_ROW = 300


def main() -> None:
    """Write, serve, read, print."""
    size_mb = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), size_mb)
        server = [sys.executable, "-m", "http.server", str(_PORT), "--bind", "127.0.0.1", "-d", folder]
        process = subprocess.Popen(server, stderr=subprocess.DEVNULL)
        try:
            time.sleep(1.0)
            _read(size_mb)
        finally:
            process.terminate()


def _write(folder: Path, size_mb: int) -> None:
    padding = {"Product_Family": "x" * 500, "Location": "y" * 300}
    other = offer_file(row("m5.large", Tenancy="Dedicated", **padding)).splitlines()[-1].encode()
    path = publish(folder, _REGION, offer_file(row()))
    wanted = offer_file(row("g5.xlarge", "1.006")).splitlines()[-1].encode()
    block = (other + b"\n") * _OTHERS_PER_GPU_ROW + wanted + b"\n"
    with path.open("ab") as file:
        while file.tell() < size_mb * MB:
            file.write(block)


def _read(size_mb: int) -> None:
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun_s, cpu_s = time.monotonic(), time.process_time()
    (part,) = AwsFilesSource([_REGION], f"http://127.0.0.1:{_PORT}").offers(OfferQuery())
    assert part.failure is None, part.failure
    more_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    print(
        f"{size_mb} MB, {len(part.offers)} prices kept: {time.process_time() - cpu_s:.2f} s of CPU,"
        f" {time.monotonic() - begun_s:.2f} s in all, {more_kib / 1024:.1f} MiB more memory"
    )


if __name__ == "__main__":
    main()
