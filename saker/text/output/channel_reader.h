// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers that are a list of messages, each in a channel (gpt-oss):
//   <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…
// Channel analysis is reasoning, all others are content. A message to a declared tool is a call,
// whatever its channel. Broken headers are content.

#include "saker/text/output/event_writer.h"
#include "saker/text/output/value_reader.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace saker::text {

class ChannelReader {
 public:
  // `writer` outlives the reader.
  explicit ChannelReader(EventWriter& writer) : writer_(writer) {}

  // An earlier answer's message is continued. REQUIRES: nothing came before.
  void continue_message(Begun part);
  void feed(char byte);
  void finish(AnswerEnd end);

  bool is_thinking() const { return state_ == State::kBody && is_analysis_; }

  // True until a message of the content has begun.
  bool is_before_content() const { return !has_content_; }

 private:
  enum class State : std::uint8_t {
    kStart,    // A header may begin here.
    kHeader,   // Up to <|message|>.
    kBody,     // A message's text.
    kCall,     // The arguments of a call.
    kBetween,  // Behind a message, or behind the arguments.
  };

  void start(char byte);
  void header(char byte);
  void take_header();
  void body(char byte);
  void call(char byte);
  void between(char byte);
  void show(std::string_view text);
  void begin_text();

  EventWriter& writer_;
  ValueNotation notation_;
  State state_ = State::kStart;
  bool is_analysis_ = false;
  bool has_content_ = false;
  std::string held_;    // May become a marker, or is one with a header.
  std::string raw_;     // The call so far.
  std::string blanks_;  // Behind a message.
  std::optional<ValueReader> value_;
};

}  // namespace saker::text
