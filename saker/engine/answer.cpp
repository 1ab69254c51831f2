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

std::optional<text::ReasoningSplitter> make_splitter(
    const text::Tokenizer* tokenizer, const Answer::Setup& setup
) {
  if (tokenizer == nullptr || !setup.is_chat) {
    return std::nullopt;
  }
  const std::span<const std::int32_t> prompt(setup.prompt);
  const auto end = prompt.last(std::min(prompt.size(), text::kPromptEndTokens));
  return text::ReasoningSplitter(tokenizer->decode(end));
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

Answer::Answer(const text::Tokenizer* tokenizer, Setup setup, EventHandler handler, Release release)
    : detokenizer_(make_detokenizer(tokenizer, setup.stop)),
      stops_(std::move(setup.stop)),
      splitter_(make_splitter(tokenizer, setup)),
      handler_(std::move(handler)),
      release_(std::move(release)),
      rows_before_(setup.rows_before),
      with_logprobs_(setup.with_logprobs) {
  result_.prompt_tokens = std::move(setup.prompt);
  if (splitter_) {
    result_.parts.emplace();
  }
}

void Answer::on_prompt(int done, int total) {
  if (handler_.on_prompt) {
    handler_.on_prompt(done, total);
  }
}

bool Answer::on_token(const generate::GeneratedToken& token) {
  result_.tokens.push_back(token.id);
  if (with_logprobs_) {
    result_.logprobs.push_back({token.id, token.logprob, token.top});
  }
  if (detokenizer_) {
    stopped_ = push(detokenizer_->add(token.id));
  }
  return !stopped_;
}

void Answer::on_end(generate::SequenceEnd end) noexcept {
  const std::exception_ptr error = finish(end);
  try {
    if (error != nullptr) {
      if (handler_.on_error) {
        handler_.on_error(typed_error(error));
      }
    } else if (handler_.on_done) {
      handler_.on_done(std::move(result_));
    }
  } catch (const std::exception& thrown) {
    spdlog::error("engine: a handler threw at its request's end: {}", thrown.what());
  } catch (...) {
    spdlog::error("engine: a handler threw at its request's end");
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
    attempt([&] { flush(); });
  }
  if (stopped_ || end.reason == generate::EndReason::kStopToken ||
      end.reason == generate::EndReason::kComplete) {
    result_.finish_reason = FinishReason::kStop;
  } else if (end.reason == generate::EndReason::kCancelled) {
    result_.finish_reason = FinishReason::kCancelled;
  } else if (end.reason == generate::EndReason::kDeadline) {
    result_.finish_reason = FinishReason::kDeadline;
  } else {
    result_.finish_reason = FinishReason::kLength;
  }
  return end.error;
}

bool Answer::push(std::string_view piece) {
  const text::StopMatcher::Result found = stops_.push(piece);
  show(found.text);
  return found.stopped;
}

void Answer::show(const std::string& text) {
  result_.text += text;
  if (handler_.on_text && !text.empty()) {
    handler_.on_text(text);
  }
  if (splitter_) {
    show_parts(splitter_->push(text));
  }
}

void Answer::show_parts(const text::AnswerParts& parts) {
  result_.parts->reasoning += parts.reasoning;
  result_.parts->content += parts.content;
  if (handler_.on_reasoning && !parts.reasoning.empty()) {
    handler_.on_reasoning(parts.reasoning);
  }
  if (handler_.on_content && !parts.content.empty()) {
    handler_.on_content(parts.content);
  }
}

void Answer::flush() {
  if (!stopped_ && detokenizer_) {
    // The detokenizer's pending text may complete a stop string.
    stopped_ = push(detokenizer_->finish());
    if (!stopped_) {
      show(stops_.flush());
    }
  }
  if (splitter_) {
    show_parts(splitter_->finish());
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
      .prompt_tps = rate(prompt_tokens - cached_tokens, end.timing.prompt_s),
      .generation_tokens = generated,
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
