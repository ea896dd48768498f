"""Libraries that save checkpoints in folders save them where `saving` puts files.

They write more than tensors (configurations, tokenizers, indices) and some delete older checkpoints, so
each gets another folder to work in. All are looked for when the script imports them; none is needed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...importing import attribute, when_imported
from ...protocol import Warned

if TYPE_CHECKING:
    from advisor.payload.session import Session

_FOLDER = "save_directory"
# Module -> function -> the parameter that names a file or folder to write.
_WRITES = {
    "transformers.modeling_utils": {"PreTrainedModel.save_pretrained": _FOLDER},
    "transformers.configuration_utils": {
        "PretrainedConfig.save_pretrained": _FOLDER,
        "PreTrainedConfig.save_pretrained": _FOLDER,
    },
    "transformers.generation.configuration_utils": {"GenerationConfig.save_pretrained": _FOLDER},
    "transformers.tokenization_utils_base": {"PreTrainedTokenizerBase.save_pretrained": _FOLDER},
    "transformers.processing_utils": {"ProcessorMixin.save_pretrained": _FOLDER},
    "transformers.feature_extraction_utils": {"FeatureExtractionMixin.save_pretrained": _FOLDER},
    "transformers.image_processing_base": {"ImageProcessingMixin.save_pretrained": _FOLDER},
    "transformers.trainer": {"Trainer._save": "output_dir"},
    "transformers.trainer_callback": {"TrainerState.save_to_json": "json_path"},
    "peft.peft_model": {"PeftModel.save_pretrained": _FOLDER},
    "diffusers.models.modeling_utils": {"ModelMixin.save_pretrained": _FOLDER},
    "diffusers.pipelines.pipeline_utils": {"DiffusionPipeline.save_pretrained": _FOLDER},
    "accelerate.accelerator": {
        "Accelerator.save_state": "output_dir",
        "Accelerator.save_model": _FOLDER,
    },
    "lightning.fabric.plugins.io.torch_io": {"TorchCheckpointIO.save_checkpoint": "path"},
    "lightning_fabric.plugins.io.torch_io": {"TorchCheckpointIO.save_checkpoint": "path"},
    "lightning.fabric.loggers.csv_logs": {"_ExperimentWriter.__init__": "log_dir"},
    "lightning_fabric.loggers.csv_logs": {"_ExperimentWriter.__init__": "log_dir"},
    "lightning.pytorch.core.saving": {"save_hparams_to_yaml": "config_yaml"},
    "pytorch_lightning.core.saving": {"save_hparams_to_yaml": "config_yaml"},
}


def install(session: Session) -> None:
    """Watch for the libraries."""
    for module, functions in _WRITES.items():
        for name, parameter in functions.items():
            when_imported(module, functools.partial(_redirect, session, name, parameter))
    when_imported("transformers.trainer", functools.partial(_redirect_trainer, session))


def _redirect(session: Session, name: str, parameter: str, module: ModuleType) -> None:
    owner, last, original = attribute(module, name)
    if original is None:
        return
    signature = inspect.signature(original)

    @functools.wraps(original)
    def write(*args: object, **kwargs: object) -> object:
        bound = signature.bind(*args, **kwargs)
        if bound.arguments.get(parameter) is None:
            return original(*args, **kwargs)
        session.warn(Warned.FILES_THROWN_AWAY, library=module.__name__.partition(".")[0])
        bound.arguments[parameter] = session.saved.place(bound.arguments[parameter])
        return original(*bound.args, **bound.kwargs)

    setattr(owner, last, write)


def _redirect_trainer(session: Session, module: ModuleType) -> None:
    """Hugging Face's Trainer works out its folder itself, and deletes old checkpoints in it."""
    for name in ("_get_output_dir", "save_model"):
        owner, last, original = attribute(module, "Trainer." + name)
        if original is not None:
            setattr(owner, last, _TRAINER[name](session, original))


def _elsewhere(session: Session, original: Callable[..., Any]) -> Callable[..., object]:
    @functools.wraps(original)
    def get_output_dir(*args: object, **kwargs: object) -> str:
        return session.saved.place(original(*args, **kwargs))

    return get_output_dir


def _save_model(session: Session, original: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(original)
    def save_model(trainer: Any, output_dir: Any = None, *args: object, **kwargs: object) -> object:
        folder = session.saved.place(output_dir or trainer.args.output_dir)
        return original(trainer, folder, *args, **kwargs)

    return save_model


_TRAINER = {"_get_output_dir": _elsewhere, "save_model": _save_model}
