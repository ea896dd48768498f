"""Torch's semantics on the pretended GPU, where a shortcut of ours once changed them."""

import pytest

pytestmark = pytest.mark.torch
FLASH, EFFICIENT = "flash_attention", "efficient_attention"


def test_what_copies_and_what_does_not(probe):
    assert probe("copies are copies") == [False, True, "cpu", "cuda:0", False, True, False, True]


def test_values_are_forgotten_by_every_way_to_write(probe):
    known, through_data, through_list, of_empty, through_copy = probe("values after writes")
    assert known == 6
    # Made up, as any unknown integer.
    assert (through_data, through_list, of_empty, through_copy) == (0, 0, 0, 0)


def test_values_are_forgotten_where_torch_counts_no_version(probe):
    by_out, moved, inferred, untouched = probe("values after stranger writes")
    assert (by_out, moved, inferred, untouched) == (0, 0, [6, 0], 6)


def test_what_is_made_for_a_copy_is_measured_up_to_it(probe):
    on_cpu, *to_gpu, kernel, to_cpu, seconds, by_processes, made_up = probe("what is made for a copy")
    assert on_cpu == ["cpu"]
    assert to_gpu == [["copied", "resume"]] * 2
    assert kernel == to_cpu == ["resume"]
    # What processes make is not seen, and made-up samples tell nothing of the script's own.
    assert (seconds, by_processes, made_up) == (2.5, None, None)


def test_a_text_is_generated_until_it_is_long_enough(probe):
    assert probe("texts that grow until all have ended") == [7, 7]


def test_a_parameter_that_was_frozen_after_a_backward_pass_can_move(probe):
    assert probe("frozen parameters that move") == ["cpu", "cuda:0", True, False, True, [2, 3]]


def test_experts_get_their_even_share_of_the_tokens_by_all_ways_to_ask(probe):
    found, before, after, made_up_before, first_of_four, made_up_after = probe("tokens of a router's experts")
    # 30 tokens choose two of four experts each, in turn: 0 and 1, 2 and 3, 0 and 1, ...
    assert found == [[[15, 15, 15, 15]] * 3] * 2
    # Only a choice that decides a size is told.
    assert (before, after) == ([], ["what scores decide is chosen equally often"])
    assert first_of_four == 8
    # An error after such a value was read may be advisor's.
    assert (made_up_before, made_up_after) == (False, True)


def test_a_mask_of_what_is_not_computed_keeps_all_and_that_is_told(probe):
    """Was: the size was recorded as if no value were NaN."""
    *kept, known, half, chosen, checked, any_true, all_finite = probe("masks of what is not computed")
    told = ["values that are not computed pass checks: they are finite, and all() holds"]
    assert kept == [[10_000, told, False]] * 5
    assert known == [1, [], False]
    # What went to main memory is supposed there, too.
    assert half == [2, ["half of a mask is true"], False]
    assert chosen == [2500, ["what scores decide is chosen equally often"], False]
    # A loss that is only looked at decides no size; an error after that may be advisor's.
    assert checked == [None, [], True]
    # Large masks too; half of one that says nothing of that would take its whole size in memory.
    assert (any_true, all_finite) == ([False, False, False], True)


def test_a_subclass_may_inherit_how_it_takes_operators_apart(probe):
    assert probe("inherited dispatch") == 2


def test_weights_in_main_memory_take_no_room(probe):
    assert probe("weights in main memory") == [True, [32768, 16384], "torch.bfloat16", "cuda:0"]


def test_what_is_written_to_main_memory_is_kept(probe):
    million = 2**20
    assert probe("data in main memory") == [0, million, 3, 2048, million, 1024, 7 * million]


def test_zeros_that_are_read_in_place_of_a_weights_values_are_stated(probe):
    written, read, unread, words, small_is_drawn = probe("weights that are read in main memory")
    assert (written, read, unread) == ([1], [1] * 9, [[]] * 5)
    assert words == ["large weights in main memory, which the script reads, are zeros"]
    assert small_is_drawn


def test_a_parameter_keeps_its_own_class_and_what_it_notes(probe):
    assert probe("a parameter of a class of its own") == [
        *("Packed", True, True, "packed", "torch.uint8", False, ["weight"], [2, 8])
    ]


def test_threads_may_use_the_gpu_at_once(probe):
    assert probe("threads at once") == 4 * sum(range(1, 200)) + 199 * (200 + 400 + 600)


def test_another_gpu_than_the_own_is_refused(probe):
    *others, own = probe("a second GPU")
    assert others == ["it uses a second GPU in one process, cuda:1"] * 5
    assert own is None


def test_a_thread_may_ask_for_the_meta_device(probe):
    assert probe("meta in a thread") == ["meta", "cuda"]


def test_the_kernel_that_the_script_chose(probe):
    assert probe("attention by choice") == [
        *([EFFICIENT], [FLASH], [], [], [EFFICIENT], [EFFICIENT]),
        # cuDNN's kernel comes before the mathematics on Hopper, and only in 16 bits.
        *([], [EFFICIENT], []),
    ]


def test_what_the_script_allows_is_kept_for_other_gpus_backward_too(probe):
    assert probe("attention that is allowed") == [
        [[None, None]] * 2,
        [[["flash"], None]] * 2,
        [[None, None]] * 2,
        [[["efficient", "cudnn"], None]] * 2,
        [[["cudnn", "flash"], True]] * 2,
        [[["flash", "efficient"], None]] * 2,
    ]


def test_an_rms_norm_is_the_kernel_that_a_gpu_has(probe):
    plain, full, bare, mixed, under_autocast = probe("RMS norms")
    image, rows, weight = [4, 6, 8], [4, 1, 1], [6, 8]
    kept_in_full = ["forward", "float32", [image, rows]], ["backward", "float32", [image, weight]]
    assert plain == [["forward", "bfloat16", [image, rows]], ["backward", "bfloat16", [image, weight]]]
    assert full == list(kept_in_full)
    # Without a weight the last input of the backward pass is what the forward pass kept.
    assert bare == [["forward", "bfloat16", [image, rows]], ["backward", "float32", [image]]]
    # C++ takes it apart where weight and input differ in dtype; autocast gives it both in float32.
    assert mixed == []
    assert under_autocast == list(kept_in_full)


def test_graphs_break_where_values_are_read_or_decide_shapes(probe):
    """As ``torch._dynamo.explain`` of 2.13 has it; an index by numbers breaks none, nor a write by a mask."""
    assert probe("graph breaks") == [
        ["aten::index", 1], ["aten::item", 2], ["aten::masked_select", 1], ["aten::nonzero", 1],
    ]  # fmt: skip


def test_flash_attention_shares_heads_of_the_keys_and_others_get_copies(probe):
    assert probe("grouped heads") == [2, 2, 8, 2]


def test_libraries_can_read_what_a_loader_takes(probe):
    assert probe("loader signature") == ["self", "dataset", "batch_size", "shuffle"]


def test_a_loader_made_of_another_ones_attributes_keeps_the_workers(probe):
    assert probe("workers of a loader made again") == [0, 3]


def test_a_collate_function_may_take_memory_without_any_work(probe):
    assert probe("empty batches") == ["cuda:0"] * 3


def test_sparse_tensors_have_the_form_and_entries_of_those_of_the_cpu(probe):
    """The oracle is torch's CPU, which computes them."""
    real, fake = probe("sparse tensors")
    # CUDA's kernel joins the entries of both, the CPU's merges them.
    assert (real.pop("sum")[3], fake.pop("sum")[3]) == (3, 6)
    assert fake == real
    assert real["moved"][3] == 3


def test_compressed_layouts_stop_on_the_gpu_alone(probe):
    """Was: a CSR matrix that was made on the GPU was multiplied as if dense."""
    on_cpu, *on_gpu = probe("compressed layouts")
    assert on_cpu == "torch.sparse_csr"
    assert on_gpu == ["CompressedLayoutError"] * 8


def test_optimizers_step_over_the_rows_that_were_looked_up_not_over_the_table(probe):
    for_sgd = [[64, [64, 16]], ["index_add_"], 64 * 16]
    of_moments = [[64, [64, 16]], ["_coalesce", "index_add_", "sparse_mask"], 64 * 16]
    assert probe("sparse gradients") == 2 * [for_sgd, of_moments, of_moments]


def test_gradients_of_several_passes_have_the_rows_of_all(probe):
    """The oracle is torch's CPU, where no row comes twice."""
    real, fake = probe("sparse gradients of several passes")
    assert real == fake == [[rows, [rows, 16]] for rows in (64, 128, 0, 64)]


def test_what_sparse_tensors_become_is_known_or_ends_the_profile(probe):
    *unknown, of_size, root = probe("sparse and unknown")
    names = ("_sparse_softmax", "_to_sparse", "mm", "_sparse_sum")
    for name, failure in zip(names, unknown, strict=True):
        assert failure.startswith(f"what aten::{name}"), failure
        assert failure.endswith("with sparse tensors on a GPU is not known")
    assert of_size == "the size of a sparse tensor follows from indices that are not computed"
    assert root == "torch.sparse_coo"


def test_products_have_the_name_of_what_runs_on_their_operands(probe):
    of_sparse = ["aten::_sparse_mm"], ["aten::_sparse_mm"], ["aten::_sparse_addmm"]
    assert probe("products with sparse tensors") == [*of_sparse, ["aten::addmm"], []]
