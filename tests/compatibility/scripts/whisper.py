"""Whisper from a configuration, Seq2SeqTrainer
Hugging Face's "Fine-tune Whisper" (Seq2SeqTrainer, FP16, checkpointed activations), no downloads.
"""

import torch
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

config = WhisperConfig(
    vocab_size=500, num_mel_bins=40, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_source_positions=100,
    max_target_positions=32, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    begin_suppress_tokens=None,
)  # fmt: skip
model = WhisperForConditionalGeneration(config)
speech = [
    {"input_features": torch.randn(40, 200), "labels": torch.randint(3, 500, (20 + index % 5,))}
    for index in range(96)
]


class DataCollatorSpeechSeq2SeqWithPadding:
    def __call__(self, features):
        labels = torch.nn.utils.rnn.pad_sequence(
            [feature["labels"] for feature in features], batch_first=True, padding_value=-100
        )
        return {"input_features": torch.stack([f["input_features"] for f in features]), "labels": labels}


training_args = Seq2SeqTrainingArguments(
    output_dir="./whisper-small-hi",
    per_device_train_batch_size=8,
    gradient_accumulation_steps=1,
    learning_rate=1e-5,
    warmup_steps=50,
    max_steps=20,
    gradient_checkpointing=True,
    fp16=True,
    logging_steps=25,
    report_to="none",
)
trainer = Seq2SeqTrainer(
    args=training_args,
    model=model,
    train_dataset=speech,
    data_collator=DataCollatorSpeechSeq2SeqWithPadding(),
)
trainer.train()
