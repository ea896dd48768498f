"""The day a GPU is at hand: one command records what settles open questions, another judges predictions.

::

    python3 -m research.gpu_day record --out FOLDER             # on the machine with the GPU
    python -m research.gpu_day report FOLDER --out report.md    # afterwards, on any machine

Recording needs torch, numpy and the standard library; torchvision and transformers for the networks that
are theirs. Both commands take the training steps from ``steps``.
"""
