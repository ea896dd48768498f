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


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A job.

    Attributes:
        arguments: of ``advisor recommend``; words are parted by spaces, quoted as in a shell.
        choice: number of GPUs, GPU and market that the sentence speaks of.
        sentence: why the answer is the right one, or what makes it doubtful.
        settings: a settings file of the user.
    """

    name: str
    arguments: str
    choice: tuple[int, str, str | None]
    sentence: str
    settings: str | None = None


JOBS = (
    Listed(
        name="README's demo", arguments=f"{_RESNET} --budget 200", choice=_H100,
        sentence="On spot, eight GPUs cost about what one costs and finish days sooner at p90, so wrapping "
        "the model and resuming from its checkpoints pay: an hour of work saves $78.",
    ),
    Listed(
        name="MNIST", arguments=f"{SCRIPTS}/mnist.py --epochs 14", choice=(1, "T4", "on-demand"),
        sentence="Seven minutes are mostly boot, so take the smallest GPU that starts at once.",
    ),
    Listed(
        name="A trial of five minutes", arguments="examples/train_resnet50.py --iterations 600",
        choice=(1, "A10G", "on-demand"),
        sentence="Waiting for spot, or writing DDP, would save some cents only.",
    ),
    Listed(
        name="ResNet-50, 150 GB", arguments=f"{_RESNET} {_HERE} --dataset-gb 150", choice=_H100,
        sentence="A B200 would wait for its host at 32 images a step. The quote is from the autumn "
        "of 2025: ask first.",
    ),
    Listed(
        name="ResNet-50, 3 TB", arguments=f"{_RESNET} {_HERE} --dataset-gb 3000",
        choice=(1, "H100-SXM-80GB", "on-demand"),
        sentence="A spot machine that comes back copies 3 TB again, and the script would have to resume; one "
        "GPU on demand is done by tomorrow without any work.",
    ),
    Listed(
        name="ResNet-50, private cluster", arguments=f"{_RESNET} {_HERE} --dataset-gb 150",
        choice=(4, "A100-SXM-40GB", None), settings=_CLUSTER,
        sentence="Nothing takes the cluster's machines away, so DDP is all the work; spot would want "
        "checkpoints as well.",
    ),
    Listed(
        name="ResNet-50, own RTX 4090",
        arguments=f'{_RESNET} --data local --dataset-gb 150 --local-gpu "RTX 4090"',
        choice=(1, "RTX-4090", None),
        sentence="It is there and needs no change; not waiting for two days costs thirty dollars.",
    ),
    Listed(
        name="ResNet-50, an hour is worth $50",
        arguments=f"{_RESNET} {_HERE} --dataset-gb 150 --value-of-time 50",
        choice=(8, "H100-SXM-80GB", "on-demand"),
        sentence="At this worth the hours that spot adds on average cost more than the $74 it saves.",
    ),
    Listed(
        name="ResNet-50, in 12 h", arguments=f"{_RESNET} {_HERE} --dataset-gb 150 --deadline 12h",
        choice=(8, "A100-SXM-40GB", "on-demand"),
        sentence="A deadline that must hold in 9 of 10 cases rules spot out. At 2 USD an hour, A100s and "
        "faster H100s come to about the same, so take what you have quota for.",
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
        sentence="The script saves nothing to resume from, and for an hour of one GPU neither checkpoints "
        "nor DDP are worth writing.",
    ),
    Listed(
        name="Llama 1.1B, 100,000 steps", arguments=f"{SCRIPTS}/llama.py --iterations 100000",
        choice=(1, "H100-SXM-80GB", "on-demand"),
        sentence="Four hours of one H100 need no rewriting. Spot would cost a quarter, once checkpoints are "
        "written: worth it for whoever runs this again.",
    ),
    Listed(
        name="ImageNet with DDP", arguments=f"{SCRIPTS}/imagenet_ddp.py --epochs 90 --world 8",
        choice=(8, "A100-SXM-40GB", "on-demand"),
        sentence="The script is made for eight GPUs and saves nothing: three hours on demand need no work.",
    ),
    Listed(
        name="U-Net", arguments=f"{SCRIPTS}/unet.py --epochs 50", choice=_ONE_H100_NOW,
        sentence="Forty minutes of training do not pay for rewriting the script for eight GPUs.",
    ),
    Listed(
        name="One-stage detector", arguments=f"{SCRIPTS}/detector.py --epochs 100",
        choice=(1, "RTX-PRO-6000-Server", "on-demand"),
        sentence="Nine hours on one GPU without preemptions. A team that has DDP at hand takes eight A100s "
        "on spot for a third of the price.",
    ),
    Listed(
        name="BERT-base, fine-tuning",
        arguments="examples/train_bert.py --iterations 20000 -- --width 768 --heads 12 --layers 12 "
        "--length 384 --batch-size 32 --amp",
        choice=_ONE_H100_NOW,
        sentence="Twenty minutes on one GPU that starts when it is asked for.",
    ),
    Listed(
        name="DCGAN", arguments="examples/train_dcgan.py --epochs 25", choice=_L40S,
        sentence="Twelve minutes on one GPU that starts at once; on a larger one, booting takes longer than "
        "training.",
    ),
    Listed(
        name="LSTM", arguments="examples/train_lstm.py --epochs 40", choice=_L40S,
        sentence="Twenty minutes do not pay for writing DDP, nor for the wait for spot.",
    ),
    Listed(
        name="A profile recorded on a V100",
        arguments="resnet50_v100_2021-06.pt.trace.json.gz --iterations 100000",
        choice=(1, "RTX-PRO-6000-Server", "on-demand"),
        sentence="Two hours on one GPU that starts when it is asked for: nothing to rewrite, nothing to "
        "lose.",
    ),
)  # fmt: skip
