#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny embedding models of tests/golden/embedding and what sentence-transformers computes with them in float32.

    python tools/make_embedding_goldens.py [name ...] [--out tests/golden/embedding]

Each folder is a model as sentence-transformers saves it, with random weights and a tokenizer of bytes, and golden.json:

    texts     the texts
    tokens    the token ids of each
    vectors   the vector of each, with the model's own modules
    queries   the vectors with the prompt "query"
    cut       the vectors cut to 8 elements, of unit length

and of rerankers:

    query, documents
    tokens    the token ids of each prompt
    scores    the probability of each document

gemma3 sees later tokens, has windows, the mean as pooling and two dense layers. qwen3 has the last token as pooling, and a
tokenizer that ends a text. qwen3_old has the older keys of 1_Pooling/config.json and a tokenizer that does not end a text.
reranker is a Qwen 3 that answers yes or no to the prompt of Qwen3-Reranker's model card, classifier one with a class.

Encoders also have "taps": of the last text the rows of the embedding, after each layer, and the final ones. Cross-encoders
have "types" of the tokens too. bert takes at most 24 tokens of a text; nomic_bert has a rope of its own base, modernbert windows
and two ropes, xlm_roberta positions behind the padding token.
Needs: sentence-transformers==6.2.0 transformers==5.24.0 torch numpy
"""
import argparse
import json
import pathlib
import shutil

import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer import modules as parts
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
SPECIAL = ["<bos>", "<eos>", "<pad>"]
ANSWERS = ["yes", "no"]  # In the vocabulary, but no text becomes them.
SIZES = dict(hidden_size=32, num_hidden_layers=3, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
             vocab_size=len(BYTES) + len(SPECIAL) + len(ANSWERS), rms_norm_eps=1e-6, max_position_embeddings=64, bos_token_id=len(BYTES),
             eos_token_id=len(BYTES) + 1, pad_token_id=len(BYTES) + 2)
GEMMA = dict(SIZES, sliding_window=12, query_pre_attn_scalar=8, use_bidirectional_attention=True,
             layer_types=["sliding_attention", "full_attention", "sliding_attention"])
TEXTS = ["", "a", "Hello there", "The quick brown fox jumps over the lazy dog.", "Zwölf Boxkämpfer jagen Viktor"]
PROMPTS = {"query": "find: ", "document": ""}
QUERY, DOCUMENTS = "What is quick?", ["The fox.", "A stone", "Rain falls on the lazy dog."]
PREFIX = ("<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "
          "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n")
BODY = "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: {}\n<Document>: {}"
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORD_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + letter for letter in LETTERS), ".", "?", "the", "quick", "##ing"]
UNIGRAM = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "▁", *LETTERS, *LETTERS.upper(), ".", "?", "▁the", "ck"]
ENCODER = dict(hidden_size=36, num_hidden_layers=3, intermediate_size=40, num_attention_heads=3)
BERT = dict(ENCODER, vocab_size=len(WORD_PIECES), max_position_embeddings=64, layer_norm_eps=0.01, pad_token_id=0)
ROBERTA = dict(ENCODER, vocab_size=len(UNIGRAM), max_position_embeddings=66, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1,
               bos_token_id=0, eos_token_id=2)
NOMIC = dict(ENCODER, vocab_size=len(WORD_PIECES), max_position_embeddings=64, pad_token_id=0,
             rope_parameters={"rope_type": "default", "rope_theta": 50.0})
MODERN = dict(ENCODER, num_hidden_layers=4, vocab_size=len(BYTES) + len(SPECIAL) + len(ANSWERS), max_position_embeddings=64, local_attention=8,
              norm_eps=0.01, pad_token_id=len(BYTES) + 2, bos_token_id=len(BYTES), eos_token_id=len(BYTES) + 1,
              cls_token_id=len(BYTES), sep_token_id=len(BYTES) + 1,
              rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 200.0},
                               "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}})


def word_pieces() -> transformers.PreTrainedTokenizerFast:
    made = Tokenizer(models.WordPiece(vocab={piece: i for i, piece in enumerate(WORD_PIECES)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
        model_max_length=64, model_input_names=["input_ids", "token_type_ids", "attention_mask"])


def unigram() -> transformers.PreTrainedTokenizerFast:
    scores = [(piece, 0.0 if i < 5 else -2.0 - i / 100 + len(piece)) for i, piece in enumerate(UNIGRAM)]
    made = Tokenizer(models.Unigram(scores, unk_id=3))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>", cls_token="<s>", sep_token="</s>",
        mask_token="<mask>", model_max_length=64, model_input_names=["input_ids", "attention_mask"])


def joined_bytes() -> transformers.PreTrainedTokenizerFast:
    words = tokenizer(True, True)
    made = words.backend_tokenizer
    made.post_processor = processors.TemplateProcessing(
        single="<bos> $A <eos>", pair="<bos> $A <eos> $B <eos>", special_tokens=[("<bos>", len(BYTES)), ("<eos>", len(BYTES) + 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", model_max_length=64,
        model_input_names=["input_ids", "attention_mask"])


def tokenizer(begins: bool, ends: bool) -> transformers.PreTrainedTokenizerFast:
    vocabulary = {piece: i for i, piece in enumerate([*BYTES, *SPECIAL, *ANSWERS])}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(SPECIAL)
    if begins or ends:
        made.post_processor = processors.TemplateProcessing(
            single=" ".join(["<bos>"] * begins + ["$A"] + ["<eos>"] * ends),
            special_tokens=[(name, vocabulary[name]) for name in SPECIAL])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", model_max_length=64)


def fill(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Random weights that keep the rows' size."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            noise = torch.randn(value.shape, generator=random)
            gemma = type(model).__name__.startswith("Gemma")
            if value.ndim >= 2:
                value.copy_(noise / value.shape[-1] ** 0.5 * (2.0 if "embed" in name else 1.0))
            elif "norm" in name:
                value.copy_(0.2 * noise + (0.0 if gemma else 1.0))
            else:
                value.copy_(0.2 * noise)
    return model.eval()


def save_embedder(out: pathlib.Path, model, words, pooling: str, dense: list, most: int | None = None) -> SentenceTransformer:
    base = out.with_name(out.name + "_base")
    model.save_pretrained(base)
    words.save_pretrained(base)
    transformer = parts.Transformer(str(base), **({"max_seq_length": most} if most else {}))
    hidden = model.config.hidden_size
    whole = SentenceTransformer(modules=[transformer, parts.Pooling(hidden, pooling_mode=pooling), *dense, parts.Normalize()],
                                prompts=PROMPTS, device="cpu")
    whole.save(str(out), create_model_card=False)
    shutil.rmtree(base)
    return SentenceTransformer(str(out), device="cpu")


def record(out: pathlib.Path, golden: dict) -> None:
    (out / "golden.json").write_text(json.dumps(golden, ensure_ascii=False) + "\n")
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    print(f"{out.name}: {size / 1e3:.0f} kB", flush=True)


def rounded(rows) -> list:
    return [[round(float(x), 7) for x in row] for row in rows]


def record_embedder(out: pathlib.Path, model: SentenceTransformer, texts: list[str], more: dict | None = None) -> None:
    one_by_one = [model.encode([text])[0] for text in texts]
    most = {"truncation": True, "max_length": model.max_seq_length} if model.max_seq_length else {}
    record(out, {
        "texts": texts,
        "tokens": [model.tokenizer(text, **most)["input_ids"] for text in texts],
        "vectors": rounded(one_by_one),
        "queries": rounded(model.encode([text], prompt_name="query")[0] for text in texts),
        "cut": rounded(model.encode([text], truncate_dim=8, normalize_embeddings=True)[0] for text in texts),
        **(more or {}),
    })


def taps(model, ids: list[int]) -> list:
    """Rows of the embedding, after each layer, and the final ones."""
    found = []
    layers = model.encoder.layer if hasattr(model, "encoder") else model.layers
    hooks = [part.register_forward_hook(lambda _module, _inputs, output: found.append(output[0] if isinstance(output, tuple) else output))
             for part in (model.embeddings, *layers)]
    with torch.no_grad():
        found.append(model(torch.tensor([ids])).last_hidden_state)
    for hook in hooks:
        hook.remove()
    return [rounded(rows[0]) for rows in found]


def make_encoder(out: pathlib.Path, model, words, pooling: str, most: int | None = None) -> None:
    whole = save_embedder(out, model, words, pooling, [], most)
    ids = words(TEXTS[-1])["input_ids"]
    record_embedder(out, whole, TEXTS, {"tap_tokens": ids, "taps": taps(model, ids)})


def make_cross_encoder(out: pathlib.Path, model, words) -> None:
    model.save_pretrained(out)
    words.save_pretrained(out)
    pairs = [(QUERY, document) for document in DOCUMENTS]
    joined = [words(*pair, return_token_type_ids=True) for pair in pairs]
    whole = CrossEncoder(str(out), device="cpu")
    record(out, {"query": QUERY, "documents": DOCUMENTS, "tokens": [row["input_ids"] for row in joined],
                 "types": [row["token_type_ids"] for row in joined],
                 "scores": [float(whole.predict([pair])[0]) for pair in pairs]})


def encoders(out: pathlib.Path) -> dict:
    """Makers by name."""
    t = transformers
    bert, roberta = t.BertConfig(**BERT), t.XLMRobertaConfig(**ROBERTA)
    nomic, modern = t.NomicBertConfig(**NOMIC), t.ModernBertConfig(**MODERN)
    one = dict(num_labels=1)
    return {
        "bert": lambda: make_encoder(out / "bert", fill(t.BertModel(bert), 5), word_pieces(), "mean", 24),
        "xlm_roberta": lambda: make_encoder(out / "xlm_roberta", fill(t.XLMRobertaModel(roberta), 6), unigram(), "cls"),
        "nomic_bert": lambda: make_encoder(out / "nomic_bert", fill(t.NomicBertModel(nomic), 7), word_pieces(), "mean"),
        "modernbert": lambda: make_encoder(out / "modernbert", fill(t.ModernBertModel(modern), 8), joined_bytes(), "cls"),
        "bert_pairs": lambda: make_cross_encoder(
            out / "bert_pairs", fill(t.BertForSequenceClassification(t.BertConfig(**BERT, **one)), 9), word_pieces()),
        "xlm_roberta_pairs": lambda: make_cross_encoder(
            out / "xlm_roberta_pairs", fill(t.XLMRobertaForSequenceClassification(t.XLMRobertaConfig(**ROBERTA, **one)), 10), unigram()),
        "modernbert_pairs": lambda: make_cross_encoder(
            out / "modernbert_pairs", fill(t.ModernBertForSequenceClassification(
                t.ModernBertConfig(**MODERN, **one, classifier_pooling="mean")), 11), joined_bytes()),
    }


def to_older_keys(out: pathlib.Path) -> None:
    path = out / "1_Pooling/config.json"
    (path).write_text(json.dumps({
        "word_embedding_dimension": SIZES["hidden_size"], "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False,
        "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False,
        "pooling_mode_weightedmean_tokens": False, "pooling_mode_lasttoken": True, "include_prompt": True}) + "\n")


def record_reranker(out: pathlib.Path, model) -> None:
    words = tokenizer(False, False)
    model.save_pretrained(out)
    words.save_pretrained(out)
    ids = [sum((words(part)["input_ids"] for part in (PREFIX, BODY.format(QUERY, document), SUFFIX)), [])
           for document in DOCUMENTS]
    scores = []
    for row in ids:
        with torch.no_grad():
            logits = model(torch.tensor([row])).logits[0]
        if logits.ndim == 2:
            yes, no = words.convert_tokens_to_ids(ANSWERS)
            scores.append(torch.softmax(logits[-1, [no, yes]], 0)[1].item())
        else:
            scores.append(torch.sigmoid(logits)[0].item())
    record(out, {"query": QUERY, "documents": DOCUMENTS, "tokens": ids, "scores": scores})


def make_decoders(out_folder: pathlib.Path) -> None:
    gemma = fill(transformers.Gemma3TextModel(transformers.Gemma3TextConfig(**GEMMA)), 1)
    dense = [parts.Dense(32, 40, bias=True, activation_function=torch.nn.Tanh()),
             parts.Dense(40, 24, bias=False, activation_function=torch.nn.Identity())]
    out = out_folder / "gemma3"
    record_embedder(out, save_embedder(out, gemma, tokenizer(True, True), "mean", dense), TEXTS)

    qwen = fill(transformers.Qwen3Model(transformers.Qwen3Config(**SIZES, tie_word_embeddings=False)), 2)
    for name, ends in (("qwen3", True), ("qwen3_old", False)):
        out = out_folder / name
        model = save_embedder(out, qwen, tokenizer(False, ends), "lasttoken", [])
        if ends:
            record_embedder(out, model, TEXTS)
            continue
        to_older_keys(out)
        # What the model was trained with: the text and its end.
        ended = SentenceTransformer(str(out_folder / "qwen3"), device="cpu")
        record_embedder(out, ended, TEXTS)

    sizes = dict(SIZES, max_position_embeddings=1024)
    config = transformers.Qwen3Config(**sizes, tie_word_embeddings=False)
    record_reranker(out_folder / "reranker", fill(transformers.Qwen3ForCausalLM(config), 3))
    config = transformers.Qwen3Config(**sizes, num_labels=1)
    record_reranker(out_folder / "classifier", fill(transformers.Qwen3ForSequenceClassification(config), 4))



def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help='encoders, or "decoders"; without one: all')
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "tests/golden/embedding")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    makers = {"decoders": lambda: make_decoders(args.out), **encoders(args.out)}
    for name in args.names or makers:
        makers[name]()


if __name__ == "__main__":
    main()
