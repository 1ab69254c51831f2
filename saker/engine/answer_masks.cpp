// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/answer_masks.h"

#include "saker/base/error.h"
#include "saker/text/detokenizer.h"
#include "saker/text/reasoning.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::engine {

namespace {

constexpr std::size_t kWordBits = 32;

// By kind: the option's name, for messages.
constexpr std::array<std::string_view, 3> kNames{"json_schema", "regex", "grammar"};

void set_bit(std::span<std::uint32_t> bits, std::int32_t token, bool value) {
  const auto index = static_cast<std::size_t>(token);
  if (token < 0 || index / kWordBits >= bits.size()) {
    return;
  }
  const std::uint32_t bit = std::uint32_t{1} << (index % kWordBits);
  std::uint32_t& word = bits[index / kWordBits];
  word = value ? word | bit : word & ~bit;
}

// The reasoning before the content of an answer to messages.
class Reasoning {
 public:
  Reasoning(const text::Tokenizer& tokenizer, std::string_view prompt_end, bool may_open)
      : splitter_(prompt_end), detokenizer_(tokenizer) {
    if (may_open && !splitter_.is_thinking()) {
      for (const std::string_view marker : text::ReasoningSplitter::opening_markers()) {
        if (const auto id = tokenizer.token_id(marker)) {
          openers_.push_back(*id);
        }
      }
    }
  }

  bool is_free() const { return splitter_.is_before_content(); }

  // Tokens that may open reasoning now.
  std::span<const std::int32_t> openers() const { return openers_; }

  // Takes a token of the reasoning, or one that opens it.
  void accept(std::int32_t token) {
    openers_.clear();
    splitter_.push(detokenizer_.add(token));
  }

 private:
  text::ReasoningSplitter splitter_;
  text::Detokenizer detokenizer_;
  std::vector<std::int32_t> openers_;
};

class AnswerMask final : public sample::TokenMask {
 public:
  AnswerMask(
      text::Constraint constraint,
      std::optional<Reasoning> reasoning,
      std::vector<std::int32_t> ignored_ends
  )
      : constraint_(std::move(constraint)),
        reasoning_(std::move(reasoning)),
        ignored_ends_(std::move(ignored_ends)) {}

  bool fill(std::span<std::uint32_t> bits) override {
    if (reasoning_ && reasoning_->is_free()) {
      std::ranges::fill(bits, ~std::uint32_t{0});
      return true;
    }
    const bool may_end = constraint_.fill(bits);
    for (const std::int32_t end : ignored_ends_) {
      set_bit(bits, end, false);
    }
    if (reasoning_) {
      for (const std::int32_t opener : reasoning_->openers()) {
        set_bit(bits, opener, true);
      }
    }
    return may_end;
  }

  bool accept(std::int32_t token) override {
    if (reasoning_) {
      const auto openers = reasoning_->openers();
      if (reasoning_->is_free() || std::ranges::find(openers, token) != openers.end()) {
        reasoning_->accept(token);
        return true;
      }
      reasoning_.reset();
    }
    return constraint_.accept(token);
  }

 private:
  text::Constraint constraint_;
  std::optional<Reasoning> reasoning_;
  std::vector<std::int32_t> ignored_ends_;
};

}  // namespace

std::unique_ptr<sample::TokenMask> AnswerMasks::make(
    const Request& request, std::span<const std::int32_t> prompt
) {
  if (!request.output.constraint) {
    return nullptr;
  }
  const text::Tokenizer& tokenizer = prompts_->tokenizer_for_text();
  const auto kind = static_cast<std::size_t>(request.output.constraint->kind);
  text::Constraint constraint(
      trie(tokenizer),
      static_cast<text::ConstraintKind>(kind),
      request.output.constraint->text,
      kNames.at(kind)
  );
  std::optional<Reasoning> reasoning;
  if (request.prompt.messages) {
    const auto end = prompt.last(std::min(prompt.size(), text::kPromptEndTokens));
    reasoning.emplace(tokenizer, tokenizer.decode(end), request.prompt.think.value_or(true));
  }
  return std::make_unique<AnswerMask>(
      std::move(constraint),
      std::move(reasoning),
      request.output.ignore_eos ? prompts_->eos_tokens() : std::vector<std::int32_t>()
  );
}

const text::TokenTrie& AnswerMasks::trie(const text::Tokenizer& tokenizer) {
  const std::scoped_lock lock(mutex_);
  if (!trie_) {
    trie_.emplace(tokenizer, prompts_->eos_tokens());
  }
  return *trie_;
}

}  // namespace saker::engine
