// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_vocabulary.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/gguf/gguf_known_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

// An object that is built without look-ups. nlohmann's ordered objects search for each added key,
// which is too slow for vocabularies. REQUIRES: keys differ.
class FastObject {
 public:
  explicit FastObject(std::size_t size) { entries().reserve(size); }

  void add(std::string_view key, Json value) {
    entries().emplace_back(std::string(key), std::move(value));
  }

  Json take() { return std::move(object_); }

 private:
  std::vector<std::pair<const std::string, Json>>& entries() { return object_; }

  Json::object_t object_;
};

}  // namespace

Vocabulary::Vocabulary(const Header& header)
    : header_(header), tokens_(header.strings("tokenizer.ggml.tokens")) {
  constexpr std::size_t kMaxTokens = std::size_t{1} << 24;
  require(
      !tokens_.empty() && tokens_.size() <= kMaxTokens,
      ErrorCode::kCorruptData,
      "{}: 'tokenizer.ggml.tokens' has {} tokens, expected 1 to 2^24",
      header_.what(),
      tokens_.size()
  );
  read_kinds();
  ids_.reserve(tokens_.size());
  is_first_.reserve(tokens_.size());
  for (std::size_t id = 0; id < tokens_.size(); ++id) {
    if (find_invalid_utf8(tokens_[id])) {
      throw Error(
          ErrorCode::kCorruptData,
          fmt::format("{}: token {} is {}, expected UTF-8", header_.what(), id, quote(tokens_[id]))
      );
    }
    is_first_.push_back(ids_.emplace(tokens_[id], static_cast<std::int64_t>(id)).second);
  }
  KnownTokens known = find_known_tokens(*this);
  for (const auto& [id, kind] : known.kinds) {
    kinds_[id] = kind;
  }
  endings_ = std::move(known.endings);
}

std::optional<std::size_t> Vocabulary::named(std::string_view key) const {
  const auto id = header_.integer(fmt::format("tokenizer.ggml.{}", key));
  if (id && *id >= 0 && static_cast<std::uint64_t>(*id) < tokens_.size()) {
    return static_cast<std::size_t>(*id);
  }
  if (header_.string("tokenizer.ggml.model") != "llama") {
    return std::nullopt;
  }
  constexpr std::array<std::string_view, 3> kFirst{
      "unknown_token_id", "bos_token_id", "eos_token_id"
  };
  const auto place = static_cast<std::size_t>(std::ranges::find(kFirst, key) - kFirst.begin());
  const bool is_special =
      place < kFirst.size() && place < tokens_.size() &&
      (kinds_[place] == TokenKind::kControl || kinds_[place] == TokenKind::kUnknown);
  return is_special ? std::optional(place) : std::nullopt;
}

Json Vocabulary::as_object() const {
  FastObject object(ids_.size());
  for (std::size_t id = 0; id < tokens_.size(); ++id) {
    if (is_first(id)) {
      object.add(tokens_[id], id);
    }
  }
  return object.take();
}

Json Vocabulary::added_tokens() const {
  Json added = Json::array();
  for (std::size_t id = 0; id < tokens_.size(); ++id) {
    const TokenKind kind = kinds_[id];
    const bool special = kind == TokenKind::kControl || kind == TokenKind::kUnknown;
    if ((!special && kind != TokenKind::kUserDefined) || tokens_[id].empty() || !is_first(id)) {
      continue;
    }
    added.push_back({
        {"id", id},
        {"content", std::string(tokens_[id])},
        {"single_word", false},
        {"lstrip", false},
        {"rstrip", false},
        {"normalized", false},
        {"special", special},
    });
  }
  return added;
}

void Vocabulary::read_kinds() {
  const auto numbers = header_.numbers("tokenizer.ggml.token_type");
  require(
      numbers.empty() || numbers.size() == tokens_.size(),
      ErrorCode::kCorruptData,
      "{}: 'tokenizer.ggml.token_type' has {} entries, expected {} as there are tokens",
      header_.what(),
      numbers.size(),
      tokens_.size()
  );
  kinds_.assign(tokens_.size(), TokenKind::kNormal);
  for (std::size_t id = 0; id < numbers.size(); ++id) {
    const double number = numbers[id];
    kinds_[id] = number >= 1 && number <= 6 ? static_cast<TokenKind>(number) : TokenKind::kNormal;
  }
}

}  // namespace saker::load::gguf
