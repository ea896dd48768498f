"""Supervised fine-tuning of a language model (trl's SFTTrainer)
trl docs, "SFT Trainer: Quickstart", with a model and a tokenizer from their configurations.
"""

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = {
    word: number for number, word in enumerate(["[PAD]", "[EOS]", "[UNK]", *"abcdefghijklmnopqrstuvwxyz"])
}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, pad_token="[PAD]", eos_token="[EOS]", unk_token="[UNK]"
)
config = AutoConfig.for_model(
    "qwen2",
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    vocab_size=64,
)
trainer = SFTTrainer(
    model=AutoModelForCausalLM.from_config(config),
    args=SFTConfig(
        output_dir="sft",
        per_device_train_batch_size=8,
        gradient_accumulation_steps=2,
        bf16=True,
        gradient_checkpointing=False,
        report_to="none",
    ),
    train_dataset=Dataset.from_dict({"text": ["the quick brown fox jumps over the lazy dog"] * 64}),
    processing_class=tokenizer,
)
trainer.train()
