// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/answer.h"

#include "saker/base/error.h"
#include "saker/base/files/file_failure.h"
#include "saker/base/memory.h"
#include "saker/cache/summary.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace saker::engine {
namespace {

std::optional<text::Detokenizer> make_detokenizer(
    const text::Tokenizer* tokenizer, const std::vector<std::string>& stop
) {
  require(
      tokenizer != nullptr || stop.empty(),
      ErrorCode::kUnsupported,
      "stop strings need text, and the model has no tokenizer.json"
  );
  return tokenizer == nullptr ? std::nullopt : std::optional<text::Detokenizer>(*tokenizer);
}

std::optional<text::OutputParser> make_parser(
    const text::Tokenizer* tokenizer, Answer::Setup& setup
) {
  if (tokenizer == nullptr || setup.format == nullptr) {
    return std::nullopt;
  }
  const std::span<const std::int32_t> prompt(setup.prompt);
  const auto end = prompt.last(std::min(prompt.size(), text::kPromptEndTokens));
  return text::OutputParser(
      *setup.format, tokenizer->decode(end), std::move(setup.tools), setup.policy
  );
}

// What the end of a sequence means for its text.
text::AnswerEnd answer_end(generate::EndReason reason, bool stopped) {
  const bool is_whole = stopped || reason == generate::EndReason::kStopToken ||
                        reason == generate::EndReason::kComplete;
  return is_whole ? text::AnswerEnd::kWhole : text::AnswerEnd::kCut;
}

// May fail for want of memory.
std::exception_ptr as_typed(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error&) {
    return std::current_exception();
  } catch (const std::exception& other) {
    if (const auto what = out_of_memory_reason(other)) {
      return std::make_exception_ptr(Error(ErrorCode::kCapacity, std::string(*what)));
    }
    if (const auto what = file_failure(other)) {
      return std::make_exception_ptr(Error(ErrorCode::kNotFound, *what));
    }
    return std::make_exception_ptr(Error(ErrorCode::kInternal, other.what()));
  } catch (...) {
    return std::make_exception_ptr(Error(ErrorCode::kInternal, "unknown failure"));
  }
}

}  // namespace

std::exception_ptr typed_error(const std::exception_ptr& error) noexcept {
  try {
    return as_typed(error);
  } catch (...) {
    return std::current_exception();
  }
}

void Answer::Target::fail(const std::exception_ptr& error) const noexcept {
  try {
    push(Failure{typed_error(error)});
  } catch (const std::exception& thrown) {
    spdlog::error("engine: a request's end is lost: {}", thrown.what());
  }
}

Answer::Answer(
    std::shared_ptr<const text::Tokenizer> tokenizer,
    Setup setup,
    Target target,
    std::unique_ptr<RequestQueue::Place> place
)
    : tokenizer_(std::move(tokenizer)),
      detokenizer_(make_detokenizer(tokenizer_.get(), setup.stop)),
      stops_(std::move(setup.stop)),
      parser_(make_parser(tokenizer_.get(), setup)),
      target_(std::move(target)),
      place_(std::move(place)),
      with_logprobs_(setup.with_logprobs),
      with_token_events_(setup.with_token_events) {
  result_.prompt_tokens = std::move(setup.prompt);
}

void Answer::begin(int rows_before, Release release) {
  rows_before_ = rows_before;
  release_ = std::move(release);
}

void Answer::on_prompt(int done, int total) {
  place_->begin();
  target_.push(PromptProgress{done, total});
}

bool Answer::on_token(const generate::GeneratedToken& token) {
  result_.tokens.push_back(token.id);
  if (with_logprobs_) {
    result_.logprobs.push_back({token.id, token.logprob, token.top});
  }
  if (with_token_events_) {
    target_.push(TokenEvent{
        .id = token.id,
        .bytes = tokenizer_ == nullptr ? std::string() : tokenizer_->token_bytes(token.id),
        .logprob = token.logprob,
        .top = token.top,
        .drafted = token.drafted,
    });
  }
  if (detokenizer_) {
    const bool was_before_content = parser_ && parser_->is_before_content();
    stopped_ = push(detokenizer_->add(token.id));
    count_reasoning(was_before_content);
  }
  if (parser_ && parser_->is_complete()) {
    stopped_ = true;  // After the one call that is allowed.
  }
  return !stopped_;
}

void Answer::count_reasoning(bool was_before_content) {
  if (was_before_content || (parser_ && parser_->is_before_content())) {
    ++reasoning_tokens_;
  }
}

void Answer::on_end(generate::SequenceEnd end) noexcept {
  const std::exception_ptr error = finish(end);
  if (error != nullptr) {
    target_.fail(error);
    return;
  }
  try {
    target_.push(End{std::make_shared<const GenerateResult>(std::move(result_))});
  } catch (...) {
    target_.fail(std::current_exception());
  }
}

// Runs each step even if earlier ones failed. Returns why the request failed, or null.
std::exception_ptr Answer::finish(generate::SequenceEnd& end) noexcept {
  const auto attempt = [&end](const auto& step) {
    try {
      step();
    } catch (...) {
      end.error = end.error == nullptr ? std::current_exception() : end.error;
    }
  };
  attempt([&] { result_.stats = stats(end); });
  attempt([&] { release_(end); });  // May fail the request as well.
  if (end.reason != generate::EndReason::kFailed) {
    attempt([&] { flush(answer_end(end.reason, stopped_)); });
  }
  set_reason(end);
  return end.error;
}

void Answer::set_reason(const generate::SequenceEnd& end) {
  if (end.reason == generate::EndReason::kStopToken && !stopped_) {
    result_.stop_token = end.last_choice;
  }
  result_.is_constraint_done = end.reason == generate::EndReason::kComplete && !stopped_;
  if (answer_end(end.reason, stopped_) == text::AnswerEnd::kWhole) {
    const bool has_calls = result_.parts && !result_.parts->tool_calls.empty();
    result_.finish_reason = has_calls ? FinishReason::kToolCalls : FinishReason::kStop;
  } else if (end.reason == generate::EndReason::kCancelled) {
    result_.finish_reason = FinishReason::kCancelled;
  } else if (end.reason == generate::EndReason::kDeadline) {
    result_.finish_reason = FinishReason::kDeadline;
  } else {
    result_.finish_reason = FinishReason::kLength;
  }
}

bool Answer::push(std::string_view piece) {
  text::StopMatcher::Result found = stops_.push(piece);
  show(found.text);
  if (found.stopped) {
    result_.stop_string = std::move(found.stop);
  }
  return found.stopped;
}

void Answer::show(const std::string& text) {
  result_.text += text;
  if (parser_) {
    show_events(parser_->push(text));
  } else if (!text.empty()) {
    target_.push(text::ContentPiece{text});
  }
}

void Answer::show_events(std::vector<text::OutputEvent> events) {
  for (text::OutputEvent& event : events) {
    parts_.add(event);
    std::visit([this](auto& piece) { target_.push(std::move(piece)); }, event);
  }
}

void Answer::flush(text::AnswerEnd end) {
  if (!stopped_ && detokenizer_) {
    // The detokenizer's pending text may complete a stop string.
    stopped_ = push(detokenizer_->finish());
    if (!stopped_) {
      show(stops_.flush());
    }
  }
  if (parser_) {
    show_events(parser_->finish(stopped_ ? text::AnswerEnd::kWhole : end));
    result_.parts = parts_.take();
  }
}

GenerateStats Answer::stats(const generate::SequenceEnd& end) const {
  const auto rate = [](double count, double seconds) {
    return seconds > 0.0 ? count / seconds : 0.0;
  };
  const int cached_tokens = std::max(0, end.cached_tokens - rows_before_);
  const auto prompt_tokens = static_cast<int>(result_.prompt_tokens.size());
  const auto generated = static_cast<int>(result_.tokens.size());
  // A stop token was chosen too; the first token came with the prompt.
  const int steps = generated - (end.reason == generate::EndReason::kStopToken ? 0 : 1);
  return {
      .prompt_tokens = prompt_tokens,
      .cached_tokens = cached_tokens,
      .preemptions = end.preemptions,
      .prompt_tps = rate(prompt_tokens - cached_tokens, end.timing.prompt_s),
      .generation_tokens = generated,
      .reasoning_tokens = reasoning_tokens_,
      .generation_tps = rate(steps, end.timing.generation_s),
      .time_to_first_token_s = end.timing.queue_s + end.timing.prompt_s,
      .peak_memory_bytes = peak_memory_bytes(),
      .drafter = std::string(generate::drafter_name(end.drafter)),
      .rounds = end.speculation.rounds,
      .drafted = end.speculation.drafted,
      .accepted = end.speculation.accepted,
      .compared = end.speculation.compared,
      .caches = end.cache ? cache::cache_summary(*end.cache) : "",
  };
}

}  // namespace saker::engine
