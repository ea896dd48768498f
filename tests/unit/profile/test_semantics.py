"""Torch's semantics on the pretended GPU, where a shortcut of ours once changed them."""

import pytest

pytestmark = pytest.mark.torch
FLASH, EFFICIENT = "flash_attention", "efficient_attention"


MILLION = 2**20
OF_SPARSE = [["aten::_sparse_mm"], ["aten::_sparse_mm"], ["aten::_sparse_addmm"]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("copies are copies", [False, True, "cpu", "cuda:0", False, True, False, True]),
        ("texts that grow until all have ended", [7, 7]),
        ("frozen parameters that move", ["cpu", "cuda:0", True, False, True, [2, 3]]),
        ("inherited dispatch", 2),
        ("weights in main memory", [True, [32768, 16384], "torch.bfloat16", "cuda:0"]),
        ("data in main memory", [0, MILLION, 3, 2048, MILLION, 1024, 7 * MILLION]),
        ("a parameter of a class of its own",
         ["Packed", True, True, "packed", "torch.uint8", False, ["weight"], [2, 8]]),
        ("threads at once", 4 * sum(range(1, 200)) + 199 * (200 + 400 + 600)),
        ("meta in a thread", ["meta", "cuda"]),
        # cuDNN's kernel comes before the mathematics on Hopper, and only in 16 bits.
        ("attention by choice",
         [[EFFICIENT], [FLASH], [], [], [EFFICIENT], [EFFICIENT], [], [EFFICIENT], []]),
        # Kept for other GPUs, backward too.
        ("attention that is allowed",
         [[[None, None]] * 2, [[["flash"], None]] * 2, [[None, None]] * 2,
         [[["efficient", "cudnn"], None]] * 2,
          [[["cudnn", "flash"], True]] * 2, [[["flash", "efficient"], None]] * 2]),
        # Right behind a step, without autograd, of what is older and has a weight's shape; neither images
        # that lie on the GPU nor a teacher's pass are.
        ("averages of weights",
         [[["sub", "optimizer"], ["mul", "optimizer"], ["add_", "optimizer"],
           ["advisor::h2d_copy", "forward"], ["mul_", "forward"]],
          [["zeros", "forward"], ["neg_", "forward"]], [["neg_", "forward"]],
          [["mul_", "optimizer"], ["sub", "forward"], ["mul_", "forward"]],
          [["mul_", "optimizer"], ["addmm", "forward"]]]),
        # As torch._dynamo.explain of 2.13 has it; an index by numbers breaks none, nor a write by a mask.
        ("graph breaks",
         [["aten::index", 1], ["aten::item", 2], ["aten::masked_select", 1], ["aten::nonzero", 1]]),
        # Flash attention shares heads of the keys, and others get copies.
        ("grouped heads", [2, 2, 8, 2]),
        ("loader signature", ["self", "dataset", "batch_size", "shuffle"]),
        ("workers of a loader made again", [0, 3]),
        ("empty batches", ["cuda:0"] * 3),
        # Called by what runs on their operands.
        ("products with sparse tensors", [*OF_SPARSE, ["aten::addmm"], []]),
    ],
)  # fmt: skip
def test_each_answer_is_torchs(probe, name, expected):
    assert probe(name) == expected


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


def test_zeros_that_are_read_in_place_of_a_weights_values_are_stated(probe):
    written, read, unread, words, small_is_drawn = probe("weights that are read in main memory")
    assert (written, read, unread) == ([1], [1] * 9, [[]] * 5)
    assert words == ["large weights in main memory, which the script reads, are zeros"]
    assert small_is_drawn


def test_another_gpu_than_the_own_is_refused(probe):
    *others, own = probe("a second GPU")
    assert others == ["it uses a second GPU in one process, cuda:1"] * 5
    assert own is None


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
