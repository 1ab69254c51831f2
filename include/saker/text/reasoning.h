// SPDX-License-Identifier: Apache-2.0
#pragma once

// Splits a chat model's answer into reasoning and content while it is generated.
//
// Models write their reasoning between two markers, such as <think> and </think>. An opening marker
// counts only at the beginning of an answer, and only if the prompt does not already end with one.
// The first closing marker of the same kind ends the reasoning. Everything else is content, so an
// answer without markers stays the same byte for byte. White space around the reasoning is dropped.
//
// The joined parts do not depend on how the answer was cut into pieces. Nothing throws. Only a part
// of a marker, or white space, is ever held back. One thread at a time.

#include "saker/text/answer_parts.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {

// The last tokens of a prompt decide if its answer begins with reasoning. Longer than any marker.
inline constexpr std::size_t kPromptEndTokens = 32;

// Takes an answer piece by piece.
class ReasoningSplitter {
 public:
  // `prompt_end` is the end of the rendered prompt. If it ends with an opening marker, the answer
  // begins with reasoning.
  explicit ReasoningSplitter(std::string_view prompt_end);

  // The text that a piece of whole characters makes final.
  AnswerParts push(std::string_view piece);
  // The text still held back. REQUIRES: no push() afterwards.
  AnswerParts finish();

  // True if the reasoning has begun and not ended.
  bool is_thinking() const { return state_ == State::kThinking; }

  // True if reasoning runs, or has ended and the content's header is still to come.
  bool is_before_content() const;

  // The markers that open reasoning at the beginning of an answer.
  static std::vector<std::string_view> opening_markers();

 private:
  enum class State : std::uint8_t {
    kBeginning,  // An opening marker may still come.
    kThinking,
    kAfter,  // Between reasoning and content: white space, and in some formats a header.
    kContent,
  };

  void begin(char byte, AnswerParts& parts);
  void think(char byte, AnswerParts& parts);
  void add_thought(char byte, AnswerParts& parts);
  void skip(char byte, AnswerParts& parts);

  State state_ = State::kBeginning;
  std::size_t format_ = 0;         // Index in the table of markers.
  std::size_t blanks_before_ = 0;  // White space before the first other character.
  bool has_thoughts_ = false;
  std::string held_;    // May become a marker.
  std::string blanks_;  // White space in the reasoning that may end it or continue it.
};

}  // namespace saker::text
