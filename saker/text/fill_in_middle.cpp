// SPDX-License-Identifier: Apache-2.0
#include "saker/text/fill_in_middle.h"

#include <algorithm>
#include <array>

namespace saker::text {
namespace {

// The tokens of a family of models, in the order in which the prompt has them.
struct MiddleTokens {
  std::string_view before;
  std::string_view after;
  std::string_view middle;  // Empty: the answer follows at once.
  bool begins_with_after = false;
};

constexpr std::array<MiddleTokens, 6> kFamilies{{
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},        // Qwen, CodeGemma, Granite
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},              // StarCoder
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},              // SantaCoder
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},        // DeepSeek
    {"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", true},  // Seed-Coder
    {"[PREFIX]", "[SUFFIX]", "", true},                            // Codestral
}};

}  // namespace

std::optional<std::string> fill_in_middle_prompt(
    const Tokenizer& tokenizer, std::string_view before, std::string_view after
) {
  const auto has = [&](std::string_view token) {
    return token.empty() || tokenizer.token_id(token).has_value();
  };
  const auto found = std::ranges::find_if(kFamilies, [&](const MiddleTokens& family) {
    return has(family.before) && has(family.after) && has(family.middle);
  });
  if (found == kFamilies.end()) {
    return std::nullopt;
  }
  const std::string first = std::string(found->before) + std::string(before);
  const std::string second = std::string(found->after) + std::string(after);
  return (found->begins_with_after ? second + first : first + second) + std::string(found->middle);
}

}  // namespace saker::text
