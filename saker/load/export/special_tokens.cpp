// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/special_tokens.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/gguf/gguf_known_tokens.h"
#include "saker/text/eos_tokens.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace saker::load::gguf {
namespace {

using Ids = std::vector<std::int32_t>;

// The tokens before and behind every text.
struct Frame {
  Ids first;
  Ids last;
};

Frame frame_of(const text::Tokenizer& engine) {
  constexpr std::string_view kText = "a";
  const Ids whole = engine.encode(kText);
  const Ids bare = engine.encode(kText, {.add_special_tokens = false});
  const auto found = std::ranges::search(whole, bare);
  require(
      !bare.empty() && !found.empty(),
      ErrorCode::kUnsupported,
      "tokenizer.json: its post_processor changes tokens, which GGUF files cannot describe"
  );
  return {Ids(whole.begin(), found.begin()), Ids(found.end(), whole.end())};
}

void expect_one_at_most(const Ids& ids, std::string_view where, const text::Tokenizer& engine) {
  std::vector<std::string> names;
  for (const std::int32_t id : ids) {
    names.push_back(engine.token_piece(id));
  }
  require(
      ids.size() <= 1,
      ErrorCode::kUnsupported,
      "tokenizer.json: post_processor puts {} {} a text, a GGUF file can have one token there",
      quote(fmt::format("{}", fmt::join(names, " "))),
      where
  );
}

class SpecialTokens {
 public:
  SpecialTokens(
      const SpecialTokenSources& sources,
      std::int64_t rows,
      Metadata& pairs,
      std::vector<std::string>& notes
  )
      : sources_(sources), rows_(rows), pairs_(pairs), notes_(notes) {}

  void add() {
    const Frame frame = frame_of(sources_.engine);
    expect_one_at_most(frame.first, "before", sources_.engine);
    expect_one_at_most(frame.last, "behind", sources_.engine);
    const auto bos = first_token(frame);
    add_id("bos", bos);
    const auto eos = add_ends(frame);
    constexpr std::array<std::pair<const char*, const char*>, 5> kOthers{{
        {"unk", "unknown"},
        {"sep", "seperator"},  // The format's spelling.
        {"pad", "padding"},
        {"cls", "cls"},
        {"mask", "mask"},
    }};
    for (const auto& [ours, gguf] : kOthers) {
      add_id(gguf, named(ours));
    }
    const text::TokenizerConfig& config = sources_.tokenizer_config;
    add_flag("bos", bos && (!frame.first.empty() || config.add_bos_token));
    add_flag("eos", eos && (!frame.last.empty() || config.add_eos_token));
  }

 private:
  void add_id(std::string_view name, std::optional<std::int64_t> id) {
    if (id) {
      pairs_.push_back(
          {fmt::format("tokenizer.ggml.{}_token_id", name), static_cast<std::uint32_t>(*id)}
      );
    }
  }

  void add_flag(std::string_view name, bool is_set) {
    pairs_.push_back({fmt::format("tokenizer.ggml.add_{}_token", name), is_set});
  }

  std::optional<std::int64_t> in_range(std::string_view name, std::int64_t id) {
    if (id >= rows_) {
      notes_.push_back(
          fmt::format("{} is {}, and the model has {} tokens: it is not written", name, id, rows_)
      );
    }
    return id >= 0 && id < rows_ ? std::optional(id) : std::nullopt;
  }

  // The tokenizer's token of this name, else the configuration's id.
  std::optional<std::int64_t> named(std::string_view name) {
    const std::string key = fmt::format("{}_token", name);
    if (const auto text = sources_.tokenizer_config.special_token(key)) {
      if (const auto id = sources_.engine.token_id(*text)) {
        return in_range(key, *id);
      }
    }
    const std::string id_key = fmt::format("{}_token_id", name);
    const Json* text_part = find_member(sources_.config, "text_config");
    for (const Json* config : {&sources_.config, text_part}) {
      const Json* id = config != nullptr ? find_member(*config, id_key) : nullptr;
      if (id != nullptr && !id->is_null() && !id->is_array()) {
        return in_range(id_key, json_int(*config, id_key, -1));
      }
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> first_token(const Frame& frame) {
    const auto bos = named("bos");
    if (frame.first.empty()) {
      return bos;
    }
    const std::int32_t first = frame.first.front();
    require(
        !bos || *bos == first,
        ErrorCode::kUnsupported,
        "tokenizer.json: post_processor puts {} before a text, a GGUF file can have BOS {} there",
        quote(sources_.engine.token_piece(first)),
        quote(bos ? sources_.engine.token_piece(static_cast<std::int32_t>(*bos)) : "")
    );
    return in_range("bos_token", first);
  }

  // EOS is the token behind texts; others that end answers have keys of their own, unless readers
  // know them by their texts.
  std::optional<std::int64_t> add_ends(const Frame& frame) {
    Ids ends = text::load_eos_tokens(sources_.texts, &sources_.engine, sources_.tokenizer_config);
    std::erase_if(ends, [&](std::int32_t id) { return !in_range("eos_token_id", id); });
    auto eos = named("eos");
    if (!frame.last.empty()) {
      eos = in_range("eos_token", frame.last.front());
    } else if (!eos && !ends.empty()) {
      eos = ends.front();
    }
    add_id("eos", eos);
    std::erase_if(ends, [&](std::int32_t id) { return id == eos || is_known(id); });
    constexpr std::array<std::string_view, 2> kKeys{"eot", "eom"};
    for (std::size_t i = 0; i < std::min(ends.size(), kKeys.size()); ++i) {
      add_id(kKeys.at(i), ends[i]);
    }
    if (ends.size() > kKeys.size()) {
      notes_.push_back(fmt::format(
          "the model has {} more tokens that end an answer than a GGUF file can name",
          ends.size() - kKeys.size()
      ));
    }
    return eos;
  }

  bool is_known(std::int32_t id) const {
    return sources_.engine.has_token(id) && is_known_ending(sources_.engine.token_piece(id));
  }

  const SpecialTokenSources& sources_;
  std::int64_t rows_;
  Metadata& pairs_;
  std::vector<std::string>& notes_;
};

}  // namespace

void add_special_tokens(
    const SpecialTokenSources& sources,
    std::int64_t rows,
    Metadata& pairs,
    std::vector<std::string>& notes
) {
  SpecialTokens(sources, rows, pairs, notes).add();
}

}  // namespace saker::load::gguf
