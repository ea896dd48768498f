"""``advisor recipe list / show / write``, and the options of a recipe in place of a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.common import group, load_settings, option
from advisor.cli.options import AS_TABLE, OutputOptions, asked, completing
from advisor.core.errors import InputError
from advisor.core.files import write_atomically
from advisor.report.plain import flag_of, print_lines, print_text
from advisor.report.printing import print_document

if TYPE_CHECKING:
    from advisor.core.values import Job
    from advisor.recipes.recipes import Order

app = group("Training scripts for who has none yet: docs/recipes.md.")
# GPUs of the world that a recipe is profiled in: it shows what they exchange, and serves for any number.
_WORLD = 2


@completing
def recipe_names() -> Iterator[str]:
    """Recipes."""
    from advisor.recipes.recipes import RECIPES

    yield from RECIPES


@completing
def model_names() -> Iterator[str]:
    """Models of the catalog."""
    from advisor.recipes.models import known_models

    yield from known_models()


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeOptions:
    """What a recipe is filled in with."""

    model: str | None = asked(
        "Of a recipe: llama-3.1-8b, a Hugging Face id, or the path of a config.json.",
        metavar="NAME",
        autocompletion=model_names,
    )
    tokens: str | None = asked("Of a recipe: tokens of an epoch, such as 20M or 1.5B.", metavar="N")
    sequence: int | None = asked("Of a recipe: tokens of a sample.", metavar="N", min=1)
    batch_size: int | None = asked("Of a recipe: samples of one pass of one GPU.", metavar="N", min=1)

    def order(self, recipe: str, *, samples: int | None, offline: bool | None) -> Order:
        """The recipe, filled in."""
        from advisor.recipes.recipes import Order

        settings = load_settings({"prices.offline": offline}).settings
        return Order(
            recipe=recipe,
            model=self.model,
            tokens=self.tokens,
            samples=samples,
            sequence=self.sequence,
            batch=self.batch_size,
            offline=settings.prices.offline,
        )


RecipeOption = Annotated[
    str | None,
    option(
        "In place of a script: lora, qlora, full, pretrain, ... (`advisor recipe list`).",
        metavar="NAME",
        autocompletion=recipe_names,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A script, or a recipe in its place."""

    source: Path | None
    recipe: str | None
    sizes: SizeOptions

    @contextmanager
    def script(self, *, samples: int | None, offline: bool | None) -> Iterator[Path]:
        """The file to profile.

        Raises InputError: neither script nor recipe is given or both are, or the recipe cannot be filled in.
        """
        if self.recipe is None:
            for name in ("model", "tokens", "sequence", "batch_size"):
                if getattr(self.sizes, name) is not None:
                    raise InputError(f"{flag_of(name)} belongs to a recipe: add --recipe NAME.")
            if self.source is None:
                raise InputError(
                    "give a training script, a saved trace, or --recipe NAME. See advisor recommend --help."
                )
            yield self.source
            return
        if self.source is not None:
            raise InputError(f"give either {str(self.source)!r} or --recipe {self.recipe}, not both.")
        from advisor.recipes.recipes import script_file

        with script_file(self.sizes.order(self.recipe, samples=samples, offline=offline)) as path:
            yield path

    def job(self, job: Job) -> Job:
        """The job: of a recipe one epoch, unless something else is asked for."""
        is_asked = self.recipe is None or job.epochs is not None or job.iterations is not None
        return job if is_asked else replace(job, epochs=1.0)

    def world(self, asked: int | None) -> int | None:
        """Of the profile."""
        return asked if self.recipe is None or asked is not None else _WORLD

    def settings(self, flags: Mapping[str, object]) -> dict[str, object]:
        """Flags for `settings_with`."""
        if self.recipe is None:
            return dict(flags)
        # Each GPU takes the batch of one, and every recipe saves checkpoints and goes on from the last one.
        known: dict[str, object] = {"profile__scaling": "weak", "spot__checkpoints": "resumes"}
        known |= {name: flags[name] for name in known if flags.get(name) is not None}
        # Its samples are the script's own.
        return {**flags, **known, "profile__samples": None}


NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Of the recipe.", autocompletion=recipe_names)
]
SamplesOption = Annotated[
    int | None, option("Samples of an epoch, for recipes without tokens.", metavar="N", min=1)
]
OfflineOption = Annotated[bool | None, option("Never touch the network.", "--offline")]


@app.command("list")
def list_(output: OutputOptions = AS_TABLE) -> None:
    """List the recipes, and the models whose shapes are known."""
    from advisor.recipes.models import known_models
    from advisor.recipes.recipes import RECIPES
    from advisor.report.catalog_tables import recipes_document

    document = recipes_document(tuple(RECIPES.values()), tuple(known_models().values()))
    print_document(document, output.form)


@app.command("show")
def show(
    name: NameArgument, *, sizes: SizeOptions, samples: SamplesOption = None, offline: OfflineOption = None
) -> None:
    """Print the script that a recipe is."""
    from advisor.recipes.recipes import script_of

    print_text(script_of(sizes.order(name, samples=samples, offline=offline)).rstrip("\n"))


@app.command("write")
def write(
    name: NameArgument,
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to save it; nothing may be there.")],
    *,
    sizes: SizeOptions,
    samples: SamplesOption = None,
    offline: OfflineOption = None,
) -> None:
    """Save the script that a recipe is, to change it and to train with it."""
    from advisor.recipes.recipes import script_of

    text = script_of(sizes.order(name, samples=samples, offline=offline))
    if out.suffix != ".py":
        raise InputError(f"a recipe is a Python script: end {str(out)!r} in .py.")
    if out.exists():
        raise InputError(f"{str(out)!r} is there already: give another name, or remove it.")
    try:
        write_atomically(out, text.encode())
    except OSError as error:
        raise InputError(f"cannot write {str(out)!r}: {error.strerror}.") from error
    print_lines(f"Written to {out}. One GPU: python {out}. Several: torchrun --nproc-per-node N {out}")
