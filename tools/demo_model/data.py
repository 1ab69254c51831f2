# SPDX-License-Identifier: Apache-2.0
"""Tokenizer training and batches: conversations in ChatML, grouped by length, answers marked as what is learned."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import torch
from generator import Generator, Message
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT, START, END = SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PLAIN_STORY_SHARE = 0.06
CHUNK = 1500  # conversations that are sorted by length together

Example = tuple[list[int], list[bool]]  # ids, and which of them are learned


def train_tokenizer(seed: int, vocab_size: int, conversations: int = 20000) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    generator = Generator(seed)
    texts = (message["content"] for _ in range(conversations) for message in generator.conversation())
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, messages: list[Message]) -> Example:
    """The ids that the chat template gives; an answer and its <|im_end|> are learned."""
    ids: list[int] = []
    learn: list[bool] = []
    for message in messages:
        head = tokenizer.encode(f"{START}{message['role']}\n").ids
        body = tokenizer.encode(f"{message['content']}{END}").ids
        tail = tokenizer.encode("\n").ids
        ids += head + body + tail
        learn += [False] * len(head) + [message["role"] == "assistant"] * len(body) + [False] * len(tail)
    return ids, learn


def chunk(tokenizer: Tokenizer, generator: Generator, context: int) -> list[Example]:
    """The next part of the generator's endless stream."""
    examples = []
    for _ in range(CHUNK):
        if generator.rng.random() < PLAIN_STORY_SHARE:
            ids = tokenizer.encode(generator.plain_story() + END_OF_TEXT).ids
            examples.append((ids, [True] * len(ids)))
        else:
            ids, learn = encode(tokenizer, generator.conversation())
            examples.append((ids[:context], learn[:context]))
    return examples


def batches(examples: list[Example], tokens: int, rng: Random) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of about `tokens` positions, each of examples of similar length, in random order."""
    rows: list[list[Example]] = [[]]
    for example in sorted(examples, key=lambda e: len(e[0])):
        if (len(rows[-1]) + 1) * len(example[0]) > tokens:
            rows.append([])
        rows[-1].append(example)
    rng.shuffle(rows)
    for group in filter(None, rows):
        width = max(len(ids) for ids, _ in group)
        ids = torch.zeros(len(group), width, dtype=torch.long)
        learn = torch.zeros(len(group), width, dtype=torch.bool)
        for row, (sequence, mask) in enumerate(group):
            ids[row, : len(sequence)] = torch.tensor(sequence)
            learn[row, : len(mask)] = torch.tensor(mask)
        yield ids, learn
