"""The scripts that recipes are: complete, filled in, and fit for training."""

import ast
import re
import runpy
from pathlib import Path

import pytest

from advisor.cli.recipe import SizeOptions, Subject
from advisor.core.errors import InputError
from advisor.recipes.recipes import RECIPES, SCRIPTS, Order, parse_count, rendered, script_file, script_of

TINY = {
    "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 2, "vocab_size": 50, "tie_word_embeddings": True,
}  # fmt: skip


def constants(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_is_one_script_without_parts_elsewhere(name):
    text = script_of(Order(recipe=name))
    imported = {node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    assert not imported & {path.stem for path in SCRIPTS.glob("*.py")}
    assert constants(text)["MODEL"] == RECIPES[name].model
    assert 'if __name__ == "__main__":' in text


def test_the_script_is_filled_in():
    text = script_of(Order(recipe="LoRA", model="qwen2.5-7b", tokens="20M", sequence=1024, batch=2))
    found = constants(text)
    assert (found["TOKENS"], found["SEQUENCE"], found["BATCH"]) == (20_000_000, 1024, 2)
    assert found["CONFIG"]["num_hidden_layers"] == 28
    assert found["CONFIG"]["attention_bias"] is True
    assert "# sequences of one pass" in text


@pytest.mark.parametrize(
    ("recipe", "model", "shards"),
    [("lora", "llama-3.1-8b", False), ("full", "llama-3.1-8b", True), ("lora", "llama-3.1-70b", True)],
)
def test_a_model_too_large_for_a_copy_on_each_gpu_is_divided(recipe, model, shards):
    assert constants(script_of(Order(recipe=recipe, model=model)))["SHARD"] is shards


def test_a_sequence_is_no_longer_than_the_model_has_positions():
    assert constants(script_of(Order(recipe="pretrain", model="gpt2")))["SEQUENCE"] == 1024
    assert constants(script_of(Order(recipe="pretrain", model="gpt2", sequence=512)))["SEQUENCE"] == 512
    with pytest.raises(InputError, match="at most 1,024: 'gpt2' has no more positions"):
        script_of(Order(recipe="pretrain", model="gpt2", sequence=2048))


@pytest.mark.parametrize(
    ("model", "library"),
    [("llama-3.1-8b", False), ("mistral-7b", False), ("gpt2", True), ("phi-3-mini", True)],
)
def test_transformers_is_needed_for_other_architectures_alone(model, library):
    assert ("import AutoConfig" in script_of(Order(recipe="lora", model=model))) is library


def test_a_configuration_that_the_plain_decoder_does_not_cover_is_left_to_transformers(tmp_path):
    (tmp_path / "config.json").write_text(
        '{"model_type": "llama", "vocab_size": 9, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}'
    )
    assert "import AutoConfig" in script_of(Order(recipe="full", model=str(tmp_path)))


def test_a_text_from_a_configuration_stays_a_text(tmp_path):
    (tmp_path / "config.json").write_text(
        '{"model_type": "llama", "vocab_size": 9, "hidden_act": "\\"\\n}\\nimport os #"}'
    )
    text = script_of(Order(recipe="full", model=str(tmp_path)))
    assert constants(text)["CONFIG"]["hidden_act"] == '"\n}\nimport os #'


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"recipe": "lorra"}, r"no recipe 'lorra'. Did you mean 'lora'"),
        ({"model": "vit-b16"}, r"does not train 'vit-b16', which is a vit. It trains llama-2-7b"),
        *(({"tokens": few}, "must be at least 98,304") for few in ("0", "98303")),
        *(({"tokens": odd}, "is no number") for odd in ("", "-5", "many", "1e6", "nan")),
        ({"samples": 5}, "counts tokens"),
    ],
)
def test_orders_that_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        script_of(Order(**{"recipe": "lora"} | changes))


@pytest.mark.parametrize(
    ("text", "number"), [("20M", 20e6), ("1.5b", 1.5e9), ("2_000", 2000), ("1,000k", 1e6), ("1T", 1e12)]
)
def test_numbers_are_read_as_people_write_them(text, number):
    assert parse_count(text) == number


def test_a_constant_that_the_script_lacks_is_a_bug_of_ours():
    with pytest.raises(KeyError):
        rendered("lora", {"NONE_SUCH": 1}, {})


def test_the_file_goes_when_it_is_not_needed():
    with script_file(Order(recipe="lora")) as path:
        assert path.name == "lora.py"
        assert path.read_text(encoding="utf-8") == script_of(Order(recipe="lora"))
    assert not path.exists()


def on_the_cpu(text: str) -> str:
    return text.replace('"cuda"', '"cpu"').replace(".cuda(non_blocking=True)", "").replace(
        "num_workers=4", "num_workers=0"
    ).replace("pin_memory=True", "pin_memory=False")  # fmt: skip


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", ["lora", "qlora", "full", "pretrain"])
def test_a_language_model_trains_and_goes_on_where_it_was_ended(name, tmp_path, monkeypatch, capsys):
    settings = {
        "CONFIG": TINY, "TOKENS": 640, "SEQUENCE": 8, "BATCH": 2, "ACCUMULATION": 2, "SAVE_EVERY": 8,
    }  # fmt: skip
    text = on_the_cpu(rendered(name, settings, {}))
    torch = pytest.importorskip("torch")
    precision = torch.get_float32_matmul_precision()
    monkeypatch.chdir(tmp_path)

    def run(**changed: int) -> str:
        for constant, value in changed.items():
            assert f"\n{constant} = 1\n" in text
            (tmp_path / "train.py").write_text(
                text.replace(f"\n{constant} = 1\n", f"\n{constant} = {value}\n")
            )
        runpy.run_path("train.py", run_name="__main__")
        return capsys.readouterr().out

    try:
        first, resumed = run(EPOCHS=1), run(EPOCHS=2)
    finally:
        torch.set_float32_matmul_precision(precision)
    assert re.search(r"step 20 of 20: loss [34]\.\d", first)
    assert "step 10 of" not in resumed
    assert "step 30 of 40: loss" in resumed


@pytest.mark.torch
@pytest.mark.parametrize(("name", "most_off"), [("lora", 0.0), ("qlora", 0.1), ("full", 0.0)])
def test_published_weights_find_their_places(name, most_off, tmp_path):
    torch = pytest.importorskip("torch")
    saving = pytest.importorskip("safetensors.torch")
    (tmp_path / "train.py").write_text(on_the_cpu(rendered(name, {"CONFIG": TINY}, {})))
    script = runpy.run_path(str(tmp_path / "train.py"))
    with torch.device("meta"):
        model = script["Decoder"](TINY, False)
        if name == "qlora":
            script["quantize"](model.layers)
        if name != "full":
            script["add_adapters"](model, model.layers, (), 4, 8)
    model = script["placed"](model, model.layers, False)
    layer = "model.layers.1.self_attn.q_proj.weight"
    published = {layer: torch.randn(64, 64), "model.norm.weight": torch.full((64,), 2.0)}
    saving.save_file(published, tmp_path / "model.safetensors")
    script["load_weights"](model, str(tmp_path), *([script["packed"]] if name == "qlora" else []))
    loaded = model.layers[1].self_attn.q_proj
    inputs = torch.eye(64)
    assert (loaded(inputs).T - published[layer]).abs().mean().item() <= most_off
    assert model.norm.weight[0].item() == 2.0


@pytest.mark.torch
@pytest.mark.parametrize("is_installed", [True, False])
def test_weights_of_four_bits_are_made_with_and_without_bitsandbytes(is_installed, tmp_path, warm_module):
    """In a process of its own, since an operator is defined once."""
    if is_installed:
        pytest.importorskip("bitsandbytes")
    (tmp_path / "train.py").write_text(on_the_cpu(rendered("qlora", {"CONFIG": TINY}, {})))
    warm_module("tests.unit.recipes.four_bits", tmp_path / "train.py", *([] if is_installed else ["hidden"]))


@pytest.mark.torch
def test_the_u_net_has_the_parameters_of_its_paper(tmp_path):
    torch = pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(script_of(Order(recipe="dreambooth")))
    script = runpy.run_path(str(tmp_path / "train.py"))
    with torch.device("meta"):
        model = script["UNet"](script["CONFIG"], False)
    assert sum(parameter.numel() for parameter in model.parameters()) == pytest.approx(859.5e6, rel=1e-4)


def test_a_recipe_resumes_and_scales_weakly_unless_a_flag_says_otherwise():
    flags = {"profile__scaling": None, "spot__checkpoints": "none", "profile__samples": 5}
    recipe = Subject(source=None, recipe="vit", sizes=SizeOptions())
    assert recipe.settings(flags) == {
        "profile__scaling": "weak", "spot__checkpoints": "none", "profile__samples": None,
    }  # fmt: skip
    assert recipe.settings({**flags, "spot__checkpoints": None})["spot__checkpoints"] == "resumes"
    assert Subject(source=Path("x.py"), recipe=None, sizes=SizeOptions()).settings(flags) == flags
