// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sources of draft tokens, which one pass then checks: answers keep every bit, unless the request
// accepts by rejection.

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace saker::engine {

// The source of draft tokens.
enum class Speculate : std::uint8_t {
  kDefault,  // The loaded draft, else the model's own MTP head, else none.
  kNone,
  kPromptLookup,  // Repeats what followed the last occurrence of the newest tokens.
  kDraft,         // The draft model.
  kMtp,           // The model's MTP head, or a draft that reads the model's caches.
  kDflash,        // The DFlash draft.
  kEagle3,        // The EAGLE-3 head.
};

// The names in records and options; the default has none.
inline constexpr std::array kSpeculateNames = {
    std::pair<std::string_view, Speculate>{"none", Speculate::kNone},
    std::pair<std::string_view, Speculate>{"prompt-lookup", Speculate::kPromptLookup},
    std::pair<std::string_view, Speculate>{"draft", Speculate::kDraft},
    std::pair<std::string_view, Speculate>{"mtp", Speculate::kMtp},
    std::pair<std::string_view, Speculate>{"dflash", Speculate::kDflash},
    std::pair<std::string_view, Speculate>{"eagle3", Speculate::kEagle3},
};

// Throws kInvalidArgument for other names.
Speculate parse_speculate(std::string_view name);

// Draft tokens that an answer takes.
enum class Acceptance : std::uint8_t {
  kCoupled,    // Tokens that sampling without drafts chooses: the answer keeps every bit.
  kRejection,  // More tokens, for another answer of the same distribution.
};

inline constexpr std::array kAcceptanceNames = {
    std::pair<std::string_view, Acceptance>{"coupled", Acceptance::kCoupled},
    std::pair<std::string_view, Acceptance>{"rejection", Acceptance::kRejection},
};

// Throws kInvalidArgument for other names.
Acceptance parse_acceptance(std::string_view name);

inline constexpr int kAutoDraftDepth = -1;

}  // namespace saker::engine
