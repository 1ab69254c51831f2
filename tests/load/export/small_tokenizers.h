// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small tokenizers of the two kinds that GGUF files are written for, and what is written of them.

#include "saker/base/json/json.h"
#include "saker/load/export/model_metadata.h"
#include "saker/load/export/vocabulary_metadata.h"
#include "saker/text/model_texts.h"

#include "tests/load/export/small_configs.h"
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace saker::load::gguf {

using Files = std::map<std::string, Json>;

inline Json added(std::int32_t id, const std::string& text, bool special, const Json& more = {}) {
  Json token = {
      {"id", id},
      {"content", text},
      {"single_word", false},
      {"lstrip", false},
      {"rstrip", false},
      {"normalized", false},
      {"special", special},
  };
  if (more.is_object()) {
    token.update(more);
  }
  return token;
}

// Bytes; no tokens have ids 6 and 7.
inline Json byte_tokenizer() {
  const Json bytes = {
      {"type", "ByteLevel"},
      {"add_prefix_space", false},
      {"trim_offsets", false},
      {"use_regex", true},
  };
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", {added(8, "<|end|>", true), added(9, "<u>", false)}},
      {"normalizer", nullptr},
      {"pre_tokenizer", bytes},
      {"post_processor", nullptr},
      {"decoder", bytes},
      {"model",
       {{"type", "BPE"},
        {"vocab",
         {{"a", 0}, {"b", 1}, {"ab", 2}, {"Ġ", 3}, {"Ġab", 4}, {"1", 5}, {"<|end|>", 8}, {"<u>", 9}}
        },
        {"merges", Json::array({"a b", "Ġ ab"})}}},
  };
}

// Ids of pieces behind the 256 bytes.
enum Piece : std::int32_t {
  kUnk,
  kBos,
  kEos,
  kFirstByte,
  kSpace = 259,
  kH,
  kI,
  kHi,
  kSpaceHi,
  kSpaceH
};

// "▁h" is made before "hi".
inline Json piece_tokenizer() {
  const std::string space = "\xE2\x96\x81";
  Json vocabulary = {{"<unk>", kUnk}, {"<s>", kBos}, {"</s>", kEos}};
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[fmt::format("<0x{:02X}>", byte)] = kFirstByte + byte;
  }
  vocabulary[space] = kSpace;
  vocabulary["h"] = kH;
  vocabulary["i"] = kI;
  vocabulary["hi"] = kHi;
  vocabulary[space + "hi"] = kSpaceHi;
  vocabulary[space + "h"] = kSpaceH;
  const Json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", space}};
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens",
       {added(kUnk, "<unk>", true), added(kBos, "<s>", true), added(kEos, "</s>", true)}},
      {"normalizer",
       {{"type", "Sequence"}, {"normalizers", {{{"type", "Prepend"}, {"prepend", space}}, replace}}}
      },
      {"pre_tokenizer", nullptr},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single",
         {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
          {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
        {"pair", {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
        {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {kBos}}, {"tokens", {"<s>"}}}}}}}},
      {"decoder", nullptr},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"byte_fallback", true},
        {"fuse_unk", true},
        {"vocab", vocabulary},
        {"merges",
         Json::array(
             {Json::array({space + "h", "i"}),
              Json::array({space, "hi"}),
              Json::array({space, "h"}),
              Json::array({"h", "i"})}
         )}}},
  };
}

inline text::ModelTexts texts_of(const Files& files) {
  std::map<std::string, text::ModelTexts::Text, std::less<>> texts;
  for (const auto& [name, json] : files) {
    texts.emplace(name, json.is_string() ? json.get<std::string>() : json.dump());
  }
  return {"folder", std::move(texts)};
}

inline VocabularyMetadata written(
    const Files& files, int rows = 10, const Json& config = Json::object()
) {
  const ModelMetadata model = model_metadata(small_config("llama", {{"vocab_size", rows}}));
  return vocabulary_metadata(texts_of(files), config, model);
}

inline VocabularyMetadata written(const Json& tokenizer, int rows = 10) {
  return written(Files{{"tokenizer.json", tokenizer}}, rows);
}

inline VocabularyMetadata written_pieces(const Json& tokenizer) {
  return written(tokenizer, kSpaceH + 1);
}

}  // namespace saker::load::gguf
