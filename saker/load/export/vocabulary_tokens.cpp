// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/vocabulary_tokens.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace saker::load::gguf {
namespace {

constexpr std::string_view kWordStart = "\xE2\x96\x81";  // Stands for a space in pieces.

bool flag_of(const Json& token, std::string_view name) {
  const Json* flag = find_member(token, name);
  return flag != nullptr && flag->is_boolean() && flag->get<bool>();
}

std::string with_spaces(std::string text) {
  for (auto at = text.find(kWordStart); at != std::string::npos; at = text.find(kWordStart, at)) {
    text.replace(at, kWordStart.size(), " ");
  }
  return text;
}

class TokenCollector {
 public:
  TokenCollector(const TokenSources& sources, std::int64_t rows) : sources_(sources) {
    require(
        rows > 0 && rows <= kMostTokens,
        ErrorCode::kUnsupported,
        "[config] vocab_size is {}, a GGUF file's vocabulary is written for 1 to {}",
        rows,
        kMostTokens
    );
    tokens_.list.resize(static_cast<std::size_t>(rows));
  }

  FileTokens collect() {
    take_vocabulary();
    take_added();
    for (std::size_t id = 0; id < tokens_.list.size(); ++id) {
      finish(id);
    }
    expect_different();
    tokens_.left_out = beyond_.size();
    return std::move(tokens_);
  }

 private:
  static bool is_taken(const FileToken& token) { return token.kind != TokenKind::kUnused; }

  // Puts a token at its id; a token that is there already has the same text.
  FileToken* put(std::string_view text, std::int64_t id) {
    if (std::cmp_greater_equal(id, tokens_.list.size())) {
      beyond_.insert(id);
      return nullptr;
    }
    FileToken& token = tokens_.list[static_cast<std::size_t>(id)];
    if (is_taken(token) && token.text != text) {
      throw Error(
          ErrorCode::kCorruptData,
          fmt::format("tokenizer.json: token {} is {} and {}", id, quote(token.text), quote(text))
      );
    }
    if (!is_taken(token)) {
      token.text = text;
      token.kind = TokenKind::kNormal;
    }
    return &token;
  }

  void take_vocabulary() {
    const Json* model = find_member(sources_.tokenizer, "model");
    const Json* vocabulary = model != nullptr ? find_member(*model, "vocab") : nullptr;
    require(
        vocabulary != nullptr && vocabulary->is_object(),
        ErrorCode::kCorruptData,
        "tokenizer.json: model has no object 'vocab'"
    );
    for (const auto& [text, id] : vocabulary->items()) {
      if (!id.is_number_integer() || id < 0 || id.get<std::int64_t>() < 0) {
        throw Error(
            ErrorCode::kCorruptData,
            fmt::format(
                "tokenizer.json: the id of {} is {}, expected a number from 0",
                quote(text),
                describe_json(id)
            )
        );
      }
      put(text, id.get<std::int64_t>());
    }
  }

  // Tokens that are matched before anything else. The engine knows their ids, and which are
  // special.
  void take_added() {
    const auto take_all = [&](const Json* list) {
      if (list != nullptr && list->is_array()) {
        for (const Json& token : *list) {
          take(token);
        }
      }
    };
    take_all(find_member(sources_.tokenizer, "added_tokens"));
    const Json& others = sources_.config.added_tokens;
    if (const Json* listed = find_member(others, "listed"); listed != nullptr) {
      for (const Json& entry : *listed) {
        take(entry.back());
      }
    }
    take_all(find_member(others, "named"));
    take_all(find_member(others, "extra"));
  }

  void take(const Json& token) {
    const Json* content = find_member(token, "content");
    if (content == nullptr || !content->is_string()) {
      return;
    }
    const auto& text = content->get_ref<const std::string&>();
    const auto id = sources_.engine.token_id(text);
    if (!id || !added_.emplace(*id, flag_of(token, "normalized")).second) {
      return;
    }
    if (FileToken* place = put(text, *id)) {
      place->kind = TokenKind::kUserDefined;
      const bool has_flags =
          flag_of(token, "lstrip") || flag_of(token, "rstrip") || flag_of(token, "single_word");
      tokens_.with_flags += has_flags ? 1 : 0;
    }
  }

  void finish(std::size_t place) {
    const auto id = static_cast<std::int32_t>(place);
    FileToken& token = tokens_.list[place];
    const text::Tokenizer& engine = sources_.engine;
    if (!is_taken(token) && engine.has_token(id)) {
      token = {.text = engine.token_piece(id), .kind = TokenKind::kUserDefined};
    }
    if (!is_taken(token)) {
      token.text = fmt::format("[PAD{}]", id);
    } else if (engine.is_special(id)) {
      token.kind = TokenKind::kControl;
    } else if (token.kind == TokenKind::kUserDefined && is_normalized(id)) {
      token.text = with_spaces(std::move(token.text));  // Files are matched before any step.
    }
  }

  bool is_normalized(std::int32_t id) const {
    const auto found = added_.find(id);
    return found != added_.end() && found->second;
  }

  // Readers find tokens by their texts. Unused ones get other names if needed.
  void expect_different() {
    std::unordered_map<std::string_view, std::size_t> ids;
    ids.reserve(tokens_.list.size());
    for (std::size_t id = 0; id < tokens_.list.size(); ++id) {
      if (is_taken(tokens_.list[id])) {
        const auto [other, is_new] = ids.emplace(tokens_.list[id].text, id);
        if (!is_new) {
          throw Error(
              ErrorCode::kUnsupported,
              fmt::format(
                  "tokenizer.json: tokens {} and {} are both {}, which GGUF files cannot have",
                  other->second,
                  id,
                  quote(tokens_.list[id].text)
              )
          );
        }
      }
    }
    for (FileToken& token : tokens_.list) {
      while (!is_taken(token) && ids.contains(token.text)) {
        token.text += '_';
      }
    }
  }

  const TokenSources& sources_;
  FileTokens tokens_;
  std::unordered_set<std::int64_t> beyond_;
  std::unordered_map<std::int32_t, bool> added_;  // By id; true: matched in normalized text.
};

}  // namespace

FileTokens file_tokens(const TokenSources& sources, std::int64_t rows) {
  return TokenCollector(sources, rows).collect();
}

}  // namespace saker::load::gguf
