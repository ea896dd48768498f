"""The shapes of a model: of the catalog by name, of a ``config.json``, or of a Hugging Face id."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from advisor.core.errors import InputError, did_you_mean
from advisor.core.gpus import catalog_path

_HUB = "https://huggingface.co/{}/resolve/main/config.json"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_TIMEOUT_S = 10
_MOST_BYTES = 2**20
# What of a configuration is of no shape: origins, tokens by number, names of classes, code to download.
_NO_SHAPES = re.compile(
    r"_name_or_path|architectures|auto_map|.*_token_ids?|dtype|id2label|label2id|quantization_config"
    r"|suppress_tokens|begin_suppress_tokens|forced_decoder_ids|task_specific_params|torch_dtype"
    r"|transformers(_|\.js_|js_)?(version|config)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model whose shapes are known."""

    name: str
    source: str
    """Where they are from, for the reader of the script."""
    config: Mapping[str, object]
    """Arguments of its configuration in transformers, ``model_type`` among them."""
    stated_params: float | None = None
    """What its publisher states; None for a configuration of one's own."""

    @property
    def kind(self) -> str:
        """Its architecture, as transformers calls it."""
        return str(self.config["model_type"])

    def size(self, *names: str) -> int:
        """The first of these numbers that its configuration has; 0 without any."""
        values = (self.config.get(name) for name in names)
        return next((value for value in values if isinstance(value, int)), 0)

    @property
    def num_params(self) -> float:
        """As its publisher states, or counted from its shapes."""
        return self.counted_params if self.stated_params is None else self.stated_params

    @property
    def counted_params(self) -> float:
        """About: blocks of attention and MLP, and the embeddings of tokens."""
        width = self.size("hidden_size", "n_embd", "d_model")
        layers = self.size("num_hidden_layers", "n_layer", "num_layers", "encoder_layers")
        heads = self.size("num_attention_heads", "n_head", "num_heads", "encoder_attention_heads") or 1
        head = self.size("head_dim", "d_kv") or width // heads
        kv_heads = self.size("num_key_value_heads") or heads
        hidden = self.size("intermediate_size", "d_ff", "encoder_ffn_dim") or 4 * width
        experts = self.size("num_local_experts", "num_experts") or 1
        matrices = 3 if self.kind in _GATED else 2
        block = 2 * width * head * (heads + kv_heads) + matrices * width * hidden * experts
        # Decoders with an encoder attend twice.
        blocks = layers * (2 * block + 4 * width**2 if self.kind in _TWO_STACKS else block)
        tables = 1 if self.config.get("tie_word_embeddings", self.kind not in _GATED) else 2
        return float(blocks + tables * width * self.size("vocab_size"))


_GATED = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3")
_TWO_STACKS = ("t5", "whisper", "bart", "mbart", "mt5")


@cache
def known_models() -> Mapping[str, Model]:
    """The catalog's models by name."""
    tables = tomllib.loads(catalog_path("models.toml").read_text(encoding="utf-8"))
    return {
        name: Model(
            name=name,
            source=table["source"],
            config=table["config"],
            stated_params=table["params_billion"] * 1e9,
        )
        for name, table in tables.items()
    }


def find_model(name: str, *, offline: bool) -> Model:
    """The model of that name, file, folder or Hugging Face id.

    Raises InputError: there is none, it cannot be read from here, or it does not say its architecture.
    """
    known = known_models()
    for model in known.values():
        if name.lower() in (model.name, model.source.lower()):
            return model
    path = Path(name)
    if path.is_dir():
        path /= "config.json"
    if path.suffix == ".json" or path.is_file():
        return _of_text(_read(path), name=path.resolve().parent.name, source=str(path))
    if _HUB_ID.fullmatch(name):
        return _of_text(_fetch(name, offline=offline), name=name.rpartition("/")[2], source=name)
    near = did_you_mean(name.lower(), known) or f" There are {', '.join(known)}."
    raise InputError(
        f"there is no model {name!r}.{near} Give one that `advisor recipe list` shows, a Hugging Face id such"
        " as Qwen/Qwen2.5-7B, or the path of a config.json."
    )


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(_MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the model's configuration {str(path)!r}: {error}") from error


def _fetch(name: str, *, offline: bool) -> str:
    otherwise = "Download its config.json and give that file's path as `model`."
    if offline:
        raise InputError(f"the model {name!r} is not in the catalog, and the network is off. {otherwise}")
    import requests

    try:
        reply = requests.get(_HUB.format(name), timeout=_TIMEOUT_S)
    except requests.RequestException as error:
        raise InputError(
            f"the model {name!r} is not in the catalog, and Hugging Face cannot be reached"
            f" ({type(error).__name__}). {otherwise}"
        ) from error
    if reply.status_code in (401, 403):
        raise InputError(f"the model {name!r} is gated, private or misspelt on Hugging Face. {otherwise}")
    if reply.status_code == 404:
        raise InputError(f"Hugging Face has no config.json of a model {name!r}. {otherwise}")
    if not reply.ok:
        raise InputError(f"Hugging Face answered {reply.status_code} for the model {name!r}. {otherwise}")
    return reply.text[:_MOST_BYTES]


def _of_text(text: str, *, name: str, source: str) -> Model:
    try:
        config = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise InputError(f"the model's configuration {source!r} is not JSON: {error}.") from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise InputError(
            f"the model's configuration {source!r} does not say its architecture: it needs a"
            ' "model_type", such as "llama".'
        )
    # Of models that see and read, the part that reads.
    if isinstance(config.get("text_config"), dict) and "model_type" in config["text_config"]:
        config = config["text_config"]
    sizes = {
        key: value for key, value in config.items() if value is not None and not _NO_SHAPES.fullmatch(key)
    }
    return Model(name=name or source, source=source, config=sizes)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
