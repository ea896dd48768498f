"""Rows of scripts whose data is missing, endless, uneven or slow to load."""

from tests.compatibility.row import ADAM, EFFICIENT, Row, dense, linear_flops

# torchvision's ResNet-18: the stem, then two blocks a width; the first of a new width has a shortcut.
_RESNET18 = (
    (64, 3, 7, 7), *2 * ((64,),), *4 * ((64, 64, 3, 3), (64,), (64,)),
    *(
        shape
        for width in (128, 256, 512)
        for kernel in ((width // 2, 3, 3), *3 * ((width, 3, 3),), (width // 2, 1, 1))
        for shape in ((width, *kernel), (width,), (width,))
    ),
    *dense(512, 1000),
)  # fmt: skip

DATA = (
    # The data set is known by its name: it has 50,000 images.
    Row(
        script="cifar10_missing", library="torchvision", fake_data="3x32x32:float32,10:class",
        batch=4, samples=50_000, iterations=12_500, warning="CIFAR10 could not be made",
        parameters=((6, 3, 5, 5), (6,), (16, 6, 5, 5), (16,), *dense(400, 120, 84, 10)),
        product_flops=linear_flops(4, 400, 120, 84, 10, input_needs_gradient=True),
        calls={"convolution": 2, "convolution_backward": 2, "max_pool2d_with_indices": 2, "addmm": 3},
    ),
    Row(
        script="imagefolder_missing", library="torchvision", fake_data="3x224x224:float32,1000:class",
        num_samples=1_281_167, batch=64, samples=1_281_167, iterations=20_019,
        warning="ImageFolder could not be made", parameters=_RESNET18,
        product_flops=linear_flops(64, 512, 1000, input_needs_gradient=True),
        # Sixteen convolutions in eight blocks, the stem, three shortcuts; a batch norm after each.
        calls={"convolution": 20, "convolution_backward": 20, "cudnn_batch_norm": 20,
               "cudnn_batch_norm_backward": 20, "addmm": 1},
    ),
    # Nine tenths of the samples are trained on, the last batch is smaller.
    Row(
        script="csv_dataset_missing", fake_data="13:float32,float32", num_samples=20_000,
        batch=256, samples=18_000, iterations=71, warning="HousePrices could not be made",
        parameters=dense(13, 128, 1), product_flops=linear_flops(256, 13, 128, 1),
        calls={"addmm": 2, "mm": 3, "mse_loss": 1, ADAM: 1},
    ),
    Row(
        script="endless_stream", batch=32, warning="`iterations_per_epoch`",
        parameters=((1000, 64), *dense(64, 1000)),
        product_flops=linear_flops(32 * 128, 64, 1000, input_needs_gradient=True),
        calls={"embedding": 1, "addmm": 1, "mm": 2, ADAM: 1},
    ),
    # The evaluation is no part of an iteration: two convolutions, not twelve.
    Row(
        script="evaluates_first", batch=64, samples=20_000, iterations=313,
        warning="ended after 10 of its 500 batches",
        parameters=((32, 1, 3, 3), (32,), (64, 32, 3, 3), (64,), *dense(9216, 128, 10)),
        product_flops=linear_flops(64, 9216, 128, 10, input_needs_gradient=True),
        calls={"convolution": 2, "convolution_backward": 2, "addmm": 2},
    ),
    # An image takes about a millisecond; a tenth of that on a fast machine would be noticed.
    Row(
        script="input_bound", batch=64, samples=50_000, iterations=782, loading_s=64 * 0.0001,
        parameters=((32, 3, 7, 7), (32,), (64, 32, 3, 3), (64,), *dense(64, 100)),
        product_flops=linear_flops(64, 64, 100, input_needs_gradient=True),
        calls={"convolution": 2, "convolution_backward": 2, "addmm": 1},
    ),
    # The 5000 sentences make 80 batches of 29 to 326, shuffled. What goes into attention is transposed, so
    # its product is an `mm`; so are the two gradients of each of the nine products.
    Row(
        script="token_batches", batch=range(29, 327), samples=5000, iterations=80, warning="differ in size",
        parameters=((13, 128), *2 * (*dense(128, 384), *dense(128, 128), *dense(128, 256, 128),
                    *4 * ((128,),)), *dense(128, 2)),
        calls={"embedding": 1, EFFICIENT: 2, EFFICIENT + "_backward": 2, "native_dropout": 6,
               "addmm": 2 * 3 + 1, "mm": 2 + 2 * (2 * 4 + 1)},
    ),
    # The unlabelled loader ends the epoch; its batches are guessed without gradients and learnt from.
    Row(
        script="two_loaders", batch=56, samples=9000, iterations=160, warning="beside it 50 batches",
        parameters=dense(32, 64, 4),
        product_flops=linear_flops(8, 32, 64, 4) + linear_flops(56, 32, 64, 4)
        + 2 * 56 * (32 * 64 + 64 * 4),
        calls={"addmm": 3 * 2, "mm": 2 * 3, "native_dropout": 3, "native_dropout_backward": 2},
    ),
    # One batch a step at first, four after the warm-up; weights are averaged and clipped once a step.
    Row(
        script="infinite_loader", batch=64, samples=1000, iterations=16, accumulation=4, amp="float16",
        parameters=((16, 3, 3, 3), (16,), (16,), *dense(4096, 10)), warning="nominal batch size of 64",
        product_flops=4 * linear_flops(16, 4096, 10, input_needs_gradient=True),
        calls={"convolution": 4, "convolution_backward": 4, "cudnn_batch_norm": 4, "lerp_": 5,
               "_foreach_norm": 1, "_amp_update_scale_": 1},
    ),
    # Four batches are evaluated before each step, which none of it holds.
    Row(
        script="evaluates_between", batch=32, samples=640, iterations=20,
        warning="an evaluation of 4 batches without gradients",
        parameters=((8, 3, 3, 3), (8,), *dense(8 * 14 * 14, 10)),
        product_flops=linear_flops(32, 8 * 14 * 14, 10, input_needs_gradient=True),
        calls={"convolution": 1, "convolution_backward": 1, "addmm": 1, ADAM: 1},
    ),
)  # fmt: skip
