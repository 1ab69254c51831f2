#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random tokenizer folders: what the files beside tokenizer.json say of tokens must mean what it means to AutoTokenizer.

Ids of texts and chats, names of special tokens, EOS and decoded text are compared. Folders that AutoTokenizer refuses need an answer or an
error, not a crash.
"""
import argparse
import json
import os
import pathlib
import random
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")

from real_text_test import Probe, Tally
from transformers import AutoTokenizer
from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

TEMPLATE = "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n{{ eos_token }}"
NAMES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]
TEXTS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<bos>", "<eos>", "<mask>", "<tool>", "<Think>", "é!", "ab",
         "<|image|>", "<|x y|>", "[PAD]", "e\u0301t", "<|padding|>", "<BOS_TOKEN>"]
# (class of the pipeline, classes that a configuration may name for it, model types)
KINDS = [
    ("GPT2Tokenizer", ["PreTrainedTokenizerFast", "TokenizersBackend", "GPT2Tokenizer", "GPT2TokenizerFast", "CodeGenTokenizer", "LlamaTokenizerFast",
                       "LlamaTokenizer", "NoSuchTokenizer", None], ["llama", "mistral", "qwen3", "gemma3_text"]),
    ("Qwen2Tokenizer", ["Qwen2Tokenizer", "Qwen2TokenizerFast", "PreTrainedTokenizerFast", "LlamaTokenizerFast", None],
     ["qwen2", "qwen3", "qwen3_moe", "llama"]),
    ("GemmaTokenizer", ["GemmaTokenizer", "GemmaTokenizerFast", "PreTrainedTokenizerFast", None], ["gemma2", "gemma3_text", "llama"]),
    ("LlamaTokenizer", ["LlamaTokenizer", "LlamaTokenizerFast", "PreTrainedTokenizerFast"], ["llama", "mistral"]),
    ("GPTNeoXTokenizer", ["GPTNeoXTokenizer", "GPTNeoXTokenizerFast"], ["llama"]),
]


def byte_letters():
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    others = [b for b in range(256) if b not in printable]
    return [chr(b) if b in printable else chr(256 + others.index(b)) for b in range(256)]


# Of the texts that are compared.
BYTES = sorted({*range(32, 127), 10, *"é\u0301".encode()})


def vocabulary(kind, rng):
    """Pieces by id; some have special tokens of their own at the beginning or at the end."""
    if kind in ("GemmaTokenizer", "LlamaTokenizer"):
        pieces = [f"<0x{b:02X}>" for b in BYTES if b < 32 or b > 126] + ["▁"] + [chr(c) for c in range(33, 127)]
    else:
        letters = byte_letters()
        pieces = [letters[b] for b in BYTES]
    specials = rng.sample(TEXTS, rng.randint(0, 4))
    if kind in ("GemmaTokenizer", "LlamaTokenizer"):
        specials = list(dict.fromkeys(["<unk>", *specials]))
    specials = [s for s in specials if s not in pieces and " " not in s]
    pieces = specials + pieces if rng.random() < 0.5 else pieces + specials
    return {piece: i for i, piece in enumerate(pieces)}


def flags(rng, content):
    odd = rng.random() < 0.4
    flag = lambda: odd and rng.random() < 0.4
    return {"content": content, "single_word": flag(), "lstrip": flag(), "rstrip": flag(), "normalized": flag(), "special": rng.random() < 0.6}


def described(rng, content):
    """As a file writes a token: text, an object of transformers, or one with few flags."""
    shape = rng.random()
    if shape < 0.6:
        return content
    token = {"__type": "AddedToken", **flags(rng, content)}
    if shape < 0.7:
        for key in rng.sample(["single_word", "lstrip", "rstrip", "normalized", "special"], 3):
            del token[key]
    return token


def some(rng, most):
    return rng.sample(TEXTS, rng.randint(0, most))


def tokenizer_json(kind, rng):
    vocab = vocabulary(kind, rng)
    pipeline = tokenizer_class_from_name(kind)(vocab=vocab, merges=[])._tokenizer.to_str()
    content = json.loads(pipeline)
    content["added_tokens"] = []
    content["model"]["vocab"] = vocab
    next_id = len(vocab)
    for text in some(rng, 5):
        token_id = vocab.get(text, next_id)
        next_id += token_id == next_id
        content["added_tokens"].append({"id": token_id, **flags(rng, text)})
    content["added_tokens"].sort(key=lambda token: token["id"])
    return content, next_id


def listed(rng, own, next_id):
    """An `added_tokens_decoder`: tokens of tokenizer.json, changed or not, and others."""
    tokens = {}
    for token in own:
        if rng.random() < 0.8:
            change = flags(rng, token["content"]) if rng.random() < 0.5 else {k: v for k, v in token.items() if k != "id"}
            tokens[str(token["id"])] = change
    for text in some(rng, 4):
        if all(text != token["content"] for token in tokens.values()) or rng.random() < 0.1:
            tokens[str(next_id)] = flags(rng, text)
            next_id += rng.choice([1, 1, 1, 1, 7])
    keys = list(tokens)
    rng.shuffle(keys)
    return {key: tokens[key] for key in keys}


def names(rng, chance):
    return {name: None if rng.random() < 0.1 else described(rng, rng.choice(TEXTS)) for name in NAMES if rng.random() < chance}


def make_folder(folder, rng):
    kind, classes, model_types = rng.choice(KINDS)
    content, next_id = tokenizer_json(kind, rng)
    config = {}
    name, model_type = rng.choice(classes), rng.choice(model_types)
    if name is not None:
        config["tokenizer_class"] = name
    else:
        model_type = model_types[0]
    config.update(names(rng, 0.35))
    if rng.random() < 0.4:
        config["additional_special_tokens"] = [described(rng, text) for text in some(rng, 3)]
    if rng.random() < 0.3:
        texts = some(rng, 3)
        as_list = rng.random() < 0.5
        config["extra_special_tokens"] = ([described(rng, text) for text in texts] if as_list
                                          else {f"{n}_token": described(rng, text) for n, text in enumerate(texts)})
    if rng.random() < 0.3:
        config["image_token"] = described(rng, rng.choice(TEXTS))
    if rng.random() < 0.6:
        config["added_tokens_decoder"] = listed(rng, content["added_tokens"], next_id)
    if rng.random() < 0.1:
        config["split_special_tokens"] = True
    if rng.random() < 0.1 and kind not in ("LlamaTokenizer", "GemmaTokenizer"):
        config["add_prefix_space"] = rng.random() < 0.5
    files = {"tokenizer.json": content, "config.json": {"model_type": model_type}}
    if rng.random() < 0.5:
        texts = some(rng, 4)
        files["added_tokens.json"] = {text: next_id + i for i, text in enumerate(texts)}
    if rng.random() < 0.5:
        described_here = {k: v for k, v in names(rng, 0.3).items()}
        for value in described_here.values():
            if isinstance(value, dict):
                value.pop("__type")
        if rng.random() < 0.4:
            described_here["additional_special_tokens"] = some(rng, 3)
        if rng.random() < 0.2:
            described_here["extra_special_tokens"] = some(rng, 3)
        if rng.random() < 0.2:
            described_here["audio_token"] = rng.choice(TEXTS)
        files["special_tokens_map.json"] = described_here
    templates(rng, config, files)
    if kind in ("GPT2Tokenizer", "Qwen2Tokenizer") and (name or "").removesuffix("Fast") == kind and rng.random() < 0.3:
        del files["tokenizer.json"]  # Older programs save these two.
        files["vocab.json"] = content["model"]["vocab"]
        files["merges.txt"] = "#version: 0.2\n"
        files["tokenizer_config.json"] = config
    elif rng.random() < 0.95:
        files["tokenizer_config.json"] = config
    else:
        files["config.json"] = {"model_type": model_types[0]}
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return files


def templates(rng, config, files):
    shape = rng.randint(0, 7)
    if shape == 0:
        files["chat_template.jinja"] = TEMPLATE
    elif shape == 1:
        config["chat_template"] = [{"name": "default", "template": TEMPLATE}, {"name": "tool_use", "template": "x"}]
    elif shape == 2:
        config["chat_template"] = {"default": TEMPLATE, "rag": "x"}
    elif shape == 3:
        files["additional_chat_templates/default.jinja"] = TEMPLATE
        files["chat_template.jinja"] = "old"
    else:
        config["chat_template"] = TEMPLATE
    if rng.random() < 0.2:
        config.setdefault("chat_template", "not this")
        files["chat_template.json"] = {"chat_template": "JSON"}


def random_text(rng):
    pieces = TEXTS + ["a", " ", "  ", "\n", "hello", " world", "é", "e\u0301", "x1", "<|im_", "."]
    return "".join(rng.choice(pieces) for _ in range(rng.randint(1, 8)))


MESSAGES = [{"role": "system", "content": "Be <s> brief"}, {"role": "user", "content": "hi <|im_end|> é"}]


def expectations(reference, rng, count):
    """What AutoTokenizer says: names, EOS, ids of texts and of a chat."""
    texts = TEXTS + [random_text(rng) for _ in range(count)]
    chat = None
    if reference.chat_template is not None:
        chat = reference.apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=False)
    return {
        "vocab_size": len(reference),
        "special_tokens": reference.special_tokens_map,
        "eos": [] if reference.eos_token is None else [reference.eos_token_id],
        "texts": [{"text": text, "ids": reference(text)["input_ids"]} for text in texts],
        "chat": chat,
    }


def compare(probe, tally, name, folder, rng):
    """Whether AutoTokenizer takes the folder."""
    loaded = probe.ask(op="load", dir=str(folder))
    try:
        reference = AutoTokenizer.from_pretrained(str(folder))
    except Exception:
        return False
    expected = expectations(reference, rng, 30)
    for key in ("vocab_size", "special_tokens", "eos"):
        tally.equal(f"{name}: {key}", loaded.get(key, loaded), expected[key])
    for case in expected["texts"]:
        got = probe.ask(op="encode", text=case["text"], special=True)
        tally.equal(f"{name}: ids of {case['text']!r}", got.get("tokens", got), case["ids"])
        for skip in (True, False):
            got = probe.ask(op="decode", tokens=case["ids"], skip_special=skip)
            text = reference.decode(case["ids"], skip_special_tokens=skip)
            tally.equal(f"{name}: text of {case['ids']}", got.get("text", got), text)
            tally.equal(f"{name}: streamed text of {case['ids']}", got.get("streamed", got), text)
    if expected["chat"] is None:
        return True
    got = probe.ask(op="chat", messages=MESSAGES)
    tally.equal(f"{name}: ids of a chat", got.get("tokens", got), expected["chat"])
    return True


def record(path, folders, seed):
    """tests/text/golden/other_files.json: folders with what AutoTokenizer says of them."""
    recorded = []
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(folders):
            rng = random.Random(f"{seed} {number}")
            folder = pathlib.Path(temporary) / str(number)
            folder.mkdir()
            files = make_folder(folder, rng)
            expected = expectations(AutoTokenizer.from_pretrained(str(folder)), rng, 6)
            recorded.append({"files": files, **expected})
    path.write_text("[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in recorded) + "\n]\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", help="the program text_probe")
    parser.add_argument("--folders", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="write the folders here")
    parser.add_argument("--record", type=pathlib.Path, help="write what AutoTokenizer says here, and compare nothing")
    args = parser.parse_args()
    if args.record:
        record(args.record, args.folders, args.seed)
        return 0
    probe, tally = Probe(args.probe), Tally()
    compared = 0
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(args.folders):
            folder = (args.keep or pathlib.Path(temporary)) / f"{args.seed}-{number}"
            folder.mkdir(parents=True)
            rng = random.Random(f"{args.seed} {number}")
            make_folder(folder, rng)
            compared += compare(probe, tally, folder.name, folder, rng)
    print(f"{compared} of {args.folders} folders compared, {tally.checks} checks, {tally.failures} failures")
    return 1 if tally.failures or compared < args.folders // 2 else 0


if __name__ == "__main__":
    sys.exit(main())
