"""What the user's accounts may start: read beside live prices, and what a row says of it."""

import dataclasses
from contextlib import ExitStack

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_op, make_trace
from tests.clouds.aws_server import DENIED_JSON
from tests.clouds.aws_world import small_world
from tests.clouds.gcp_server import PROJECT, SECRETS
from tests.end_to_end.cli import Answer
from tests.end_to_end.test_prices import DAILY, ENDPOINT, Clouds, clouds_of, small_skus
from tests.waiting import wait_for

AWS = {"L-417A185B": 0.0, "L-DB2E81BA": 2.0, "L-7212CCBC": 0.0, "L-C4BD4855": 0.0, "L-3819A6DF": 64.0}
GCP = {
    ("us-central1", "NVIDIA_A100_GPUS"): 8, ("us-central1", "NVIDIA_T4_GPUS"): 0,
    ("us-central1", "NVIDIA_L4_GPUS"): 8, ("global", "GPUS_ALL_REGIONS"): 1,
}  # fmt: skip


@pytest.fixture
def clouds(tmp_path):
    with ExitStack() as stack:
        clouds = clouds_of(stack, tmp_path, dataclasses.replace(small_world(), quotas=AWS), small_skus())
        clouds.gcp.quotas = dict(GCP)
        clouds.environ |= {
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": clouds.environ[ENDPOINT],
            "GOOGLE_CLOUD_PROJECT": PROJECT,
        }
        yield clouds


def asked(clouds: Clouds, *arguments: str, **environ: str) -> Answer:
    trace = clouds.shell.folder / "small.json.gz"
    write_trace(make_trace(ops=(make_op("aten::mm", flops=10**15, num_bytes=10**9),)), trace)
    answer = clouds.run(
        "recommend", str(trace), "--iterations", "1000", "--json", "--offline", *arguments, **environ
    )
    assert answer.code == 0, answer.err
    return answer


def quotas_of(answer: Answer) -> dict[tuple[str, str, str], tuple[int, int | None]]:
    """By machine, region and market: how much its row says that it needs, and how much there is."""
    return {
        (option["instance_type"], option["region"], option["market"]): (
            note["facts"]["count"], note["facts"]["most"]
        )
        for option in answer.document["options"]
        for note in option["reason_findings"]
        if note["code"] == "quota-needed"
    }  # fmt: skip


def test_a_row_says_what_to_request_where_the_account_has_too_little(clouds):
    assert clouds.run("prices", "refresh").code == 0
    rows = quotas_of(asked(clouds, "--gpu", "A100-SXM-40GB", "--gpu", "L4"))
    assert rows["g6.xlarge", "us-east-1", "on-demand"] == (4, 2)
    assert ("g6.xlarge", "us-east-1", "spot") not in rows, "64 vCPU are enough for its 4"
    assert ("a2-highgpu-1g", "us-central1", "on-demand") not in rows
    assert rows["a2-highgpu-2g", "us-central1", "on-demand"] == (2, 1), "1 in all regions"
    assert any(most is None for _, most in rows.values()), "of other regions nothing was said"


def test_what_the_account_may_not_start_can_be_left_out(clouds):
    clouds.run("prices", "refresh")
    answer = asked(clouds, "--gpu", "L4", ADVISOR_CLOUD__WITHOUT_QUOTA="leave-out")
    left_out = [o for o in answer.document["options"] if "quota" in o["removed_by_codes"]]
    assert {o["instance_type"] for o in left_out} >= {"g6.xlarge", "g2-standard-24"}
    text = " ".join(reason for option in left_out for reason in option["reasons"])
    assert "it has 4 vCPU, and 2 are allowed for L-DB2E81BA in us-east-1; ask aws for more" in text


def test_the_pull_of_a_day_reads_them_too(clouds):
    clouds.run("prices", **DAILY)
    path = clouds.database.parent / "quotas.json"
    # Quotas are read when the prices are kept, behind the answer.
    wait_for(path.exists, within_s=100)
    assert "L-417A185B" in path.read_text()
    assert path.stat().st_mode & 0o077 == 0, "an account's limits are its owner's"


def test_a_service_that_refuses_costs_one_note_and_what_was_known_stays(clouds):
    clouds.run("prices", "refresh")
    before = quotas_of(asked(clouds, "--gpu", "L4"))
    assert before
    clouds.aws.fail("GetServiceQuota", DENIED_JSON)
    clouds.gcp.faults = {len(clouds.gcp.calls) + 1: "403"}  # the call behind that of prices
    answer = clouds.run("prices", "refresh")
    assert answer.code == 0, answer.err
    (aws,) = [line for line in answer.err.splitlines() if "servicequotas:GetServiceQuota" in line]
    (gcp,) = [line for line in answer.err.splitlines() if "quotas of gcp" in line]
    assert aws.startswith("note: ")
    assert "error 403" in gcp
    assert "roles/compute.viewer" in gcp
    assert not [secret for secret in SECRETS if secret in answer.err]
    assert quotas_of(asked(clouds, "--gpu", "L4")) == before


def test_nobody_is_asked_without_credentials_or_a_network(clouds):
    asked(clouds)
    clouds.run("prices")
    assert (clouds.aws.calls, clouds.gcp.calls) == ([], [])
    assert not (clouds.database.parent / "quotas.json").exists()
