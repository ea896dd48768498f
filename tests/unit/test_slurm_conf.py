"""What is read of a slurm.conf."""

import math

import pytest

from advisor.core.errors import InputError
from advisor.site_files.slurm_conf import read_slurm_conf

CONF = r"""
# A cluster
SchedulerType=sched/backfill
PriorityWeightAge=1000  # and a comment
PriorityMaxAge=14-0
NodeName=DEFAULT Gres=gpu:a100:4,nic:2 Sockets=2 CoresPerSocket=16 ThreadsPerCore=2
NodeName=big[01-03,10] CPUs=96
NodeName=r[0-1]n[1-2] Gres=gpu:2(S:0-1),gpu:h100:1
NodeName=old Gres=gpu State=UNKNOWN
PartitionName=DEFAULT MaxTime=7-0
PartitionName=gpu Nodes=ALL Default=YES \
  PriorityTier=2
PartitionName=short Nodes=big[01-02] MaxTime=90 DefaultTime=30
PartitionName=long Nodes=old MaxTime=UNLIMITED
"""


def read(tmp_path, text: str, unit: str = "gpus"):
    path = tmp_path / "slurm.conf"
    path.write_text(text)
    return read_slurm_conf(path, unit)


@pytest.mark.parametrize(
    ("unit", "units"), [("gpus", (29, 8, 1)), ("nodes", (9, 2, 1)), ("cores", (4 * 96 + 5 * 64, 192, 64))]
)
def test_partitions_and_their_units(tmp_path, unit, units):
    conf = read(tmp_path, CONF, unit)
    assert tuple(one.units for one in conf.partitions) == units
    assert conf.units == units[:1]
    assert {one.pool for one in conf.partitions} == {0}


def test_limits_and_options(tmp_path):
    conf = read(tmp_path, CONF)
    gpu, short, long = conf.partitions
    assert (gpu.max_s, short.max_s, short.default_s, long.max_s) == (7 * 86400, 5400, 1800, math.inf)
    assert (gpu.tier, short.tier, gpu.is_default, short.is_default) == (2, 1, True, False)
    assert (conf.number("PriorityWeightAge"), conf.number("PriorityWeightQOS")) == (1000, 0)
    assert conf.seconds("PriorityMaxAge", 0) == 14 * 86400


def test_partitions_without_common_nodes_are_pools_of_their_own(tmp_path):
    text = "NodeName=a,b,c Gres=gpu:8\nPartitionName=x Nodes=a\nPartitionName=y Nodes=b,c\n"
    conf = read(tmp_path, text)
    assert [(one.name, one.units, one.pool) for one in conf.partitions] == [("x", 8, 0), ("y", 16, 1)]
    assert conf.units == (8, 16)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("this is no configuration\n", "line 1: 'this is no configuration' is not Name=value"),
        ("Include nodes.conf\n", "included files are not read"),
        ("NodeName=a[1-x]\n", "no list of nodes such as"),
        ("NodeName=a[\u00b2]\n", "no list of nodes such as"),
        (f"NodeName=a[{'1' * 5000}-2]\n", "no list of nodes such as"),
        ("NodeName=a Gres=gpu:1\nPartitionName=p Nodes=a PriorityTier=\u00b2\n", "is no whole number"),
        ("NodeName=a Gres=gpu:1\nPartitionName=p Nodes=a MaxTime=\u00b2\n", "is no time"),
        ("NodeName=a[1-99999999]\n", "more than 100,000 nodes"),
        ("NodeName=a Gres=gpu:1\nPartitionName=p Nodes=b\n", "has node 'b', which no line defines"),
        ("NodeName=a Gres=gpu:1\nPartitionName=p Nodes=a MaxTime=soon\n", "MaxTime=soon is no time"),
        ("NodeName=a CPUs=many\nPartitionName=p Nodes=a\n", "no partition with gpus"),
        (
            f"NodeName=a Gres={',gpu:999999' * 1100}\nPartitionName=p Nodes=a\n",
            "more than 1,000,000,000 gpus",
        ),
        ("", "no partition with gpus"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, words):
    with pytest.raises(InputError, match=words.replace("(", "\\(")):
        read(tmp_path, text)
