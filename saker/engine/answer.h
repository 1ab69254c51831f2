// SPDX-License-Identifier: Apache-2.0
#pragma once

// One running request. Turns a sequence's tokens into text, watches for stop strings and builds the
// result. Threading: the engine's thread.

#include "saker/engine/engine.h"
#include "saker/engine/request.h"
#include "saker/generate/sequence.h"
#include "saker/text/detokenizer.h"
#include "saker/text/reasoning.h"
#include "saker/text/stop_strings.h"

#include <exception>
#include <functional>
#include <optional>
#include <string_view>

namespace saker::engine {

// Returns a saker::Error unchanged, exhausted memory as kCapacity, everything else as kInternal.
// Without memory for that, returns the std::bad_alloc.
std::exception_ptr typed_error(const std::exception_ptr& error) noexcept;

class Answer : public generate::Listener {
 public:
  // Called first at the end, with the sequence's context, cache and counts. May turn the end into a
  // failure.
  using Release = std::function<void(generate::SequenceEnd& end)>;

  struct Setup {
    std::vector<std::int32_t> prompt;
    int rows_before = 0;  // Cached rows before the prompt.
    std::vector<std::string> stop;
    bool with_logprobs = false;
    bool is_chat = false;  // Answers messages, so it may begin with reasoning.
  };

  // Without a tokenizer there are tokens, but no text. Throws kInvalidArgument for stop strings
  // that cannot be matched, kUnsupported for any stop string without a tokenizer.
  Answer(const text::Tokenizer* tokenizer, Setup setup, EventHandler handler, Release release);

  void on_prompt(int done, int total) override;
  bool on_token(const generate::GeneratedToken& token) override;
  void on_end(generate::SequenceEnd end) noexcept override;

 private:
  // Shows the text that is safe to show. Returns true if a stop string was met.
  bool push(std::string_view piece);
  void show(const std::string& text);
  void show_parts(const text::AnswerParts& parts);
  void flush();
  std::exception_ptr finish(generate::SequenceEnd& end) noexcept;
  GenerateStats stats(const generate::SequenceEnd& end) const;

  std::optional<text::Detokenizer> detokenizer_;
  text::StopMatcher stops_;
  std::optional<text::ReasoningSplitter> splitter_;
  EventHandler handler_;
  Release release_;
  GenerateResult result_;
  int rows_before_;
  bool with_logprobs_;
  bool stopped_ = false;
};

}  // namespace saker::engine
