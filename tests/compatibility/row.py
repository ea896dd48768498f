"""A row of docs/compatibility.md: a script, and the arithmetic that tells what its trace must show."""

import ast
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from pathlib import Path

SCRIPTS = Path(__file__).with_name("scripts")
FLASH, EFFICIENT = "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention"
ADAM = "_foreach_addcdiv_"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One script and the truth about one of its iterations, told by arithmetic where it can be.

    Attributes:
        script: stem of the file under ``scripts``.
        library: what has to be installed besides torch.
        arguments: the script's command line.
        world: ``--world``, the processes of which the script is to be one.
        fake_data: ``--fake-data``, a sample of data that is not at hand.
        num_samples: ``--samples``, how many of them.
        batch: samples of one optimizer step, or between how many; None if no DataLoader tells.
        samples: of one epoch.
        iterations: optimizer steps of one epoch.
        accumulation: forward and backward passes of one step.
        parallel_by: the library that would train on several GPUs by itself.
        amp: the dtype that autocast computed in.
        calls: how often operators of aten (or of a named library) ran, forward and backward.
        parameters: the shapes of all parameters, in FP32.
        product_flops: of all matrix products (addmm, mm, bmm).
        collectives: bytes of all communication of each kind; there is no other.
        groups: sizes of the groups that communicate, if not all processes do together.
        loading_s: the least that loading one step's samples takes.
        warning: words that the trace must warn with.
        fails: why the row does not hold yet; it must not hold by chance.
    """

    script: str
    library: str | None = None
    arguments: tuple[str, ...] = ()
    world: int | None = None
    fake_data: str | None = None
    num_samples: int | None = None
    batch: int | range | None = None
    samples: int | None = None
    iterations: int | None = None
    accumulation: int = 1
    parallel_by: str | None = None
    amp: str | None = None
    calls: dict[str, int] = field(default_factory=dict)
    parameters: tuple[tuple[int, ...], ...] = ()
    product_flops: int | None = None
    collectives: dict[str, int] = field(default_factory=dict)
    groups: tuple[int, ...] = ()
    loading_s: float | None = None
    warning: str | None = None
    fails: str | None = None

    @property
    def name(self) -> str:
        """A name for the test."""
        return " ".join((self.script, *self.options, *self.arguments))

    @property
    def options(self) -> tuple[str, ...]:
        """What the command line of ``advisor profile`` says besides the script."""
        flags = {"--world": self.world, "--fake-data": self.fake_data, "--samples": self.num_samples}
        return tuple(f"{flag} {value}" for flag, value in flags.items() if value is not None)

    @property
    def path(self) -> Path:
        """The script."""
        return SCRIPTS / f"{self.script}.py"

    def docstring(self) -> tuple[str, str]:
        """The row's title, and where the script's way of writing comes from."""
        lines = (ast.get_docstring(ast.parse(self.path.read_text())) or "").splitlines()
        return lines[0], " ".join(lines[1:])


def linear_flops(batch: int, *widths: int, input_needs_gradient: bool = False) -> int:
    """FLOPs of the products of fully connected layers, forward and backward.

    Args:
        batch: rows of the input.
        widths: of the input and of each layer.
        input_needs_gradient: layers before have parameters.
    """
    products = [a * b for a, b in pairwise(widths)]
    return 2 * batch * (3 * sum(products) - (0 if input_needs_gradient else products[0]))


def dense(*widths: int) -> tuple[tuple[int, ...], ...]:
    """Shapes of the weights and biases of fully connected layers."""
    return tuple(shape for a, b in pairwise(widths) for shape in ((b, a), (b,)))


def fp32_bytes(*shapes: tuple[int, ...]) -> int:
    """What tensors of these shapes send, not rounded."""
    return sum(4 * prod(shape) for shape in shapes)
