// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/split_patterns.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/gguf/gguf_pre_tokenizer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace saker::load::gguf {
namespace {

constexpr std::string_view kDigit = R"(\p{N})";

// The patterns of a pipeline of steps, in order.
class PatternReader {
 public:
  std::vector<std::string> read(const Json& step) {
    if (!step.is_null()) {
      add(step, 0);
    }
    require(
        has_bytes_, ErrorCode::kUnsupported, "tokenizer.json: pre_tokenizer has no step ByteLevel"
    );
    return std::move(patterns_);
  }

 private:
  void add(const Json& step, int depth) {
    constexpr int kMostDepth = 4;
    const Json* list = find_member(step, "pretokenizers");
    const std::string type = step.is_object() ? json_string(step, "type", "") : std::string();
    if (type == "Sequence" && list != nullptr && list->is_array() && depth < kMostDepth) {
      for (const Json& part : *list) {
        add(part, depth + 1);
      }
      return;
    }
    const bool known = !has_bytes_ && (type == "Split"       ? add_split(step)
                                       : type == "Digits"    ? add_digits(step)
                                       : type == "ByteLevel" ? add_bytes(step)
                                                             : false);
    require(
        known,
        ErrorCode::kUnsupported,
        "tokenizer.json: pre_tokenizer has step {}, which GGUF files cannot describe",
        quote(step.dump(-1, ' ', false, Json::error_handler_t::replace))
    );
  }

  bool add_split(const Json& step) {
    const Json* pattern = find_member(step, "pattern");
    const Json* regex = pattern != nullptr ? find_member(*pattern, "Regex") : nullptr;
    const std::string behavior = json_string(step, "behavior", "");
    const bool inverts = json_bool(step, "invert", false);
    // Patterns that match all of a text may also keep their matches alone.
    const bool keeps_matches = behavior == "Removed" && inverts;
    if (regex == nullptr || !regex->is_string() ||
        !(keeps_matches || (behavior == "Isolated" && !inverts))) {
      return false;
    }
    patterns_.push_back(regex->get<std::string>());
    return !keeps_matches || patterns_.back().ends_with(R"(|\s+)");
  }

  bool add_digits(const Json& step) {
    patterns_.emplace_back(kDigit);
    return json_bool(step, "individual_digits", false);
  }

  bool add_bytes(const Json& step) {
    has_bytes_ = true;
    if (json_bool(step, "use_regex", true)) {
      patterns_.emplace_back(find_pre_tokenizer("gpt-2")->patterns.front());
    }
    return !json_bool(step, "add_prefix_space", true);
  }

  std::vector<std::string> patterns_;
  bool has_bytes_ = false;
};

}  // namespace

std::string_view split_name(const Json& tokenizer) {
  const Json* steps = find_member(tokenizer, "pre_tokenizer");
  const std::vector<std::string> patterns =
      PatternReader().read(steps != nullptr ? *steps : Json());
  const Json* model = find_member(tokenizer, "model");
  const bool ignores_merges = model != nullptr && json_bool(*model, "ignore_merges", false);
  const auto rows = pre_tokenizers();
  const auto found = std::ranges::find_if(rows, [&](const PreTokenizer& row) {
    return row.ignore_merges == ignores_merges && std::ranges::equal(row.patterns, patterns);
  });
  require(
      found != rows.end(),
      ErrorCode::kUnsupported,
      "tokenizer.json: text is split by {}{}, which GGUF files have no name for",
      quote(fmt::format("{}", fmt::join(patterns, " and "))),
      ignores_merges ? " with ignore_merges" : ""
  );
  return found->names.front();
}

}  // namespace saker::load::gguf
