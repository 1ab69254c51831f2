// SPDX-License-Identifier: Apache-2.0
#include "saker/text/vocabulary_files.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace saker::text {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 26;
constexpr std::string_view kVocabulary = "vocab.json";
constexpr std::string_view kMerges = "merges.txt";

// Reads one pair per line; a first line may give the format's version.
Json read_merges(const ModelTexts& texts) {
  const std::string text = texts.read(kMerges, kMaxBytes);
  Json merges = Json::array();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (line.empty() || line.starts_with("#version")) {
      continue;
    }
    const std::size_t space = line.find(' ');
    require(
        space != std::string_view::npos && line.find(' ', space + 1) == std::string_view::npos &&
            !find_invalid_utf8(line),
        ErrorCode::kCorruptData,
        "{}: got the line {}, expected two pieces and a space between them",
        texts.shown(kMerges),
        quote(line)
    );
    merges.push_back(
        Json::array({std::string(line.substr(0, space)), std::string(line.substr(space + 1))})
    );
  }
  return merges;
}

Json bytes_step(bool uses_pattern) {
  return {
      {"type", "ByteLevel"},
      {"add_prefix_space", false},
      {"trim_offsets", true},
      {"use_regex", uses_pattern},
  };
}

Json words_of(const TokenizerClass& kind) {
  if (kind.word_pattern.empty()) {
    return bytes_step(true);
  }
  const Json split = {
      {"type", "Split"},
      {"pattern", {{"Regex", kind.word_pattern}}},
      {"behavior", "Isolated"},
      {"invert", false},
  };
  return {{"type", "Sequence"}, {"pretokenizers", Json::array({split, bytes_step(false)})}};
}

}  // namespace

bool has_vocabulary_files(const ModelTexts& texts, const TokenizerClass& kind) {
  return kind.sets_prefix_space && texts.has(kVocabulary) && texts.has(kMerges);
}

std::string read_vocabulary_files(const ModelTexts& texts, const TokenizerClass& kind) {
  Json model = {
      {"type", "BPE"},
      {"dropout", nullptr},
      {"unk_token", nullptr},
      {"continuing_subword_prefix", nullptr},
      {"end_of_word_suffix", nullptr},
      {"fuse_unk", false},
      {"byte_fallback", false},
      {"ignore_merges", false},
  };
  model["vocab"] = texts.read_json(kVocabulary);
  model["merges"] = read_merges(texts);
  Json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", Json::array()},
      {"normalizer", kind.composes ? Json({{"type", "NFC"}}) : Json()},
      {"pre_tokenizer", words_of(kind)},
      {"post_processor", nullptr},
      {"decoder", bytes_step(true)},
  };
  tokenizer["model"] = std::move(model);
  return tokenizer.dump();
}

}  // namespace saker::text
