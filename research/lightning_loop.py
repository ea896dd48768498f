"""What Lightning's loop and its rich progress bar take in a step: ``python -m research.lightning_loop``.

Wants ``pip install pytorch-lightning==1.9.5 rich==12.6.0``, of 2022 and 2023. The bar has a terminal, and the
model computes next to nothing. The bar reads the loss in each step, so a GPU waits all that time.
"""

from __future__ import annotations

import os
import pty
import statistics
import time

import torch

STEPS, FIRST = 400, 100


def cpu_s() -> float:
    """Median CPU seconds of the main thread in a step."""
    import pytorch_lightning as lightning
    from pytorch_lightning.callbacks import RichProgressBar

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def training_step(self, batch: torch.Tensor, _: int) -> torch.Tensor:
            return self.layer(batch).sum()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.0)

    class Clock(lightning.Callback):
        def on_train_batch_start(self, *_: object) -> None:
            times_s.append(time.thread_time())

    times_s: list[float] = []
    batches: torch.utils.data.DataLoader[torch.Tensor] = torch.utils.data.DataLoader([torch.zeros(2)] * STEPS)
    lightning.Trainer(
        logger=False, enable_checkpointing=False, max_epochs=1, accelerator="cpu",
        callbacks=[Clock(), RichProgressBar()],
    ).fit(Model(), batches)  # fmt: skip
    return statistics.median(b - a for a, b in zip(times_s[FIRST:], times_s[FIRST + 1 :], strict=False))


def main() -> None:
    """Print milliseconds of a step."""
    child, terminal = pty.fork()
    if child == 0:
        print(f"\n{1e3 * cpu_s():.1f} ms a step")
        os._exit(0)
    text = b""
    try:
        while part := os.read(terminal, 65536):
            text += part
    except OSError:  # the child has closed it
        pass
    print(text.decode(errors="replace").strip().splitlines()[-1])


if __name__ == "__main__":
    main()
