// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_tokenizer.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/gguf/gguf_pre_tokenizer.h"
#include "saker/load/gguf/gguf_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

using std::string_view_literals::operator""sv;

// Longer pieces get no merges: no vocabulary has them, and their merges would be many.
constexpr std::size_t kMaxMergedBytes = 512;
// Limits of merges and of their total bytes. A vocabulary of 256,000 pieces has half a million
// merges of about eight bytes.
constexpr std::size_t kMaxMerges = std::size_t{1} << 21;
constexpr std::size_t kMaxMergeBytes = std::size_t{1} << 26;
constexpr std::string_view kSpace = "\xE2\x96\x81";  // Stands for a space in pieces.

// A BPE without vocabulary and merges, which `with_lists` adds.
Json bpe_model() {
  return {
      {"type", "BPE"},
      {"dropout", nullptr},
      {"unk_token", nullptr},
      {"continuing_subword_prefix", nullptr},
      {"end_of_word_suffix", nullptr},
      {"fuse_unk", false},
      {"byte_fallback", false},
      {"ignore_merges", false},
  };
}

// The text of a tokenizer whose last member is its model, with the model's vocabulary and merges.
// They are written as text at once: values of JSON take twenty times a list's memory.
std::string with_lists(
    const Json& tokenizer, const Vocabulary& vocabulary, const std::vector<Merge>& merges
) {
  constexpr std::string_view kEnd = "}}";
  // A token takes about 15 bytes, and a merge 20.
  constexpr std::size_t kEntryBytes = 20;
  std::string text = tokenizer.dump();
  text.resize(text.size() - kEnd.size());
  text.reserve(text.size() + kEntryBytes * (vocabulary.size() + merges.size()));
  text += ",\"vocab\":";
  vocabulary.append_ids(text);
  text += ",\"merges\":[";
  bool is_first = true;
  for (const Merge& merge : merges) {
    text += is_first ? "[" : ",[";
    is_first = false;
    append_json_text(text, merge.left);
    text += ',';
    append_json_text(text, merge.right);
    text += ']';
  }
  text += ']';
  text += kEnd;
  return text;
}

// Adds tokens around a text, if any.
Json post_processor(
    const Vocabulary& vocabulary, std::optional<std::size_t> first, std::optional<std::size_t> last
) {
  if (!first && !last) {
    return nullptr;
  }
  Json special = Json::object();
  const auto piece = [&](std::size_t id) -> Json {
    const std::string token(vocabulary.token(id));
    special[token] = {{"id", token}, {"ids", {id}}, {"tokens", {token}}};
    return {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
  };
  const auto framed = [&](std::string_view sequence) {
    Json list = Json::array();
    if (first) {
      list.push_back(piece(*first));
    }
    list.push_back({{"Sequence", {{"id", sequence}, {"type_id", 0}}}});
    if (last) {
      list.push_back(piece(*last));
    }
    return list;
  };
  const Json single = framed("A");
  Json pair = single;
  for (const Json& part : framed("B")) {
    pair.push_back(part);
  }
  return {
      {"type", "TemplateProcessing"},
      {"single", single},
      {"pair", pair},
      {"special_tokens", special},
  };
}

// One of the kinds of vocabulary and its parts of tokenizer.json.
struct Parts {
  Json normalizer;
  Json pre_tokenizer;
  Json decoder;
  Json model = bpe_model();
  std::vector<Merge> merges;
  bool add_bos = false;     // The default if the file doesn't say.
  bool always_bos = false;  // Whatever the file says; some of Gemma 4's are wrong.
};

Parts byte_level(const Header& header, const Vocabulary& vocabulary) {
  const std::string_view name = header.string("tokenizer.ggml.pre").value_or("default");
  const auto pre = find_pre_tokenizer(name);
  require(
      pre.has_value(),
      ErrorCode::kUnsupported,
      "{}: 'tokenizer.ggml.pre' is {}, which we have no patterns for",
      header.what(),
      quote(name)
  );
  Json steps = Json::array();
  for (const std::string_view pattern : pre->patterns) {
    steps.push_back({
        {"type", "Split"},
        {"pattern", {{"Regex", pattern}}},
        {"behavior", "Isolated"},
        {"invert", false},
    });
  }
  const Json bytes = {
      {"type", "ByteLevel"},
      {"add_prefix_space", false},
      {"trim_offsets", false},
      {"use_regex", false},
  };
  steps.push_back(bytes);
  Parts parts;
  parts.pre_tokenizer = {{"type", "Sequence"}, {"pretokenizers", steps}};
  parts.decoder = bytes;
  parts.merges = vocabulary.listed_merges().merges;
  parts.model["ignore_merges"] = pre->ignore_merges;
  parts.add_bos = pre->add_bos;
  return parts;
}

bool starts_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

struct Scored {
  Merge merge;
  double score = 0;
};

// Adds those of `ways` whose pieces the vocabulary has, and their bytes.
void add_known(
    const Vocabulary& vocabulary,
    std::span<const Scored> ways,
    std::vector<Scored>& found,
    std::size_t& bytes
) {
  std::vector<std::string_view> pieces;
  pieces.reserve(2 * ways.size());
  for (const Scored& way : ways) {
    pieces.push_back(way.merge.left);
    pieces.push_back(way.merge.right);
  }
  const std::vector<std::uint8_t> known = vocabulary.has_each(pieces);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (known[2 * i] != 0 && known[2 * i + 1] != 0) {
      found.push_back(ways[i]);
      bytes += ways[i].merge.left.size() + ways[i].merge.right.size();
    }
  }
}

// All ways to join two pieces to one; merges to the pieces with the highest scores come first.
std::vector<Merge> scored_merges(const Header& header, const Vocabulary& vocabulary) {
  const auto scores = header.numbers("tokenizer.ggml.scores");
  require(
      scores.size() == vocabulary.size() &&
          std::ranges::none_of(scores, [](double score) { return std::isnan(score); }),
      ErrorCode::kCorruptData,
      "{}: 'tokenizer.ggml.scores' has {} numbers, expected {} as there are tokens, none NaN",
      header.what(),
      scores.size(),
      vocabulary.size()
  );
  constexpr std::size_t kAtOnce = 256;  // Ways that are looked up together.
  std::vector<Scored> found;
  std::vector<Scored> ways;
  std::size_t bytes = 0;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary.token(id);
    const TokenKind kind = vocabulary.kind(id);
    const bool is_merged = (kind == TokenKind::kNormal || kind == TokenKind::kUserDefined) &&
                           piece.size() <= kMaxMergedBytes && vocabulary.is_first(id);
    for (std::size_t cut = 1; is_merged && cut < piece.size(); ++cut) {
      if (starts_character(piece[cut])) {
        ways.push_back({{piece.substr(0, cut), piece.substr(cut)}, scores[id]});
      }
    }
    if (ways.size() < kAtOnce && id + 1 < vocabulary.size()) {
      continue;
    }
    add_known(vocabulary, ways, found, bytes);
    ways.clear();
    require(
        found.size() <= kMaxMerges && bytes <= kMaxMergeBytes,
        ErrorCode::kCorruptData,
        "{}: the vocabulary's pieces are made of each other in more than {} ways or {} bytes",
        header.what(),
        kMaxMerges,
        kMaxMergeBytes
    );
  }
  std::ranges::stable_sort(found, std::ranges::greater(), [](const Scored& scored) {
    return std::tuple(scored.score, scored.merge.left.size(), scored.merge.right.size());
  });
  std::vector<Merge> merges;
  merges.reserve(found.size());
  for (const Scored& scored : found) {
    merges.push_back(scored.merge);
  }
  return merges;
}

// A BPE of characters, with tokens for the bytes of others.
Json character_model(const Vocabulary& vocabulary) {
  Json model = bpe_model();
  model["byte_fallback"] = true;
  model["fuse_unk"] = true;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.kind(id) == TokenKind::kUnknown) {
      model["unk_token"] = std::string(vocabulary.token(id));
      break;
    }
  }
  return model;
}

Json character_decoders() {
  return Json::array({
      {{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}},
      {{"type", "ByteFallback"}},
      {{"type", "Fuse"}},
  });
}

Json replace_spaces() {
  return {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}};
}

Parts sentence_piece(const Header& header, const Vocabulary& vocabulary) {
  const bool prefix = header.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  Json normalizers = Json::array();
  Json decoders = character_decoders();
  if (prefix) {
    normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  normalizers.push_back(replace_spaces());
  Parts parts;
  parts.normalizer = {{"type", "Sequence"}, {"normalizers", normalizers}};
  parts.decoder = {{"type", "Sequence"}, {"decoders", decoders}};
  parts.model = character_model(vocabulary);
  parts.merges = scored_merges(header, vocabulary);
  parts.add_bos = true;
  return parts;
}

// Gemma 4's: pieces as SentencePiece's, but the file lists their merges. Runs of newlines are
// words, and so is the text between them.
Parts character_pieces(const Vocabulary& vocabulary) {
  Parts parts;
  parts.normalizer = replace_spaces();
  parts.pre_tokenizer = {
      {"type", "Split"},
      {"pattern", {{"Regex", "\n+"}}},
      {"behavior", "Isolated"},
      {"invert", false},
  };
  parts.decoder = {{"type", "Sequence"}, {"decoders", character_decoders()}};
  parts.model = character_model(vocabulary);
  parts.merges = vocabulary.listed_merges().merges;
  parts.always_bos = true;
  return parts;
}

// Templates by name, the unnamed one first.
Json chat_templates(const Header& header) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  const auto plain = header.string(kKey);
  const auto valid = [&](std::string_view text) {
    require(
        !find_invalid_utf8(text),
        ErrorCode::kCorruptData,
        "{}: a chat template is not UTF-8",
        header.what()
    );
    return std::string(text);
  };
  Json named = Json::array();
  const std::string prefix = fmt::format("{}.", kKey);
  for (const std::string& key : header.keys(prefix)) {
    named.push_back(
        {{"name", key.substr(prefix.size())}, {"template", valid(header.string(key).value_or(""))}}
    );
  }
  if (named.empty()) {
    return plain ? Json(valid(*plain)) : Json();
  }
  if (plain) {
    named.insert(named.begin(), Json({{"name", "default"}, {"template", valid(*plain)}}));
  }
  return named;
}

Json tokenizer_config(
    const Header& header, const Vocabulary& vocabulary, bool add_bos, bool add_eos
) {
  Json config = {
      {"tokenizer_class", "PreTrainedTokenizerFast"},
      {"clean_up_tokenization_spaces", false},
      {"add_bos_token", add_bos},
      {"add_eos_token", add_eos},
  };
  constexpr std::array kNames = {
      std::pair("bos_token"sv, "bos_token_id"sv),
      std::pair("eos_token"sv, "eos_token_id"sv),
      std::pair("unk_token"sv, "unknown_token_id"sv),
      std::pair("sep_token"sv, "seperator_token_id"sv),
      std::pair("pad_token"sv, "padding_token_id"sv),
      std::pair("cls_token"sv, "cls_token_id"sv),
      std::pair("mask_token"sv, "mask_token_id"sv),
  };
  for (const auto& [name, key] : kNames) {
    const auto id = vocabulary.named(key);
    // Readers treat a named token as special, but files name "!" for padding. Null suppresses the
    // defaults of tokenizer classes.
    const bool is_end = name == "bos_token" || name == "eos_token";
    const bool is_special = id && (is_end || vocabulary.kind(*id) != TokenKind::kNormal);
    config[std::string(name)] =
        is_special ? Json(std::string(vocabulary.token(*id))) : Json(nullptr);
  }
  Json templates = chat_templates(header);
  if (!templates.is_null()) {
    config["chat_template"] = std::move(templates);
  }
  return config;
}

}  // namespace

std::optional<Vocabulary> read_vocabulary(const Header& header) {
  const auto kind = header.string("tokenizer.ggml.model");
  if (!kind || *kind == "none" || *kind == "no_vocab") {
    return std::nullopt;
  }
  require(
      *kind == "gpt2" || *kind == "llama" || *kind == "gemma4",
      ErrorCode::kUnsupported,
      "{}: 'tokenizer.ggml.model' is {}, expected gpt2, llama or gemma4",
      header.what(),
      quote(*kind)
  );
  return std::optional<Vocabulary>(std::in_place, header);
}

std::vector<std::string> vocabulary_notes(
    const Header& header, const std::optional<Vocabulary>& vocabulary
) {
  std::vector<std::string> notes;
  if (!vocabulary) {
    notes.emplace_back("the file has no vocabulary, so the model has no tokenizer");
    return notes;
  }
  if (vocabulary->repeated() > 0) {
    notes.push_back(
        fmt::format("{} tokens repeat an earlier one and are left out", vocabulary->repeated())
    );
  }
  const bool has_merges = header.string("tokenizer.ggml.model") != "llama";
  const std::size_t unknown = has_merges ? vocabulary->listed_merges().unknown : 0;
  if (unknown > 0) {
    notes.push_back(
        fmt::format("{} merges of tokens that the vocabulary lacks are left out", unknown)
    );
  }
  return notes;
}

std::map<std::string, std::string> tokenizer_files(
    const Header& header, const Vocabulary& vocabulary
) {
  const std::string_view kind = *header.string("tokenizer.ggml.model");
  Parts parts = kind == "gpt2"    ? byte_level(header, vocabulary)
                : kind == "llama" ? sentence_piece(header, vocabulary)
                                  : character_pieces(vocabulary);
  const auto bos = vocabulary.named("bos_token_id");
  const auto eos = vocabulary.named("eos_token_id");
  const bool add_bos =
      bos &&
      (parts.always_bos || header.boolean("tokenizer.ggml.add_bos_token").value_or(parts.add_bos));
  const bool add_eos = eos && header.boolean("tokenizer.ggml.add_eos_token").value_or(false);
  Json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", vocabulary.added_tokens()},
      {"normalizer", std::move(parts.normalizer)},
      {"pre_tokenizer", std::move(parts.pre_tokenizer)},
      {"post_processor",
       post_processor(vocabulary, add_bos ? bos : std::nullopt, add_eos ? eos : std::nullopt)},
      {"decoder", std::move(parts.decoder)},
  };
  tokenizer["model"] = std::move(parts.model);
  return {
      {"tokenizer.json", with_lists(tokenizer, vocabulary, parts.merges)},
      {"tokenizer_config.json", tokenizer_config(header, vocabulary, add_bos, add_eos).dump(2)},
  };
}

void add_token_ids(const Vocabulary& vocabulary, Json& config) {
  if (const auto bos = vocabulary.named("bos_token_id")) {
    config["bos_token_id"] = *bos;
  }
  const std::vector<std::size_t>& endings = vocabulary.endings();
  if (endings.size() == 1) {
    config["eos_token_id"] = endings.front();
  } else if (!endings.empty()) {
    config["eos_token_id"] = endings;
  }
}

}  // namespace saker::load::gguf
