# SPDX-License-Identifier: Apache-2.0
"""Vocabulary-only GGUF files as tokenizer.json: what real_text_test.py needs to use their expected ids."""
import json
import struct

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
CONTROL, USER_DEFINED = 3, 4

# How the tokenizer of each `pre` name cuts text into words before BPE.
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def digits(individual):
    return {"type": "Digits", "individual_digits": individual}


WORDS = {
    "gpt-2": [byte_level(True)], "mpt": [byte_level(True)],
    "starcoder": [digits(True), byte_level(True)], "refact": [digits(True), byte_level(True)], "command-r": [digits(True), byte_level(True)],
    "falcon": [{"type": "Punctuation", "behavior": "Contiguous"}, byte_level(True), digits(False), split("[0-9][0-9][0-9]")],
    "llama-bpe": [split(LLAMA3), byte_level(False)], "qwen2": [split(QWEN2), byte_level(False)], "qwen35": [split(QWEN35), byte_level(False)],
    "deepseek-coder": [split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"), digits(True), byte_level(False)],
}
NFC = ("command-r", "mpt", "qwen2")


class Reader:
    """The key-value part of a GGUF file."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def scalar(self, form):
        value, = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        size = self.scalar("<Q")
        self.at += size
        return self.data[self.at - size:self.at].decode("utf-8", errors="replace")

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            item, count = self.scalar("<I"), self.scalar("<Q")
            return [self.value(item) for _ in range(count)]
        return self.scalar(SCALARS[kind])

    def fields(self):
        assert self.data[:4] == b"GGUF"
        self.at = 16
        count = self.scalar("<Q")
        return {self.text(): self.value(self.scalar("<I")) for _ in range(count)}


def special_tokens(tokens, types):
    return [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": types[i] == CONTROL}
            for i, token in enumerate(tokens) if types[i] in (CONTROL, USER_DEFINED)]


def byte_level_bpe(pre, tokens, types, merges):
    return {"added_tokens": special_tokens(tokens, types), "normalizer": {"type": "NFC"} if pre in NFC else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": WORDS[pre]}, "decoder": byte_level(True),
            "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges, "ignore_merges": pre == "llama-bpe"}}


def score_bpe(tokens, types, scores):
    """SentencePiece BPE: merges follow from the scores."""
    ids = {token: i for i, token in enumerate(tokens)}
    merges = []
    for token, i in ids.items():
        parts = [(token[:k], token[k:]) for k in range(1, len(token)) if token[:k] in ids and token[k:] in ids]
        merges += [(-scores[i], ids[a], ids[b], a, b) for a, b in parts if types[i] == 1]
    merges.sort()
    steps = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
             {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    normalizers = [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]
    return {"added_tokens": special_tokens(tokens, types), "normalizer": {"type": "Sequence", "normalizers": normalizers}, "pre_tokenizer": None,
            "decoder": {"type": "Sequence", "decoders": steps},
            "model": {"type": "BPE", "vocab": ids, "merges": [[a, b] for *_, a, b in merges], "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}}


def space_bpe(tokens, types, merges):
    """Gemma: merges over text in which spaces are pieces."""
    steps = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    return {"added_tokens": special_tokens(tokens, types), "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
            "decoder": {"type": "Sequence", "decoders": steps},
            "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges, "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}}


def word_piece(tokens, types):
    """GGUF marks the first piece of a word, tokenizer.json the others."""
    names = [t if types[i] != 1 else t[1:] if t.startswith("▁") else "##" + t for i, t in enumerate(tokens)]
    return {"added_tokens": special_tokens(tokens, types), "pre_tokenizer": {"type": "BertPreTokenizer"},
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "vocab": {t: i for i, t in enumerate(names)}, "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}}


def split_merge(merge):
    """Pieces may begin with a space; the separator is the first space after that."""
    middle = merge.index(" ", 1)
    return [merge[:middle], merge[middle + 1:]]


def tokenizer_json(path):
    """The content of a tokenizer.json, or None for kinds that this file does not know."""
    fields = Reader(path.read_bytes()).fields()
    tokens, types = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    kind, pre = fields["tokenizer.ggml.model"], fields.get("tokenizer.ggml.pre", "default")
    if kind == "gpt2" and pre in WORDS:
        body = byte_level_bpe(pre, tokens, types, fields["tokenizer.ggml.merges"])
    elif kind == "llama":
        body = score_bpe(tokens, types, fields["tokenizer.ggml.scores"])
    elif kind == "gemma4":
        body = space_bpe(tokens, types, [split_merge(merge) for merge in fields["tokenizer.ggml.merges"]])
    elif kind == "bert":
        body = word_piece(tokens, types)
    else:
        return None
    return json.dumps({"version": "1.0", "truncation": None, "padding": None, "post_processor": None, **body}, ensure_ascii=False)


def expected(path):
    """Pairs of text and ids from the .inp and .out files beside a vocabulary; none where there are no such files."""
    texts, ids = path.with_name(path.name + ".inp"), path.with_name(path.name + ".out")
    if not texts.exists():
        return []
    inputs = texts.read_bytes().decode("utf-8").split("\n__ggml_vocab_test__\n")
    return list(zip(inputs, ([int(i) for i in line.split()] for line in ids.read_text().split("\n"))))
