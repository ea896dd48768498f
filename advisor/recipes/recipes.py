"""The table of recipes, and the script that one of them is for a model and an amount of training."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from advisor.core.errors import InputError, did_you_mean
from advisor.core.files import temporary_folder
from advisor.recipes.models import Model, find_model, known_models

# Of these `decoder.py` is a whole model, and torch alone is needed.
_PLAIN = ("llama", "mistral", "qwen2")
# What `decoder.py` leaves out.
_BEYOND = ("rope_scaling", "rope_parameters", "mlp_bias", "attention_bias")
_NOT_DECODERS = ("bert", "resnet", "roberta", "t5", "unet", "vit", "whisper")
# A profile sees three steps of two GPUs.
_FEWEST_STEPS = 6
# Weights, gradients and moments of more than this are divided among GPUs: half of what the usual one holds.
_MOST_BYTES_OF_A_COPY = 40e9
_COUNT = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmbt]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A way to train, as a script of `scripts`."""

    name: str
    summary: str
    model: str
    bytes_per_param: float
    """Of weights, gradients and moments."""
    unit: str = "tokens"
    """Of which a job has an amount."""
    kinds: tuple[str, ...] = ()
    """Architectures of models that it trains; none for all decoders."""
    script: str | None = None
    """Where another recipe has the same."""
    batch: tuple[int, int] = (4, 2)
    """How many samples a pass takes, and of how many passes a step is."""
    sequence: int | None = 2048
    """Tokens of a sample; None where a sample has none."""
    constants: tuple[tuple[str, object], ...] = ()
    """Of the script, by name, that this recipe sets."""


_ALL = (
    Recipe(
        name="lora", summary="Adapters on a frozen language model in bfloat16.",
        model="llama-3.1-8b", bytes_per_param=2.1,
    ),
    Recipe(
        name="qlora", summary="Adapters on a frozen language model whose weights have four bits.",
        model="llama-3.1-8b", bytes_per_param=0.7,
    ),
    Recipe(
        name="full", summary="All weights of a language model, in bfloat16.",
        model="llama-3.1-8b", bytes_per_param=8,
    ),
    Recipe(
        name="pretrain", summary="A language model from random weights, with bfloat16 autocast.",
        model="llama-3.2-1b", bytes_per_param=16,
    ),
    Recipe(
        name="vit", summary="A vision transformer on images of 224 pixels, with bfloat16 autocast.",
        model="vit-b16", kinds=("vit",), script="classify_images", batch=(64, 1), sequence=None,
        unit="samples", bytes_per_param=16,
    ),
    Recipe(
        name="resnet", summary="A ResNet on images of 224 pixels, with bfloat16 autocast and channels last.",
        model="resnet-50", kinds=("resnet",), script="classify_images", batch=(128, 1), sequence=None,
        constants=(("CHANNELS_LAST", True),), unit="samples", bytes_per_param=16,
    ),
    Recipe(
        name="dreambooth", summary="A diffusion U-Net on encoded images and texts, with bfloat16 autocast.",
        model="sd-1.5", kinds=("unet",), batch=(4, 1), sequence=None, unit="samples", bytes_per_param=16,
    ),
    Recipe(
        name="bert", summary="An encoder that classifies texts, with bfloat16 autocast.",
        model="bert-base", kinds=("bert", "roberta"), script="classify_texts", batch=(32, 1), sequence=128,
        unit="samples", bytes_per_param=16,
    ),
    Recipe(
        name="whisper", summary="Whisper on clips of 30 seconds, with bfloat16 autocast.",
        model="whisper-small", kinds=("whisper",), script="transcribe", batch=(16, 1), sequence=128,
        unit="samples", bytes_per_param=16,
    ),
)  # fmt: skip
RECIPES: Mapping[str, Recipe] = {recipe.name: recipe for recipe in _ALL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A recipe, and what of it is not left as it stands there."""

    recipe: str
    model: str | None = None
    tokens: str | None = None
    """Of an epoch, with k, M, B or T behind; for recipes that count tokens."""
    samples: int | None = None
    """Of an epoch; for the others."""
    sequence: int | None = None
    batch: int | None = None
    """Samples of one pass of one GPU."""
    offline: bool = False
    constants: Mapping[str, object] = field(default_factory=dict)
    """Of the script, by name, on top of all else."""


def script_of(order: Order) -> str:
    """The script.

    Raises InputError: no such recipe or model, the two do not go together, or the amount is none.
    """
    recipe = recipe_named(order.recipe)
    model = find_model(order.model or recipe.model, offline=order.offline)
    _check_suits(recipe, model)
    batch, accumulation = order.batch or recipe.batch[0], recipe.batch[1]
    shard = recipe.bytes_per_param * model.num_params > _MOST_BYTES_OF_A_COPY
    if shard:
        # On several GPUs a pass of each is batch enough.
        accumulation = 1
    sequence = _sequence_of(order, recipe, model)
    settings: dict[str, object] = {
        "MODEL": model.name,
        "CONFIG": {**model.config, "attention_bias": True} if model.kind == "qwen2" else dict(model.config),
        "BATCH": batch,
        "ACCUMULATION": accumulation,
        "SHARD": shard,
        **dict(recipe.constants),
    }
    if sequence is not None:
        settings["SEQUENCE"] = sequence
    amount = _amount_of(order, recipe)
    if amount is not None:
        per_sample = sequence or 1 if recipe.unit == "tokens" else 1
        per_step = batch * accumulation * per_sample
        if amount < _FEWEST_STEPS * per_step:
            raise InputError(
                f"`{recipe.unit}` must be at least {_FEWEST_STEPS * per_step:,}, got {amount:,}: one GPU's"
                f" step takes {per_step:,} of them, and a plan needs {_FEWEST_STEPS} steps."
            )
        settings[recipe.unit.upper()] = amount
    is_plain = model.kind in _PLAIN and not any(model.config.get(name) for name in _BEYOND)
    replaced = {} if is_plain else {"decoder": "hf_decoder"}
    return rendered(recipe.script or recipe.name, {**settings, **order.constants}, replaced)


def _sequence_of(order: Order, recipe: Recipe, model: Model) -> int | None:
    if recipe.sequence is None and order.sequence is not None:
        raise InputError(f"the recipe {recipe.name!r} has no tokens: leave `sequence` out.")
    wanted, longest = order.sequence or recipe.sequence, model.size("n_positions")
    if wanted is None or not 0 < longest < wanted:
        return wanted
    if order.sequence is not None:
        raise InputError(f"`sequence` must be at most {longest:,}: {model.name!r} has no more positions.")
    return longest


@contextmanager
def script_file(order: Order) -> Iterator[Path]:
    """The script in a file, as long as it is needed. Raises InputError: as of `script_of`."""
    text = script_of(order)
    with temporary_folder("recipe") as folder:
        path = folder / f"{order.recipe}.py"
        path.write_text(text, encoding="utf-8")
        yield path


def recipe_named(name: str) -> Recipe:
    """The recipe of that name. Raises InputError: there is none."""
    if name.lower() not in RECIPES:
        raise InputError(
            f"there is no recipe {name!r}.{did_you_mean(name.lower(), RECIPES)} Recipes:"
            f" {', '.join(RECIPES)} (`advisor recipe list`)."
        )
    return RECIPES[name.lower()]


def parse_count(text: str) -> float:
    """A number such as ``20M``: with k, M, B or T behind for thousands to trillions.

    >>> parse_count("1.5k")
    1500.0

    Raises ValueError: it is none.
    """
    found = _COUNT.fullmatch(text.strip().replace(",", "").replace("_", ""))
    if found is None:
        raise ValueError(f"{text!r} is no number: write 500000, 20M or 1.5B")
    return float(found["number"]) * _UNITS[found["unit"].lower()]


def _amount_of(order: Order, recipe: Recipe) -> int | None:
    if recipe.unit == "tokens" and order.samples is not None:
        raise InputError(f"the recipe {recipe.name!r} counts tokens: give `tokens`, not `samples`.")
    if recipe.unit == "samples" and order.tokens is not None:
        raise InputError(f"the recipe {recipe.name!r} counts samples: give `samples`, not `tokens`.")
    if order.tokens is None:
        return order.samples
    try:
        return int(parse_count(order.tokens))
    except ValueError as error:
        raise InputError(f"`tokens`: {error}.") from error


def _check_suits(recipe: Recipe, model: Model) -> None:
    def suits(one: Model) -> bool:
        return one.kind in recipe.kinds if recipe.kinds else one.kind not in _NOT_DECODERS

    if not suits(model):
        fitting = [name for name, other in known_models().items() if suits(other)]
        raise InputError(
            f"the recipe {recipe.name!r} does not train {model.name!r}, which is a {model.kind}. It trains"
            f" {', '.join(fitting)}, and others of these architectures."
        )


# A recipe's script with its parts written in and its settings filled in: one file that runs by itself.


SCRIPTS = Path(__file__).with_name("scripts")
_WIDTH = 110


def rendered(script: str, settings: Mapping[str, object], replaced: Mapping[str, str]) -> str:
    """The text of a script of this folder, with its constants set.

    Args:
        script: its name, without the ending.
        settings: values of constants at the top level, by name.
        replaced: parts in whose place stand others with the same names.

    Raises KeyError: there is no such constant.
    """
    own = _Module.read(script)
    parts = [_Module.read(name) for name in own.parts(replaced)]
    imports = _imports(node for module in (own, *parts) for node in module.imports)
    head, functions = own.body_halves()
    bodies = (f"# {part.summary}\n\n{part.body}" for part in parts)
    text = "\n\n\n".join(("\n\n".join((own.docstring, imports, head)), *bodies, functions)) + "\n"
    for name, value in settings.items():
        pattern = re.compile(rf"^{name} = .*?(?P<comment>  #.*)?$", re.MULTILINE)
        found = pattern.search(text)
        if found is None:
            raise KeyError(name)
        line = f"{name} = {_literal(value)}{found['comment'] or ''}"
        text = text[: found.start()] + line + text[found.end() :]
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """A script or a part of one."""

    lines: tuple[str, ...]
    tree: ast.Module

    @classmethod
    def read(cls, name: str) -> _Module:
        text = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
        return cls(lines=tuple(text.splitlines()), tree=ast.parse(text))

    @property
    def docstring(self) -> str:
        return self._text(0, self.tree.body[0].end_lineno or 1)

    @property
    def summary(self) -> str:
        return (ast.get_docstring(self.tree) or "").splitlines()[0]

    @property
    def imports(self) -> list[ast.Import | ast.ImportFrom]:
        return [node for node in self.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]

    @property
    def body(self) -> str:
        """All behind the imports."""
        return self._text(self._end_of_imports(), len(self.lines))

    def body_halves(self) -> tuple[str, str]:
        """Constants, and what begins with the first function or class."""
        first = next(node for node in self.tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
        start = min([first.lineno, *(node.lineno for node in first.decorator_list)]) - 1
        return self._text(self._end_of_imports(), start), self._text(start, len(self.lines))

    def parts(self, replaced: Mapping[str, str]) -> list[str]:
        """Names of the files of the folder that it imports, those that they import before them."""
        imported = [
            node.module or "" for node in self.imports if isinstance(node, ast.ImportFrom) and _is_part(node)
        ]
        names = [replaced.get(name, name) for name in imported]
        nested = [part for name in names for part in (*_Module.read(name).parts(replaced), name)]
        return list(dict.fromkeys(nested))

    def _end_of_imports(self) -> int:
        return max(node.end_lineno or 0 for node in self.imports)

    def _text(self, start: int, stop: int) -> str:
        return "\n".join(self.lines[start:stop]).strip("\n")


def _is_part(node: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and (SCRIPTS / f"{node.module}.py").exists()


def _imports(nodes: Iterable[ast.Import | ast.ImportFrom]) -> str:
    whole: set[str] = set()
    names: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            whole.update(map(ast.unparse, node.names))
        elif not _is_part(node):
            names.setdefault(node.module or "", set()).update(map(ast.unparse, node.names))
    sections = (_section(whole, names, is_standard=is_standard) for is_standard in (True, False))
    return "\n\n".join(section for section in sections if section)


def _section(whole: set[str], names: Mapping[str, set[str]], *, is_standard: bool) -> str:
    def lines() -> Iterator[str]:
        yield from (f"import {name}" for name in sorted(whole) if belongs(name))
        for module in filter(belongs, sorted(names)):
            # As isort has it: constants, classes, functions.
            order = sorted(names[module], key=lambda name: (not name.isupper(), name.islower(), name))
            line = f"from {module} import {', '.join(order)}"
            split = ",\n    ".join(order)
            yield line if len(line) <= _WIDTH else f"from {module} import (\n    {split},\n)"

    def belongs(name: str) -> bool:
        return (name.partition(".")[0] in sys.stdlib_module_names) is is_standard

    return "\n".join(lines())


def _literal(value: object) -> str:
    """A value as Python writes it; dictionaries a line for each key, large numbers in groups."""
    if isinstance(value, dict):
        return "{\n" + "".join(f"    {_literal(key)}: {_literal(value[key])},\n" for key in value) + "}"
    if isinstance(value, str):
        return '"' + repr(value)[1:-1].replace('"', '\\"') + '"'
    if isinstance(value, bool) or not isinstance(value, int):
        return repr(value)
    return f"{value:_}" if abs(value) >= 10_000 else str(value)
