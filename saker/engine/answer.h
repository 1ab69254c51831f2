// SPDX-License-Identifier: Apache-2.0
#pragma once

// One choice of a request. Turns a sequence's tokens into text, watches for stop strings, builds the
// result, and tells the stream. Threading: made by any thread, then the engine's alone.

#include "saker/engine/event.h"
#include "saker/engine/request_queue.h"
#include "saker/engine/result.h"
#include "saker/engine/stream_state.h"
#include "saker/generate/sequence.h"
#include "saker/text/detokenizer.h"
#include "saker/text/output/answer_collector.h"
#include "saker/text/output/output_parser.h"
#include "saker/text/stop_strings.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
    std::vector<std::string> stop;
    bool with_logprobs = false;
    bool with_token_events = false;
    // Divides an answer to messages into its parts; null: the text stays whole. Not kept.
    const text::OutputFormat* format = nullptr;
    std::vector<text::Tool> tools = {};
    text::OutputPolicy policy = {};
  };

  // Where its events go.
  struct Target {
    std::shared_ptr<StreamState> stream;
    int choice = 0;

    void push(Event::What what) const { stream->push({choice, std::move(what)}); }

    // As a Failure of a typed error.
    void fail(const std::exception_ptr& error) const noexcept;
  };

  // Without a tokenizer there are tokens, but no text. Throws kInvalidArgument for stop strings
  // that cannot be matched, kUnsupported for any stop string without a tokenizer.
  Answer(
      std::shared_ptr<const text::Tokenizer> tokenizer,
      Setup setup,
      Target target,
      std::unique_ptr<RequestQueue::Place> place
  );

  // Before the sequence runs: `rows_before` cached rows precede the prompt.
  void begin(int rows_before, Release release);

  void on_prompt(int done, int total) override;
  bool on_token(const generate::GeneratedToken& token) override;
  void on_end(generate::SequenceEnd end) noexcept override;

 private:
  // Shows the text that is safe to show. Returns true if a stop string was met.
  bool push(std::string_view piece);
  void show(const std::string& text);
  void show_events(std::vector<text::OutputEvent> events);
  void flush(text::AnswerEnd end);
  void count_reasoning(bool was_before_content);
  std::exception_ptr finish(generate::SequenceEnd& end) noexcept;
  void set_reason(const generate::SequenceEnd& end);
  GenerateStats stats(const generate::SequenceEnd& end) const;

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::optional<text::Detokenizer> detokenizer_;
  text::StopMatcher stops_;
  std::optional<text::OutputParser> parser_;
  text::AnswerCollector parts_;
  Target target_;
  std::unique_ptr<RequestQueue::Place> place_;
  Release release_;
  GenerateResult result_;
  int rows_before_ = 0;
  int reasoning_tokens_ = 0;
  bool with_logprobs_;
  bool with_token_events_;
  bool stopped_ = false;
};

}  // namespace saker::engine
