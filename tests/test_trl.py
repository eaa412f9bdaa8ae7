"""The dataset goes into TRL's DPOTrainer with no preparation, the chat template is applied, and a step runs."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from helpers.export import Track, write_dataset
from helpers.export.card import Card
from helpers.export.preflight import preflight

pytestmark = [
    pytest.mark.train,
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # the trainer's own warnings are not ours to judge
]

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    special = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {token: place for place, token in enumerate([*special, *sorted(alphabet)])}
    model = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges=[]))
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=model,
        eos_token="<|end|>",
        pad_token="<|end|>",
        additional_special_tokens=special[1:],
        chat_template=TEMPLATE,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rows = [
        {
            "prompt": f"Judge recipe {sample}: heat at 500 °C.",
            "chosen": f'Poor. {{"overall_score": {1 + sample % 2}}}',
            "rejected": 'Good. {"overall_score": 4}',
            "score_chosen": 1.0 + sample % 2,
            "score_rejected": 4.0,
            "score_delta": 3.0 - sample % 2,
            "anchor_score": 3.5,
            "sample_id": str(sample),
            "perturbation_type": "action_antonym",
            "perturbation_category": "error",
            "perturbation_rate": 1.0,
            "chosen_model": "x",
            "rejected_model": "y",
            "dataset_name": "action_antonym_100pct",
            "split": "train" if sample < 6 else "validation",
        }
        for sample in range(8)
    ]
    folder = tmp_path_factory.mktemp("trl") / "dataset"
    card = Card("Toy", "cc0-1.0", {"toy": "cc0-1.0"}, {"x": "rules", "y": "rules"})
    write_dataset([Track("recipes", pd.DataFrame(rows), "Be strict.")], folder, card=card)
    return folder


def test_the_dataset_trains_as_it_is(folder, tokenizer, tmp_path):
    trl = pytest.importorskip("trl")
    transformers = pytest.importorskip("transformers")
    from datasets import load_dataset

    data = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    trainer = trl.DPOTrainer(
        model=str(tmp_path / "model"),
        args=trl.DPOConfig(
            output_dir=str(tmp_path / "out"), max_steps=1, per_device_train_batch_size=2, report_to=[], use_cpu=True
        ),
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        processing_class=tokenizer,
    )
    first = trainer.train_dataset[0]
    rendered = tokenizer.decode(first["prompt_ids"] + first["chosen_ids"])
    assert rendered.startswith("<|system|>Be strict.<|end|><|user|>Judge recipe 0: heat at 500 °C.<|end|><|assistant|>")
    assert len(trainer.train_dataset) == 6
    assert trainer.train().training_loss == pytest.approx(math.log(2), abs=0.01)


def test_preflight_counts_the_tokens_that_the_trainer_sees(folder, tokenizer):
    found = preflight(folder, tokenizer)
    # one token a byte: 4 marks for system, user and their ends, 10 + 35 bytes, and the assistant's mark
    prompt = "Judge recipe 0: heat at 500 °C."
    assert found.lengths.loc["prompt", "max"] == 4 + len("Be strict.") + len(prompt.encode()) + 1
    assert found.rendered.endswith('{"overall_score": 1}<|end|>')


def test_a_cut_inside_the_score_is_seen(folder, tokenizer):
    longest = int(preflight(folder, tokenizer).lengths.loc["longest", "max"])
    # the last token ends the message, the one before it closes the JSON object
    assert preflight(folder, tokenizer, max_length=longest - 1).score_cut == 0
    assert preflight(folder, tokenizer, max_length=longest - 2).score_cut == 1
