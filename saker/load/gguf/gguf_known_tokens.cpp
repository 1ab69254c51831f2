// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_known_tokens.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace saker::load::gguf {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kEndings{
    "<|eot_id|>"sv,
    "<|im_end|>"sv,
    "<|end|>"sv,
    "<|return|>"sv,
    "<|call|>"sv,
    "<|flush|>"sv,
    "<|calls|>"sv,
    "<end_of_turn>"sv,
    "<|endoftext|>"sv,
    "</s>"sv,
    "<|eom_id|>"sv,
    "<EOT>"sv,
    "_<EOT>"sv,
    "[EOT]"sv,
    "[EOS]"sv,
    "<|end_of_text|>"sv,
    "<end_of_utterance>"sv,
    "<eos>"sv,
    "<turn|>"sv,
    "<|tool_response>"sv,
    "<｜end▁of▁sentence｜>"sv,
    "[e~["sv,
};

// The role of a token in fill-in-the-middle prompts. Without its key the token is found by these
// texts. `ends`: it also ends answers.
struct Role {
  std::string_view key;
  std::span<const std::string_view> texts;
  bool ends = false;
};

constexpr std::array kPrefix{
    "<|fim_prefix|>"sv,
    "<fim-prefix>"sv,
    "<fim_prefix>"sv,
    "<｜fim▁begin｜>"sv,
    "<PRE>"sv,
    "▁<PRE>"sv,
    "<|code_prefix|>"sv,
    "<|prefix|>"sv,
};
constexpr std::array kFimSuffix{
    "<|fim_suffix|>"sv,
    "<fim-suffix>"sv,
    "<fim_suffix>"sv,
    "<｜fim▁hole｜>"sv,
    "<SUF>"sv,
    "▁<SUF>"sv,
    "<|code_suffix|>"sv,
    "<|suffix|>"sv,
};
constexpr std::array kMiddle{
    "<|fim_middle|>"sv,
    "<fim-middle>"sv,
    "<fim_middle>"sv,
    "<｜fim▁end｜>"sv,
    "<MID>"sv,
    "▁<MID>"sv,
    "<|code_middle|>"sv,
    "<|middle|>"sv,
};
constexpr std::array kPad{"<|fim_pad|>"sv, "<fim-pad>"sv, "<fim_pad>"sv, "<PAD>"sv, "[PAD]"sv};
constexpr std::array kRepository{
    "<|fim_repo|>"sv, "<|repo_name|>"sv, "<fim-repo>"sv, "<REPO>"sv, "<reponame>"sv
};
constexpr std::array kFile{"<|file_sep|>"sv};

constexpr std::array kRoles{
    Role{"fim_pre_token_id", kPrefix},
    Role{"fim_suf_token_id", kFimSuffix},
    Role{"fim_mid_token_id", kMiddle},
    Role{"fim_pad_token_id", kPad, true},
    Role{"fim_rep_token_id", kRepository, true},
    Role{"fim_sep_token_id", kFile, true},
};

// Texts that begin a turn, beside tokens of the form <|name|>.
constexpr std::array kOpenings{
    "<start_of_turn>"sv, "<|turn>"sv, "[INST]"sv, "[/INST]"sv, "[SYSTEM_PROMPT]"sv, "<bos>"sv
};

// True for texts that no trained vocabulary has as normal tokens: patterns separate words from
// signs.
bool is_marker(std::string_view text) {
  const auto encloses = [&](std::string_view open, std::string_view close) {
    return text.size() > open.size() + close.size() && text.starts_with(open) &&
           text.ends_with(close) && text.find_first_of(" \t\n") == std::string_view::npos &&
           std::ranges::any_of(text, [](char c) { return c >= 'A' && c <= 'z'; });
  };
  return encloses("<|", "|>") || encloses("<｜", "｜>") ||
         std::ranges::find(kOpenings, text) != kOpenings.end();
}

// Tokens that are always printed.
constexpr std::array kChannels{"<|channel|>"sv, "<|message|>"sv, "<|start|>"sv, "<|constrain|>"sv};

class Finder {
 public:
  explicit Finder(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  KnownTokens find() {
    for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
      if (vocabulary_.kind(id) == TokenKind::kNormal && is_marker(vocabulary_.token(id))) {
        found_.kinds.emplace_back(id, TokenKind::kControl);
      }
    }
    for (const auto* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
      if (const auto id = vocabulary_.named(key)) {
        end_with(*id);
      }
    }
    for (const Role& role : kRoles) {
      find_role(role);
    }
    for (const std::string_view text : kEndings) {
      if (const auto id = id_of(text)) {
        end_with(*id);
        found_.kinds.emplace_back(*id, TokenKind::kControl);
      }
    }
    for (const std::string_view text : kChannels) {
      if (const auto id = id_of(text)) {
        found_.kinds.emplace_back(*id, TokenKind::kUserDefined);
      }
    }
    const bool calls = ends("<|call|>") || ends("<|calls|>");
    if (calls && (ends("<|return|>") || ends("<|flush|>"))) {
      drop("<|end|>", TokenKind::kUserDefined);  // There it ends only a part of an answer.
    }
    if (ends("<|tool_response>")) {
      drop("</s>", TokenKind::kNormal);
    }
    return std::move(found_);
  }

 private:
  std::optional<std::size_t> id_of(std::string_view text) const {
    return vocabulary_.has(text) ? std::optional(static_cast<std::size_t>(vocabulary_.id(text)))
                                 : std::nullopt;
  }

  void end_with(std::size_t id) {
    if (std::ranges::find(found_.endings, id) == found_.endings.end()) {
      found_.endings.push_back(id);
    }
  }

  bool ends(std::string_view text) const {
    const auto id = id_of(text);
    return id && std::ranges::find(found_.endings, *id) != found_.endings.end();
  }

  void find_role(const Role& role) {
    auto id = vocabulary_.named(role.key);
    for (const std::string_view text : role.texts) {
      if (id) {
        break;
      }
      id = id_of(text);
      if (id) {
        found_.kinds.emplace_back(*id, TokenKind::kControl);
      }
    }
    if (id && role.ends) {
      end_with(*id);
    }
  }

  void drop(std::string_view text, TokenKind kind) {
    if (ends(text)) {
      std::erase(found_.endings, *id_of(text));
      found_.kinds.emplace_back(*id_of(text), kind);
    }
  }

  const Vocabulary& vocabulary_;
  KnownTokens found_;
};

}  // namespace

bool is_known_ending(std::string_view text) {
  return std::ranges::find(kEndings, text) != kEndings.end() ||
         std::ranges::any_of(kRoles, [&](const Role& role) {
           return role.ends && std::ranges::find(role.texts, text) != role.texts.end();
         });
}

KnownTokens find_known_tokens(const Vocabulary& vocabulary) {
  return Finder(vocabulary).find();
}

}  // namespace saker::load::gguf
