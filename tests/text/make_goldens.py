#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/text/golden: tiny tokenizers of every kind and what `tokenizers` 0.23.3 says about them.

Each <name>.json holds {"tokenizer": ..., "cases": [{"text", "ids", "plain_ids"}], "decoded": [{"ids", "text", "plain_text"}]}.
"""
import json
import pathlib
import random

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GOLDEN = pathlib.Path(__file__).parent / "golden"
CORPUS = ["the cat sat on the mat and the hat", "where is the weather? there, over the other river.", "I'm sure we'll see naïve café façades",
          "one two three 123 456", "  indented\n\tlines\n", "中文 и русский 😀"] * 3
TEXTS = ["", " ", "the cat sat", " the  cat\n", "don't re-read café naïve", "中文 😀👍🏽 и", "e\u0301\u200b\u00a0x", "<s>the</s>", "<|x|> the<|x|>", "12 3456", "\x00\x7f", "a\ufffdb", "▁x Ġ <0x41>"]
SPECIAL = ["<s>", "</s>", "<unk>"]


def byte_level_bpe():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_tokens([AddedToken("<|x|>", lstrip=True, rstrip=True)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


BYTES = [f"<0x{b:02X}>" for b in range(256)]


def llama_bpe():
    """Byte fallback and a decoder that strips the first space, as Llama 2 has it."""
    pieces = ["▁", "t", "h", "e", "c", "a", "s", "o", "n", "r", "i", "▁t", "▁th", "▁the", "▁c", "at", "▁cat", "é", "中"]
    merges = [("▁", "t"), ("▁t", "h"), ("▁th", "e"), ("▁", "c"), ("a", "t"), ("▁c", "at")]
    vocab = {piece: i for i, piece in enumerate(["<unk>", "<s>", "</s>"] + BYTES + pieces)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def unigram():
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)] + [(b, -12.0) for b in BYTES]
    pieces += [("▁the", -2.0), ("▁cat", -3.0), ("▁", -3.5), ("at", -4.0)] + [(c, -6.0) for c in "thecasonri'é中"]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def word_piece():
    words = ["[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "##s", "##at", "do", "##n", "'", "t", "c", "##afe", ",", ".", "3", "##4", "中"]
    tokenizer = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(["[CLS]", "[SEP]"])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tokenizer


def suffix_bpe():
    vocab = ["<unk>", "t", "h", "e", "c", "a", "t</w>", "e</w>", "th", "the</w>", "at</w>", "cat</w>", "a</w>b</w>"]
    tokenizer = Tokenizer(models.BPE(vocab={w: i for i, w in enumerate(vocab)}, merges=[("t", "h"), ("th", "e</w>"), ("a", "t</w>"), ("c", "at</w>")],
                                     unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.BPEDecoder()
    return tokenizer


def ctc():
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["<pad>", "|", "t", "h", "e", "c", "a"])}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoders.CTC()
    return tokenizer


def words():
    """No decoder at all: words joined by spaces; ids with a gap."""
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "the": 1, "cat": 2, "sat": 9}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["</s>"])
    return tokenizer


def fuse_then_replace():
    """A step after the fusing one that needs the whole text."""
    tokenizer = words()
    tokenizer.decoder = decoders.Sequence([decoders.Fuse(), decoders.Replace("tc", "t c"), decoders.Strip("t", 1, 0)])
    return tokenizer


def golden(tokenizer):
    rng = random.Random(7)
    cases = [{"text": t, "ids": tokenizer.encode(t).ids, "plain_ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in TEXTS]
    known = sorted(tokenizer.get_vocab().values())
    sequences = [case["ids"] for case in cases] + [[rng.choice(known) for _ in range(rng.randint(1, 12))] for _ in range(25)]
    decoded = [{"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=False), "plain_text": tokenizer.decode(ids)} for ids in sequences if ids]
    return {"tokenizer": json.loads(tokenizer.to_str()), "vocab_size": tokenizer.get_vocab_size(), "cases": cases, "decoded": decoded}


def main():
    GOLDEN.mkdir(exist_ok=True)
    for make in (byte_level_bpe, llama_bpe, unigram, word_piece, suffix_bpe, ctc, words, fuse_then_replace):
        (GOLDEN / f"{make.__name__}.json").write_text(json.dumps(golden(make()), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
