"""Published weights into a model, whole or sharded."""

from pathlib import Path

from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict


def load_weights(model, folder, convert=None):
    """Weights of a folder with safetensors files; the model keeps random ones where none is given."""
    if not folder:
        return
    from safetensors.torch import load_file  # pip install safetensors

    own = {name for name, _ in model.named_modules()}
    options = StateDictOptions(full_state_dict=True, strict=False)
    for path in sorted(Path(folder).glob("*.safetensors")):
        weights = {place(name, own): tensor for name, tensor in load_file(path).items()}
        set_model_state_dict(model, convert(weights, model) if convert else weights, options=options)


def place(name, own):
    """Where the model has a published weight: without the prefix that it may lack, or below an adapter."""
    module, _, leaf = name.rpartition(".")
    module = module if module in own else module.removeprefix("model.")
    return f"{module}.base.{leaf}" if f"{module}.base" in own else f"{module}.{leaf}"
