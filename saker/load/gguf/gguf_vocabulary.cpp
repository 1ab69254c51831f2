// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_vocabulary.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/gguf/gguf_known_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 24;

bool is_escaped(char byte) {
  return static_cast<unsigned char>(byte) < 0x20 || byte == '"' || byte == '\\';
}

std::uint32_t hash_of(std::string_view text) {
  const std::uint64_t hash = std::hash<std::string_view>{}(text);
  return static_cast<std::uint32_t>(hash ^ hash >> 32U);
}

}  // namespace

PieceIndex::PieceIndex(std::size_t count)
    : slots_(std::bit_ceil(2 * std::max<std::size_t>(count, 1))) {}

bool PieceIndex::add(const Pieces& pieces, std::size_t id) {
  const std::uint32_t hash = hash_of(pieces[id]);
  Slot& slot = slots_[slot_of(pieces, pieces[id], hash)];
  if (slot.id != 0) {
    return false;
  }
  slot = {.hash = hash, .id = static_cast<std::uint32_t>(id) + 1};
  size_ += 1;
  return true;
}

std::optional<std::size_t> PieceIndex::find(const Pieces& pieces, std::string_view text) const {
  const Slot& slot = slots_[slot_of(pieces, text, hash_of(text))];
  return slot.id == 0 ? std::nullopt : std::optional<std::size_t>(slot.id - 1);
}

std::size_t PieceIndex::slot_of(const Pieces& pieces, std::string_view text, std::uint32_t hash)
    const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].id != 0 && (slots_[at].hash != hash || pieces[slots_[at].id - 1] != text)) {
    at = (at + 1) & mask;
  }
  return at;
}

std::vector<std::uint8_t> PieceIndex::find_each(
    const Pieces& pieces, std::span<const std::string_view> texts
) const {
  constexpr std::size_t kAtOnce = 64;
  std::array<std::uint32_t, kAtOnce> hashes{};
  std::array<const Slot*, kAtOnce> slots{};
  const std::size_t mask = slots_.size() - 1;
  std::vector<std::uint8_t> found(texts.size());
  for (std::size_t first = 0; first < texts.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, texts.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(texts[first + i]);
      __builtin_prefetch(&slots_[hashes[i] & mask]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t at = hashes[i] & mask;
      while (slots_[at].id != 0 && slots_[at].hash != hashes[i]) {
        at = (at + 1) & mask;
      }
      slots[i] = &slots_[at];
      if (slots[i]->id != 0) {
        __builtin_prefetch(&pieces[slots[i]->id - 1]);
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (slots[i]->id != 0) {
        __builtin_prefetch(pieces[slots[i]->id - 1].data());
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view text = texts[first + i];
      const std::uint32_t id = slots[i]->id;
      // A different text with the same hash may lie before it.
      found[first + i] =
          id != 0 && (pieces[id - 1] == text || slots_[slot_of(pieces, text, hashes[i])].id != 0);
    }
  }
  return found;
}

void append_json_text(std::string& json, std::string_view text) {
  json += '"';
  if (std::ranges::none_of(text, is_escaped)) {
    json += text;
  } else {
    const std::string escaped = Json(std::string(text)).dump();
    json.append(escaped, 1, escaped.size() - 2);
  }
  json += '"';
}

Vocabulary::Vocabulary(const Header& header)
    : header_(header),
      tokens_(header.strings("tokenizer.ggml.tokens")),
      ids_(std::min(tokens_.size(), kMaxTokens)) {
  require(
      !tokens_.empty() && tokens_.size() <= kMaxTokens,
      ErrorCode::kCorruptData,
      "{}: 'tokenizer.ggml.tokens' has {} tokens, expected 1 to 2^24",
      header_.what(),
      tokens_.size()
  );
  read_kinds();
  is_first_.reserve(tokens_.size());
  for (std::size_t id = 0; id < tokens_.size(); ++id) {
    if (find_invalid_utf8(tokens_[id])) {
      throw Error(
          ErrorCode::kCorruptData,
          fmt::format("{}: token {} is {}, expected UTF-8", header_.what(), id, quote(tokens_[id]))
      );
    }
    is_first_.push_back(ids_.add(tokens_, id));
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

const ListedMerges& Vocabulary::listed_merges() const {
  if (merges_) {
    return *merges_;
  }
  ListedMerges listed;
  const std::vector<std::string_view> texts = header_.strings("tokenizer.ggml.merges");
  listed.merges.reserve(texts.size());
  constexpr std::size_t kAtOnce = 256;
  std::string wholes;
  std::vector<std::string_view> parts;
  for (std::size_t first = 0; first < texts.size(); first += kAtOnce) {
    const auto some = std::span(texts).subspan(first, std::min(kAtOnce, texts.size() - first));
    wholes.clear();
    parts.clear();
    for (const std::string_view text : some) {
      const std::size_t space = text.find(' ', 1);
      parts.push_back(text.substr(0, space));
      parts.push_back(space < text.size() ? text.substr(space + 1) : "");
      wholes.append(parts[parts.size() - 2]).append(parts.back());
    }
    const std::size_t pairs = parts.size();
    std::string_view rest = wholes;
    for (std::size_t i = 0; i < pairs; i += 2) {
      parts.push_back(rest.substr(0, parts[i].size() + parts[i + 1].size()));
      rest.remove_prefix(parts.back().size());
    }
    const std::vector<std::uint8_t> known = has_each(parts);
    for (std::size_t i = 0; i < pairs; i += 2) {
      if (known[i] != 0 && known[i + 1] != 0 && known[pairs + i / 2] != 0) {
        listed.merges.push_back({parts[i], parts[i + 1]});
      } else {
        listed.unknown += 1;
      }
    }
  }
  return merges_.emplace(std::move(listed));
}

void Vocabulary::append_ids(std::string& json) const {
  json += '{';
  for (std::size_t id = 0; id < tokens_.size(); ++id) {
    if (is_first(id)) {
      json += id == 0 ? "" : ",";  // The first token is the first of its text.
      append_json_text(json, tokens_[id]);
      fmt::format_to(std::back_inserter(json), ":{}", id);
    }
  }
  json += '}';
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
