"""What is counted of each way to communicate, and what comes back; code runs under the fake GPU."""

import pytest

pytestmark = pytest.mark.torch


def entry(kind, num_bytes, count=1, world_size=4):
    return {"kind": kind, "num_bytes": num_bytes, "world_size": world_size, "count": count}


def test_each_kind_by_the_whole_that_is_moved(probe):
    assert probe("collectives of tensors") == [
        entry("all_reduce", 400),
        entry("broadcast", 400),
        entry("reduce", 400),
        # 100 numbers of each of 4 ranks, as a list and as one tensor.
        entry("all_gather", 1600, count=2),
        entry("reduce_scatter", 1600, count=2),
        entry("all_to_all", 1600, count=2),
        entry("scatter", 1600),
        entry("gather", 1600),
        entry("send", 400),
        entry("recv", 400),
    ]


def test_functional_collectives_have_shapes(probe):
    shapes, entries = probe("functional collectives")
    assert shapes == [[100], [400], [25]]
    assert entries == [entry("all_reduce", 400), entry("all_gather", 1600), entry("reduce_scatter", 400)]


def test_tensors_on_the_cpu_are_those_of_equal_ranks(probe):
    gathered, entries = probe("collectives on the CPU")
    assert gathered == [[1.0, 2.0]] * 2
    assert entries == [entry("all_gather", 16, world_size=2)]


def test_values_are_those_of_equal_ranks_on_either_device(probe):
    cpu, cuda = probe("values of collectives")
    sevens = [7] * 4
    assert cpu == [sevens, sevens, sevens, 28, 7, 7, 7]
    # A product is not computed: neither it nor what shares its memory may keep its old value.
    assert cuda == [sevens, [0] * 4, sevens, 28, 7, 7, 0]


def test_what_communicates_is_no_operator(probe):
    assert not [name for name in probe("operators beside collectives") if "c10d" in name]


def test_a_future_holds_the_result_for_hooks(probe):
    assert probe("future of a collective") == [True, True, [8]]


def test_a_group_counts_its_own_ranks(probe):
    assert probe("collective of a group") == [entry("all_reduce", 8, world_size=2)]


def test_gradients_are_exchanged_once_for_accumulated_passes(probe):
    assert probe("no_sync") == [entry("all_reduce", 4 * 40)]


@pytest.mark.parametrize("hook", ["fp16 hook", "bf16 hook"])
def test_a_hook_of_the_script_decides_what_is_sent(probe, hook):
    assert probe(hook) == [entry("all_reduce", 2 * 40)]


def test_a_rank_of_fsdp_holds_its_shard_and_two_layers(probe):
    usage, entries, layer = probe("memory of FSDP2")
    shard = 8 * layer // 4
    assert usage["parameter_bytes"] == usage["gradient_bytes"] == shard
    assert usage["optimizer_bytes"] == 2 * shard
    # The layer in use and the next one, its gradients, and the buffer that they are sent from.
    assert usage["activation_bytes"] == pytest.approx(4 * layer, rel=0.05)
    assert entries == [entry("all_gather", layer, count=16), entry("reduce_scatter", layer, count=8)]


def test_sync_batch_norm_gathers_its_statistics(probe):
    shapes, dtype, entries, assumptions = probe("SyncBatchNorm")
    assert assumptions == []  # every rank has samples
    assert (shapes, dtype) == ([[8, 6, 3, 3], [6], [6]], "torch.bfloat16")
    # Mean, deviation and count of 6 channels from 4 ranks; then two sums.
    assert entries == [entry("all_gather", 4 * 13 * 4), entry("all_reduce", 4 * 12)]


def test_an_optimizer_that_shares_its_state_sends_parameters_around(probe):
    assert probe("ZeroRedundancyOptimizer") == ["all_reduce", "broadcast"]


def test_a_reduction_on_a_stream_of_its_own_or_asynchronous_is_not_waited_for(probe):
    assert probe("who waits for reductions") == [True, True, False, False, False, False]
