// SPDX-License-Identifier: Apache-2.0
#pragma once

// Splits a chat model's answer into what the model thinks and what it says, while the answer comes.
//
// Models write their thoughts between two markers, such as <think> and </think>. An opening marker
// counts at the beginning of an answer only, where the prompt does not already end with one; the
// first closing marker of the same kind ends the thoughts. Everything else is content, so that an
// answer without markers stays the same to the byte. White space around thoughts is left out.
//
// How an answer is cut into pieces changes nothing: joined, the parts are the same. Nothing throws,
// and what is held back is a part of a marker, or white space. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace saker::text {

struct AnswerParts {
  std::string reasoning = {};
  std::string content = {};

  bool operator==(const AnswerParts&) const = default;
};

class ReasoningSplitter {
 public:
  // `prompt_end`: the end of the rendered prompt; after an opening marker the answer begins with
  // thoughts.
  explicit ReasoningSplitter(std::string_view prompt_end);

  // What a piece of whole characters makes final.
  AnswerParts push(std::string_view piece);
  // What was held back. REQUIRES: nothing is pushed afterwards.
  AnswerParts finish();

  // Whether the thoughts have begun and have not ended.
  bool is_thinking() const { return state_ == State::kThinking; }

 private:
  enum class State : std::uint8_t {
    kBeginning,  // An opening marker may still come.
    kThinking,
    kAfter,  // Between thoughts and content: white space, and a header in some formats.
    kContent,
  };

  void begin(char byte, AnswerParts& parts);
  void think(char byte, AnswerParts& parts);
  void add_thought(char byte, AnswerParts& parts);
  void skip(char byte, AnswerParts& parts);

  State state_ = State::kBeginning;
  std::size_t format_ = 0;         // Of the thoughts: a row of the table of markers.
  std::size_t blanks_before_ = 0;  // White space before the first other character.
  bool has_thoughts_ = false;
  std::string held_;    // May become a marker.
  std::string blanks_;  // White space in thoughts that ends them or goes on.
};

}  // namespace saker::text
