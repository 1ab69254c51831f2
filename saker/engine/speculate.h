// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where draft tokens come from, which one pass then checks: answers stay the same to the bit.

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace saker::engine {

enum class Speculate : std::uint8_t {
  kDefault,  // The draft that is loaded, else the model's own MTP head, else none.
  kNone,
  kPromptLookup,  // What followed the last time the text went like this.
  kDraft,         // The draft model.
  kMtp,           // The model's MTP head, or a draft that reads the model's caches.
  kDflash,        // The DFlash draft.
};

// As records and options spell them; the default has no name.
inline constexpr std::array kSpeculateNames = {
    std::pair<std::string_view, Speculate>{"none", Speculate::kNone},
    std::pair<std::string_view, Speculate>{"prompt-lookup", Speculate::kPromptLookup},
    std::pair<std::string_view, Speculate>{"draft", Speculate::kDraft},
    std::pair<std::string_view, Speculate>{"mtp", Speculate::kMtp},
    std::pair<std::string_view, Speculate>{"dflash", Speculate::kDflash},
};

// Throws kInvalidArgument for other names.
Speculate parse_speculate(std::string_view name);

inline constexpr int kAutoDraftDepth = -1;

}  // namespace saker::engine
