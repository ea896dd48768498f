"""A recipe in place of a script, from the command line to the ranking."""

import json
from pathlib import Path

import pytest

from advisor.cli import app
from advisor.profile import profile
from advisor.recipes.recipes import RECIPES, Order, script_file

pytestmark = pytest.mark.usefixtures("warm_children")
TINY_LLAMA = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
    "num_hidden_layers": 1, "num_key_value_heads": 2, "vocab_size": 100,
}  # fmt: skip
_TOWER = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "num_hidden_layers": 1}
_WHISPER = {
    "d_model": 64, "decoder_attention_heads": 4, "decoder_ffn_dim": 64, "decoder_layers": 1,
    "vocab_size": 51_865,
    "encoder_attention_heads": 4, "encoder_ffn_dim": 64, "encoder_layers": 1, "num_mel_bins": 80,
}  # fmt: skip
SMALL = {
    "vit": {"model_type": "vit", **_TOWER},
    "resnet": {
        "model_type": "resnet", "depths": [1, 1], "hidden_sizes": [32, 64], "embedding_size": 16,
        "layer_type": "bottleneck",
    },
    "bert": {"model_type": "bert", **_TOWER, "vocab_size": 100},
    "dreambooth": {
        "model_type": "unet", "channels": [32, 64], "context_width": 16, "latent_channels": 4, "heads": 2,
    },
    "whisper": {"model_type": "whisper", **_WHISPER},
}  # fmt: skip


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder: Path, config: dict[str, object]) -> str:
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.mark.torch
def test_a_recipe_is_recommended_a_machine_for_one_epoch(home, capsys):
    model = written(home, TINY_LLAMA)
    words = ("--tokens", "100k", "--sequence", "64", "--gpu", "L4", "--offline", "--json", "--no-what-if")
    app(["recommend", "--recipe", "lora", "--model", model, *words], standalone_mode=False)
    answer = json.loads(capsys.readouterr().out)
    one = next(option for option in answer["options"] if option["num_gpus"] == 1)
    # 100,000 tokens of 64 each are 1,562 samples: two passes of four are a step.
    assert answer["job"]["epochs"] == 1
    assert one["iterations"] == 195
    assert [change for change in one["script_changes"] if "learning rate" not in change] == []
    assert list(home.glob("*.pt")) == []


@pytest.mark.torch
@pytest.mark.slow
def test_adapters_on_layers_that_their_model_initialises_by_name(tmp_path):
    """GPT-2 asks each block for the weights of its projections, which are adapters by then."""
    pytest.importorskip("transformers")
    tiny = {"model_type": "gpt2", "n_embd": 64, "n_head": 2, "n_layer": 1, "n_positions": 32}
    tiny["vocab_size"] = 100
    with script_file(Order(recipe="lora", model=written(tmp_path, tiny), batch=2)) as path:
        trace = profile(path, (), backend="fake")
    assert trace.memory.gradient_bytes == 4 * 16 * sum(a + b for a, b in _GPT2_BLOCK)


# Width in and out of a block's linear layers: an adapter has 16 numbers for each.
_GPT2_BLOCK = ((64, 192), (64, 64), (64, 256), (256, 64))


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shards"),
    # Whisper's largest has 25 GB of state, so that no recipe of it is ever sharded. What copies
    # exchange is the same code in all of them.
    [*((name, name != "whisper") for name in RECIPES), ("lora", False), ("resnet", False)],
)
def test_each_recipe_is_profiled_as_one_of_two(name, shards, tmp_path):
    if name in SMALL and name != "dreambooth":
        pytest.importorskip("transformers")
    model = written(tmp_path, SMALL.get(name, TINY_LLAMA))
    constants = {"SHARD": shards}
    with script_file(Order(recipe=name, model=model, batch=2, constants=constants)) as path:
        trace = profile(path, (), backend="fake", world_size=2)
    assert trace.world_size == 2
    assert trace.is_sharded is shards
    assert trace.collectives
    assert trace.memory.peak_bytes
