"""The rows of docs/compatibility.md."""

from tests.compatibility.row import ADAM, EFFICIENT, FLASH, Row, dense, linear_flops
from tests.compatibility.rows_of_data import DATA
from tests.compatibility.rows_of_groups import GROUPS

_ONE_GPU = (
    Row(
        script="quickstart", batch=64, samples=1000, iterations=16,
        parameters=dense(784, 512, 512, 10), product_flops=linear_flops(64, 784, 512, 512, 10),
        calls={"addmm": 3, "mm": 5, "_foreach_add_": 1},
    ),
    Row(
        script="amp_gradscaler", amp="float16", warning="no torch DataLoader",
        parameters=dense(4096, 4096, 4096, 4096), product_flops=linear_flops(512, 4096, 4096, 4096, 4096),
        # Weights, biases and the first input are cast; activations are half already.
        calls={"addmm": 3, "_amp_foreach_non_finite_check_and_unscale_": 1, "_amp_update_scale_": 1,
               "_foreach_norm": 1},
    ),
    Row(
        # cuDNN normalises batches of FP32 and FP16 only.
        script="bf16_autocast", batch=32, samples=512, iterations=16, amp="bfloat16",
        parameters=((32, 3, 3, 3), *3 * ((32,),), (64, 32, 3, 3), *3 * ((64,),), *dense(64, 10)),
        calls={"convolution": 2, "convolution_backward": 2, "native_batch_norm": 2, ADAM: 1},
    ),
    Row(
        script="gradient_accumulation", batch=32, samples=640, iterations=20, accumulation=4,
        parameters=dense(64, 256, 1), product_flops=4 * linear_flops(8, 64, 256, 1),
        calls={"addmm": 8, "mse_loss_backward": 4, ADAM: 1},
    ),
    # Four micro-steps of two layers; their evaluations are no part of them. Two tables are one parameter.
    Row(
        script="nanogpt", accumulation=4, amp="bfloat16", warning="no torch DataLoader",
        parameters=(
            (512, 64), (64, 64), (64,), *2 * (2 * ((64,),) + ((192, 64), (64, 64), (256, 64), (64, 256))),
        ),
        product_flops=4 * 3 * 2 * 256 * (2 * 12 * 64 * 64 + 512 * 64),
        calls={FLASH: 8, FLASH + "_backward": 8, "mm": 4 * 3 * 9, "native_layer_norm": 4 * 5,
               "_fused_adamw_": 2},
    ),
    # Two products a block, four blocks, run twice; stem and head once.
    Row(
        script="gradient_checkpointing", batch=32, samples=256, iterations=8,
        product_flops=2 * 32 * 4 * 4 * 2 * 128 * 512 + linear_flops(32, 32, 128) + 3 * 2 * 32 * 128 * 10,
        calls={"addmm": 18, "native_layer_norm": 8, "native_layer_norm_backward": 4, "native_dropout": 8},
    ),
    Row(
        script="gradient_checkpointing", arguments=("--use-reentrant",), batch=32, samples=256, iterations=8,
        product_flops=2 * 32 * 4 * 4 * 2 * 128 * 512 + linear_flops(32, 32, 128) + 3 * 2 * 32 * 128 * 10,
        calls={"addmm": 18, "native_layer_norm": 8, "native_layer_norm_backward": 4, "native_dropout": 8},
    ),
    # Five layers: the generator once, the discriminator for real, for fake and for the generator's loss.
    Row(
        script="dcgan", batch=32, samples=160, iterations=5,
        calls={"convolution": 20, "convolution_backward": 20, "binary_cross_entropy": 3, ADAM: 2},
    ),
    Row(
        script="word_language_model", warning="no torch optimizer stepped",
        # The head's rows are 35 words of 20 texts; each of the eleven parameters is updated by hand.
        parameters=((1000, 64), *2 * ((256, 64), (256, 64), (256,), (256,)), *dense(64, 1000)),
        product_flops=linear_flops(35 * 20, 64, 1000, input_needs_gradient=True),
        calls={"_cudnn_rnn": 1, "_cudnn_rnn_backward": 1, "embedding": 1, "_foreach_norm": 1, "add_": 11},
    ),
    # Two evaluations of two cells for 19 steps, and a test that goes on for ten more.
    Row(
        script="time_sequence_prediction", warning="evaluated the model 2 times",
        calls={"_thnn_fused_lstm_cell": 2 * (2 * 19 + 19 + 10),
               "_thnn_fused_lstm_cell_backward_impl": 2 * 2 * 19, "addmm": 2 * 19 + 19 + 10, "mse_loss": 3},
    ),
    # The image is the only parameter that learns; the features have no gradients of their own.
    Row(
        script="lbfgs_style", warning="evaluated the model 2 times",
        parameters=((1, 3, 128, 128), (64, 3, 3, 3), (64,), (64, 64, 3, 3), (64,), (128, 64, 3, 3), (128,)),
        # One Gram matrix of 128 channels of 64 x 64, and two products for its gradient.
        product_flops=2 * 3 * 2 * 128 * 128 * 64 * 64,
        calls={"convolution": 2 * 3, "convolution_backward": 2 * 3, "mse_loss": 2 * 2, "clamp_": 2},
    ),
    # Each of the six parameters has an optimizer of its own.
    Row(
        script="optimizer_in_backward", warning="no torch DataLoader",
        parameters=((32, 3, 3, 3), (32,), (64, 32, 3, 3), (64,), *dense(64, 10)),
        product_flops=linear_flops(8, 64, 10, input_needs_gradient=True),
        calls={"convolution": 2, "convolution_backward": 2, "addcdiv_": 6},
    ),
    # Each critic step: generator forward, critic for real and for fake; at the end once through both.
    Row(
        script="wgan", batch=5 * 64, samples=60_000, iterations=188, warning="5 steps of another",
        parameters=(*dense(100, 128, 256), (256,), (256,), *dense(256, 784), *dense(784, 512, 256, 1)),
        product_flops=5 * 2 * linear_flops(64, 784, 512, 256, 1)
        + 5 * 2 * 64 * (100 * 128 + 128 * 256 + 256 * 784)
        + linear_flops(64, 100, 128, 256, 784)
        + linear_flops(64, 784, 512, 256, 1, input_needs_gradient=True),
        calls={"addmm": 5 * 9 + 6, "clamp_": 5 * 6, "native_batch_norm": 6, "native_batch_norm_backward": 1,
               ADAM: 6},
    ),
    Row(
        script="checkpoint_resume", batch=32, samples=64, iterations=2,
        parameters=((16, 3, 3, 3), (16,), *dense(16 * 30 * 30, 10)),
        product_flops=linear_flops(32, 16 * 30 * 30, 10, input_needs_gradient=True),
        calls={"convolution": 1, "convolution_backward": 1, "addmm": 1},
    ),
    Row(
        script="torch_compile", warning="no torch DataLoader",
        calls={"convolution": 3, "convolution_backward": 3, "cudnn_batch_norm": 2, ADAM: 1},
    ),
    Row(
        script="data_parallel", batch=30, samples=100, iterations=4, warning="profiled on one GPU",
        parameters=dense(5, 2), product_flops=linear_flops(30, 5, 2), calls={"addmm": 1, "mm": 1},
    ),
    Row(
        script="hf_trainer_gpt2", library="transformers", parallel_by="transformers",
        batch=16, samples=320, iterations=20,
        accumulation=2, amp="bfloat16",
        # Two passes through two layers; the mask of ones hides nothing, so flash attention it is.
        calls={FLASH: 4, FLASH + "_backward": 4, "addmm": 16, "native_layer_norm": 10, "_fused_adamw_": 2},
    ),
    Row(
        script="hf_device_map", library="transformers", warning="keeps the weights it began with",
        parameters=(*2 * ((500, 64),), *2 * (*4 * ((64, 64),), *3 * ((64, 128),)), *5 * ((64,),)),
        product_flops=3 * 2 * 4 * 32 * (500 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128)),
        calls={EFFICIENT: 2, EFFICIENT + "_backward": 2, "mm": 3 * 15, ADAM: 1},
    ),
    # Weights that do not learn have a gradient to their inputs alone; adapters of rank 8 on two of seven.
    Row(
        script="qlora_peft", library="bitsandbytes", warning="keeps the weights it began with",
        product_flops=2 * 4 * 64 * (
            2 * (500 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128)) + 3 * 2 * 2 * 2 * 8 * 64
        ),
        calls={"bitsandbytes::dequantize_4bit": 2 * 14, "mm": 2 * 15 + 3 * 8, ADAM: 1},
    ),
    Row(
        script="accelerate_loop", library="accelerate", parallel_by="accelerate",
        batch=32, samples=320, iterations=10,
        accumulation=2, amp="float16", parameters=dense(32, 128, 4),
        product_flops=2 * linear_flops(16, 32, 128, 4),
        calls={"addmm": 4, "_foreach_norm": 1, "_amp_update_scale_": 1, ADAM: 1},
    ),
    Row(
        script="lightning_trainer", library="lightning", parallel_by="lightning",
        batch=64, samples=256, iterations=4,
        accumulation=2, amp="bfloat16", parameters=(*dense(784, 64, 3), *dense(3, 64, 784)),
        product_flops=2 * linear_flops(32, 784, 64, 3, 64, 784),
        calls={"addmm": 8, "mse_loss": 2, "_foreach_norm": 1, ADAM: 1},
    ),
    Row(
        script="lightning_fabric", library="lightning", parallel_by="lightning",
        batch=64, samples=640, iterations=10, amp="float16",
        parameters=((16, 1, 3, 3), (16,), (32, 16, 3, 3), (32,), *dense(4608, 128, 10)),
        product_flops=linear_flops(64, 4608, 128, 10, input_needs_gradient=True),
        calls={"convolution": 2, "convolution_backward": 2, "native_dropout": 1, "_amp_update_scale_": 1},
    ),
    Row(
        script="timm_train", library="timm", batch=16, samples=96, iterations=6, amp="float16",
        # ResNet-18: 20 convolutions, 20 batch norms, one linear layer.
        calls={"convolution": 20, "convolution_backward": 20, "cudnn_batch_norm": 20, "addmm": 1,
               "_amp_update_scale_": 1},
    ),
    Row(
        script="torchvision_finetune", library="torchvision", batch=4, samples=40, iterations=10,
        # Only the last layer has gradients: nothing flows back through the convolutions.
        product_flops=linear_flops(4, 512, 2),
        calls={"convolution": 20, "convolution_backward": 0, "addmm": 1, "mm": 1},
    ),
    Row(
        script="fasterrcnn", library="torchvision", batch=2, samples=8, iterations=4,
        warning="half of a mask is true, half of the boxes overlap",
        # MobileNetV2 has 52 convolutions with batch norm, the proposals need three more; the boxes of each
        # image are thinned out alone; two layers and two predictors judge what is left.
        calls={"torchvision::nms": 2, "torchvision::roi_align": 1, "torchvision::_roi_align_backward": 1,
               "convolution": 55, "convolution_backward": 55, "cudnn_batch_norm": 52, "addmm": 4},
    ),
    Row(
        script="dlrm", batch=128, samples=2560, iterations=20,
        parameters=(*((n, 16) for n in (1000, 2000, 500, 300)), *dense(13, 64, 16), *dense(26, 64, 1)),
        # Five vectors of 16 are multiplied with each other; the top gets those ten products and 16 features.
        product_flops=linear_flops(128, 13, 64, 16) + 3 * 2 * 128 * 5 * 5 * 16
        + linear_flops(128, 26, 64, 1, input_needs_gradient=True),
        calls={"_embedding_bag": 4, "_embedding_bag_backward": 4, "addmm": 4, "bmm": 3},
    ),
    Row(
        script="gnn_message_passing", warning="no torch DataLoader",
        # A training pass and an evaluation; three layers scatter in each.
        calls={"index_add_": 4, "scatter_reduce_": 2, "scatter_add_": 4, "native_dropout": 1, ADAM: 1},
    ),
    Row(
        script="custom_function", amp="float16", warning="no torch DataLoader",
        parameters=((64, 64), *dense(64, 1)),
        product_flops=linear_flops(32, 64, 64, 1) + 2 * 32 * 64 * 64, calls={"mm": 5, "addmm": 1},
    ),
    Row(
        script="transformer_encoder_lm", warning="no torch DataLoader",
        calls={EFFICIENT: 2, EFFICIENT + "_backward": 2, "embedding": 1, "addmm": 9, "native_dropout": 7},
    ),
    Row(
        script="diffusion_unet", batch=16, samples=160, iterations=10,
        calls={"convolution": 13, "convolution_backward": 13, EFFICIENT: 1, "native_group_norm": 4,
               "upsample_nearest2d": 1, "smooth_l1_loss": 1},
    ),
    Row(
        script="simclr", batch=32, samples=320, iterations=10, amp="float16",
        # Both views in one batch, a similarity matrix of 64 x 64 without its diagonal.
        product_flops=linear_flops(64, 64, 64, 32, input_needs_gradient=True) + 3 * 2 * 64 * 64 * 32,
        calls={"convolution": 2, "index": 4, "_amp_update_scale_": 1},
    ),
    Row(
        script="clip", batch=32, samples=256, iterations=8, amp="bfloat16",
        calls={FLASH: 4, FLASH + "_backward": 4, "convolution": 1, "embedding": 1, "native_layer_norm": 8},
    ),
    # A made-up action is always the same: the pole falls in eight steps, the policy is asked at each.
    Row(
        script="reinforce", warning="no torch DataLoader",
        parameters=dense(4, 128, 2), calls={ADAM: 1, "multinomial": 8, "native_dropout": 8, "addmm": 16},
    ),
    Row(
        script="packed_gru", batch=32, samples=160, iterations=5,
        calls={"_cudnn_rnn": 1, "_cudnn_rnn_backward": 1, "_pack_padded_sequence": 1, "addmm": 1},
    ),
    Row(
        script="mixture_of_experts", batch=8, samples=96, iterations=12, warning="chosen equally often",
        # Two layers of four experts, three products each, and two gates; each of 256 tokens has two experts.
        product_flops=2 * 3 * linear_flops(2 * 256, 64, 128, input_needs_gradient=True)
        + 2 * linear_flops(256, 64, 4, input_needs_gradient=True)
        + linear_flops(256, 64, 500, input_needs_gradient=True),
        calls={"topk": 2, "nonzero": 8, "index_add_": 8, "mm": 26 + 2 * (26 + 1), "addmm": 1},
    ),
    Row(
        script="swa", batch=16, samples=96, iterations=6,
        parameters=(*dense(20, 64), (64,), (64,), *dense(64, 3)),
        product_flops=linear_flops(16, 20, 64, 3),
        calls={"native_batch_norm": 1, "_foreach_norm": 1, "_foreach_lerp_": 1},
    ),
    Row(
        script="conv3d", batch=2, samples=24, iterations=12, amp="bfloat16",
        # Instance norm runs as batch norm.
        calls={"convolution": 4, "convolution_backward": 4, "native_batch_norm": 2, "upsample_trilinear3d": 1,
               "max_pool3d_with_indices": 1},
    ),
    Row(
        script="functional_call", batch=8, samples=64, iterations=8,
        parameters=((16, 1, 3, 3), (16,), (32, 16, 3, 3), (32,), *dense(4608, 10)),
        calls={"convolution": 2, "linalg_vector_norm": 7, "_foreach_add_": 1},
    ),
    Row(
        script="parametrizations", batch=8, samples=80, iterations=10, warning="linalg_matrix_exp",
        # The symmetric weight takes two triangles, and so do its gradients.
        calls={"convolution": 2, "linalg_matrix_exp": 2, "triu": 4, ADAM: 1},
    ),
    Row(
        script="default_device", batch=64, samples=512, iterations=8,
        parameters=((100, 32), *dense(320, 64, 5)),
        calls={"embedding": 1, "addmm": 2, "advisor::h2d_copy": 0},
        product_flops=linear_flops(64, 320, 64, 5, input_needs_gradient=True),
    ),
    Row(
        script="device_context", warning="no torch DataLoader",
        calls={EFFICIENT: 1, EFFICIENT + "_backward": 1, "addmm": 5, "native_dropout": 3,
               "advisor::h2d_copy": 0},
    ),
    Row(
        script="fused_optimizers", amp="float16", warning="no torch DataLoader",
        parameters=((100, 32), *dense(32, 64, 100)),
        product_flops=linear_flops(8 * 16, 32, 64, 100, input_needs_gradient=True),
        # AdamW has two groups: weights and biases.
        calls={"_fused_adamw_": 2, "_fused_sgd_": 1, "_amp_foreach_non_finite_check_and_unscale_": 2},
    ),
    Row(
        script="whisper", library="transformers", parallel_by="transformers",
        batch=8, samples=96, iterations=12, amp="float16",
        # Two encoder layers attend once, two decoder layers twice; all run again for the gradients.
        calls={FLASH: 12, FLASH + "_backward": 6, "convolution": 2, "_fused_adamw_": 2},
    ),
    Row(
        script="t5", library="transformers", batch=8, samples=64, iterations=8,
        # The position bias is a mask: no flash attention.
        calls={EFFICIENT: 6, EFFICIENT + "_backward": 6, "embedding": 4, "native_dropout": 18},
    ),
    Row(
        script="llama", library="transformers", batch=4, samples=80, iterations=20,
        calls={FLASH: 4, FLASH + "_backward": 2, "_fused_adamw_": 1, "_foreach_norm": 1},
    ),
    # A hundred steps of 16 samples come first.
    Row(
        script="lr_finder", batch=64, samples=2048, iterations=32,
        parameters=dense(128, 512, 10), product_flops=linear_flops(64, 128, 512, 10),
        calls={"addmm": 2, "mm": 3, ADAM: 1},
    ),
    Row(
        script="flex_attention", amp="bfloat16", warning="a mask of flex_attention leaves out half",
        parameters=((384, 128), (128, 128)), product_flops=linear_flops(512, 128, 384)
        + linear_flops(512, 128, 128, input_needs_gradient=True),
        calls={FLASH: 1, FLASH + "_backward": 1, ADAM: 1},
    ),
    # Ten tokens of eight texts in two passes; nine of each have a next one, and their logits are made twice.
    Row(
        script="trl_sft", library="trl", parallel_by="transformers",
        batch=16, samples=64, iterations=4, accumulation=2, amp="bfloat16",
        parameters=(*2 * ((64, 64),), *5 * ((64,),), *2 * (
            *2 * ((64, 64),), (64,), *2 * ((32, 64), (32,)), *3 * ((64, 128),)
        )),
        product_flops=2 * (
            3 * 2 * 80 * 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128) + 4 * 2 * 72 * 64 * 64
        ),
        calls={FLASH: 4, FLASH + "_backward": 4, "_foreach_norm": 1, "_fused_adamw_": 2},
    ),
    Row(
        script="lora", batch=8, samples=64, iterations=8,
        calls={EFFICIENT: 2, EFFICIENT + "_backward": 2, "addmm": 12, "native_dropout": 4, ADAM: 1},
    ),
)  # fmt: skip
ROWS = (*_ONE_GPU, *DATA, *GROUPS)
