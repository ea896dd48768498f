"""The jobs of docs/jobs.md: what is typed, and the sentence of an experienced engineer.

A sentence speaks of the machine that ``choice`` names. If another is recommended, the page is not written
until the sentence has been read again.
"""

from __future__ import annotations

from dataclasses import dataclass

SCRIPTS = "benchmarks/jobs_scripts"
_RESNET = "examples/train_resnet50.py --epochs 90"
_HERE = "--data s3://photos@us-east-1"
_CLUSTER = """clusters:
  - {name: lab, gpu: A100-SXM-40GB, num_gpus: 4, usd_per_gpu_h: 0.60, wait_p50: 1h, wait_p90: 12h}
"""

_H100 = (8, "H100-SXM-80GB", "spot")
_ONE_H100_NOW = (1, "H100-SXM-80GB", "on-demand")
_L40S = (1, "L40S", "on-demand")
_RTX_PRO = (1, "RTX-PRO-6000-Server", "on-demand")

# Published figures, of runs that others made. They train by other software or other batches, so they bound
# what is plausible and are no test.
_RESNET_ELSEWHERE = (
    "7,450 images/s an H100 (MLPerf 4.0, Fujitsu, MXNet), 1,463 an A100 40GB (Lambda, 2022, PyTorch)"
)
_GPT_ELSEWHERE = "a GPT of 1.3 billion parameters runs at 46 % MFU on A100s (vTrain's measurements, Megatron)"
_BERT_ELSEWHERE = "426 sequences/s of 384 tokens an A100 40GB (Lambda, 2022)"
_LLAMA_ELSEWHERE = (
    "Llama 3.1 8B at 5,762 tokens/s an H100 (torchtitan, December 2024, FSDP without compiling)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A job."""

    name: str
    arguments: str
    """Of ``advisor recommend``; words are parted by spaces, quoted as in a shell."""
    choice: tuple[int, str, str | None]
    """Number of GPUs, GPU and market that the sentence speaks of."""
    sentence: str
    """Why the answer is the right one, or what makes it doubtful."""
    settings: str | None = None
    """A settings file of the user."""
    published: str = ""
    """A figure of others beside the implied one, with its source; none was found if empty."""


JOBS = (
    Listed(
        name="README's demo", arguments=f"{_RESNET} --budget 200", choice=_H100,
        sentence="Eight H100s on spot are done this afternoon for less than one GPU asks for a day: DDP and "
        "checkpoints are worth two hours of work. To run it only once, take one GPU on demand.",
        published=_RESNET_ELSEWHERE,
    ),
    Listed(
        name="MNIST", arguments=f"{SCRIPTS}/mnist.py --epochs 14", choice=(1, "T4", "on-demand"),
        sentence="Seven minutes are mostly boot, so take the smallest GPU that starts at once.",
    ),
    Listed(
        name="A trial of five minutes", arguments="examples/train_resnet50.py --iterations 600",
        choice=(1, "A10G", "on-demand"),
        sentence="Waiting for spot, or writing DDP, would save only some cents.",
        published=_RESNET_ELSEWHERE,
    ),
    Listed(
        name="ResNet-50, 150 GB", arguments=f"{_RESNET} {_HERE} --dataset-gb 150", choice=_H100,
        sentence="As the demo: the copy takes minutes. The quote is of August 2025, so ask first.",
        published=_RESNET_ELSEWHERE,
    ),
    Listed(
        name="ResNet-50, 3 TB", arguments=f"{_RESNET} {_HERE} --dataset-gb 3000",
        choice=_RTX_PRO,
        sentence="A day and a quarter on one GPU needs no work on the script. Eight H100s on spot end the "
        "same day, but need DDP and checkpoints, and a preempted run copies 3 TB again.",
        published=_RESNET_ELSEWHERE,
    ),
    Listed(
        name="ResNet-50, private cluster", arguments=f"{_RESNET} {_HERE} --dataset-gb 150",
        choice=(4, "A100-SXM-40GB", None), settings=_CLUSTER,
        sentence="Nothing takes the cluster's machines away, so DDP is all the work.",
        published=_RESNET_ELSEWHERE,
    ),
    Listed(
        name="ResNet-50, own RTX 4090",
        arguments=f'{_RESNET} --data local --dataset-gb 150 --local-gpu "RTX 4090"',
        choice=(1, "RTX-4090", None),
        sentence="It is there and needs no change; renting would save fifteen hours for a hundred dollars.",
        published=_RESNET_ELSEWHERE,
    ),
    Listed(
        name="ResNet-50, an hour is worth $50",
        arguments=f"{_RESNET} {_HERE} --dataset-gb 150 --value-of-time 50",
        choice=(8, "H200-SXM-141GB", "on-demand"),
        sentence="At this value the hours that spot adds cost more than it saves.",
        published=_RESNET_ELSEWHERE,
    ),
    Listed(
        name="ResNet-50, in 12 h", arguments=f"{_RESNET} {_HERE} --dataset-gb 150 --deadline 12h",
        choice=(8, "A100-SXM-40GB", "spot"),
        sentence="What spot has not done in time is done on demand: 9 of 10 runs end an hour before the "
        "deadline, for two thirds of what the same machine costs on demand.",
        published=_RESNET_ELSEWHERE,
    ),
    Listed(
        name="nanoGPT, characters",
        arguments="tests/compatibility/scripts/nanogpt.py --iterations 5000 -- "
        "--gradient-accumulation-steps 1 --batch-size 64 --block-size 256 --n-layer 6 --n-head 6 "
        "--n-embd 384 --vocab-size 65 --dropout 0.2",
        choice=(1, "A10G", "on-demand"),
        sentence="A faster GPU would wait for its host, and a job of ten minutes wants one now.",
    ),
    Listed(
        name="GPT-2 124M", arguments="examples/train_gpt.py --epochs 1 -- --batch-size 8 --accumulate 8",
        choice=(1, "H100-SXM-80GB", "on-demand"),
        sentence="For an hour of one GPU neither checkpoints nor DDP are worth writing.",
        published=_GPT_ELSEWHERE,
    ),
    Listed(
        name="Llama 1.1B, 100,000 steps", arguments=f"{SCRIPTS}/llama.py --iterations 100000",
        choice=(1, "H100-SXM-80GB", "on-demand"),
        sentence="Four hours of one H100 need no rewriting. Spot would cost a quarter, with checkpoints: "
        "worth it if you run this again.",
        published=_GPT_ELSEWHERE,
    ),
    Listed(
        name="ImageNet with DDP", arguments=f"{SCRIPTS}/imagenet_ddp.py --epochs 90 --world 8",
        choice=(8, "A100-SXM-40GB", "on-demand"),
        sentence="The script is made for eight GPUs and saves nothing: three hours on demand need no work.",
        published=_RESNET_ELSEWHERE,
    ),
    Listed(
        name="U-Net", arguments=f"{SCRIPTS}/unet.py --epochs 50", choice=_L40S,
        sentence="Two hours on a cheap GPU that starts at once; an H100 needs half as long for twice the "
        "price.",
        published="a smaller U-Net takes 40 ms for an image on an A100 (TorchBench, 2023, eager)",
    ),
    Listed(
        name="One-stage detector", arguments=f"{SCRIPTS}/detector.py --epochs 100",
        choice=_L40S,
        sentence="Sixteen hours on a cheap GPU without preemptions. A GPU twice as large is done in twelve, "
        "for nine dollars more.",
        published="SSD on images of 300 pixels: 422 images/s an A100 40GB (Lambda, 2022, with DALI)",
    ),
    Listed(
        name="BERT-base, fine-tuning",
        arguments="examples/train_bert.py --iterations 20000 -- --width 768 --heads 12 --layers 12 "
        "--length 384 --batch-size 32 --amp",
        choice=_ONE_H100_NOW,
        sentence="Twenty minutes on one GPU that starts at once.",
        published=_BERT_ELSEWHERE,
    ),
    Listed(
        name="DCGAN", arguments="examples/train_dcgan.py --epochs 25", choice=_L40S,
        sentence="Twelve minutes on one GPU that starts at once; on a larger one, booting takes longer than "
        "training.",
        published="2.1 ms for 32 images on an A100 (TorchBench, 2023, eager, under autocast)",
    ),
    Listed(
        name="LSTM", arguments="examples/train_lstm.py --epochs 40", choice=_L40S,
        sentence="Twenty minutes do not pay for writing DDP, nor for the wait for spot.",
        published="a language model of this kind takes 35 ms for 80 sequences on a V100 (Gavel, FP32)",
    ),
    Listed(
        name="A profile recorded on a V100",
        arguments="resnet50_v100_2021-06.pt.trace.json.gz --iterations 100000",
        choice=_RTX_PRO,
        sentence="Two hours on one GPU that starts at once: nothing to rewrite, nothing to lose.",
        published=_RESNET_ELSEWHERE,
    ),
    Listed(
        name="LoRA, Llama 3.1 8B",
        arguments="--recipe lora --model llama-3.1-8b --tokens 20M --sequence 2048",
        choice=(2, "H100-SXM-80GB", "spot"),
        sentence="The recipe takes several GPUs and resumes as it is, so twenty minutes on spot cost the "
        "least. The six hours at p90 are the wait for a machine: for an answer today take A100s on "
        "demand.",
        published="LoRA of Llama 2 7B takes 142 ms for at most 1,034 tokens on an A100 40GB (litgpt)",
    ),
    Listed(
        name="Full fine-tuning of 7B, FSDP", arguments=f"{SCRIPTS}/fsdp.py --epochs 3 --world 8",
        choice=(8, "B200-SXM-180GB", "spot"),
        sentence="The script shards its model and saves nothing. Forty minutes on spot are worth the risk of"
        " starting again, at a quarter of the on-demand price; the quote is of August 2025, so ask "
        "first.",
        published=_LLAMA_ELSEWHERE,
    ),
    Listed(
        name="ViT-B/16, autocast", arguments=f"{SCRIPTS}/vit.py --epochs 90",
        choice=(8, "B200-SXM-180GB", "spot"),
        sentence="Two hours on spot against fourteen on one H100 for three times the money: DDP is worth "
        "writing, and so is resuming. The quote is of August 2025.",
        published="357 images/s an RTX 3090 (timm, 2022, DeiT-B of the same layers)",
    ),
    Listed(
        name="Diffusion U-Net", arguments="--recipe dreambooth --model sd-1.5 --samples 100000",
        choice=(2, "A100-SXM-40GB", "on-demand"),
        sentence="The recipe takes two GPUs as it is, and an hour on A100s that start at once is enough.",
        published="Stable Diffusion 2 trains 145 images/s an H100 (MLPerf 4.1, Dell, NeMo)",
    ),
    Listed(
        name="Diffusion transformer, DiT-XL/2", arguments=f"{SCRIPTS}/dit.py --iterations 400000",
        choice=_ONE_H100_NOW,
        sentence="One H100 takes the night and needs no work on the script. Eight A100s take under four "
        "hours for about the same money, once DDP is written.",
    ),
    Listed(
        name="GPT of 1.3B in three weeks",
        arguments="examples/train_gpt.py --iterations 800000 --deadline 21d -- --layers 24 --heads 16 "
        "--width 2048 --batch-size 4 --accumulate 8",
        choice=_H100,
        sentence="A day of training, at p90 three days with waits and preemptions, at less than half the "
        "price of one H100 on demand. For hundreds of dollars DDP and checkpoints pay.",
        published=_GPT_ELSEWHERE,
    ),
    Listed(
        name="Conformer", arguments=f"{SCRIPTS}/conformer.py --epochs 50",
        choice=(8, "A100-SXM-40GB", "on-demand"),
        sentence="Three hours instead of the twelve of one H100, for less money: DDP pays at once. Steps "
        "differ with the clips, and all eight wait for the longest.",
        published="an RNN-T trains 1,967 clips of LibriSpeech/s an H100 (MLPerf 3.1, Lenovo)",
    ),
    Listed(
        name="T5-large", arguments=f"{SCRIPTS}/t5.py --epochs 3", choice=_RTX_PRO,
        sentence="Half a working day on one GPU that starts at once. An L40S costs a tenth less and takes "
        "seven hours.",
        published="215 ms for two samples on an A100 40GB (PyTorch's dashboard, 2023, eager, under autocast)",
    ),
    Listed(
        name="Mixture of experts", arguments=f"{SCRIPTS}/moe.py --iterations 50000", choice=_L40S,
        sentence="Two hours on a cheap GPU as it is: small experts in a loop would keep no faster one busy.",
    ),
    Listed(
        name="DLRM", arguments=f"{SCRIPTS}/dlrm.py --epochs 1", choice=_L40S,
        sentence="A cheap GPU, since memory binds: the script updates all 26 million rows in each step. "
        "Sparse gradients (sparse=True) would save more than any machine.",
        published="5 million samples/s an A100 (MLPerf 2.1, ASUSTeK, HugeCTR, one epoch of Criteo)",
    ),
    Listed(
        name="3-D U-Net", arguments=f"{SCRIPTS}/unet3d.py --epochs 2000", choice=_RTX_PRO,
        sentence="Three and a half hours on a cheap GPU that starts at once; an H100 saves 40 minutes for "
        "two thirds more.",
        published="72 patches/s an H100, 39 an A100 (MLPerf 4.0 and 3.0, MXNet)",
    ),
    Listed(
        name="Long context, 32,768 tokens",
        arguments="--recipe lora --model llama-3.1-8b --tokens 100M --sequence 32768",
        choice=(8, "B200-SXM-180GB", "spot"),
        sentence="The recipe takes eight GPUs and resumes as it is: an hour on spot costs a quarter of five "
        "hours on two cheaper boards. The quote is of 2025, so ask first.",
        published="Llama 3.1 8B at 3,890 tokens/s an H100 at 32,768 (torchtitan, all weights, FP8)",
    ),
    Listed(
        name="PPO", arguments=f"{SCRIPTS}/ppo.py --iterations 156240", choice=(1, "L4", "on-demand"),
        sentence="Ten minutes of small kernels that any host launches as fast: the cheapest GPU that starts "
        "at once.",
    ),
    Listed(
        name="A table of 20 columns", arguments=f"{SCRIPTS}/tabular.py --epochs 20",
        choice=(1, "T4", "on-demand"),
        sentence="Forty seconds of training after six minutes of boot: if it must be a GPU, the smallest. "
        "Any laptop is done before.",
    ),
)  # fmt: skip
