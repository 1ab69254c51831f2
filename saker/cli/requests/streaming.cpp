// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/requests/streaming.h"

#include "saker/cli/io/progress.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace saker::cli {
namespace {

// Shorter prompts show no progress bar.
constexpr int kLongPrompt = 2048;

constexpr auto kWait = std::chrono::milliseconds(100);

// Shows the progress of a long prompt if no hook does.
class PromptBar {
 public:
  void show(const engine::PromptProgress& prompt, bool has_text) {
    const auto [done, total] = prompt;
    if (!bar_ && total >= kLongPrompt && !has_text) {
      bar_.emplace(static_cast<std::uint64_t>(total), "prompt");
    }
    if (bar_) {
      bar_->set(static_cast<std::uint64_t>(done));
    }
    if (has_text || done == total) {
      bar_.reset();
    }
  }

 private:
  std::optional<Progress> bar_;
};

// Hands one event to its hook.
void show(const engine::Event& event, const StreamHooks& hooks) {
  if (const auto* content = std::get_if<text::ContentPiece>(&event.what)) {
    if (hooks.on_content) {
      hooks.on_content(content->text);
    }
  } else if (const auto* reasoning = std::get_if<text::ReasoningPiece>(&event.what)) {
    if (hooks.on_reasoning) {
      hooks.on_reasoning(reasoning->text);
    }
  }
}

}  // namespace

engine::GenerateResult stream_request(
    engine::Engine& engine, engine::Request request, const StreamHooks& hooks
) {
  engine::Stream stream = engine.submit(std::move(request));
  if (hooks.on_started) {
    hooks.on_started(stream.id());
  }
  PromptBar bar;
  engine::PromptProgress prompt;
  while (!stream.ended()) {
    const std::optional<engine::Event> event = stream.next(kWait);
    if (!event) {
      if (hooks.on_wait) {
        hooks.on_wait(prompt.done, prompt.total);
      }
      continue;
    }
    const auto* progress = std::get_if<engine::PromptProgress>(&event->what);
    prompt = progress == nullptr ? prompt : *progress;
    if (!hooks.on_wait) {
      bar.show(prompt, progress == nullptr);
    }
    show(*event, hooks);
  }
  return stream.result();
}

bool fills_context(const engine::GenerateResult& result, const engine::Engine& engine) {
  const std::size_t rows = result.prompt_tokens.size() + result.tokens.size();
  const auto context = static_cast<std::size_t>(engine.facts().context_length);
  return result.finish_reason == engine::FinishReason::kLength && context > 0 && rows >= context;
}

void warn_of_cut(const engine::GenerateResult& result, const engine::Engine& engine) {
  if (result.finish_reason == engine::FinishReason::kDeadline) {
    spdlog::warn("the answer was cut after {} tokens: its time was up", result.tokens.size());
  }
  if (result.finish_reason != engine::FinishReason::kLength) {
    return;
  }
  const bool thinks =
      result.parts && result.parts->content.empty() && !result.parts->reasoning.empty();
  const std::string_view where = thinks ? ", while the model was still thinking" : "";
  if (fills_context(result, engine)) {
    spdlog::warn(
        "the answer was cut where the model's context of {} tokens ends{}",
        engine.facts().context_length,
        where
    );
  } else {
    spdlog::warn(
        "the answer was cut after {} {}{}; --max-tokens allows more, -1 any number",
        result.tokens.size(),
        result.tokens.size() == 1 ? "token" : "tokens",
        where
    );
  }
}

std::string describe(const engine::GenerateStats& stats) {
  const std::string compared =
      stats.compared == 0
          ? ""
          : fmt::format("; {} rows compared with plain decoding, all equal", stats.compared);
  const std::string drafts = stats.rounds == 0 ? ""
                                               : fmt::format(
                                                     "; {}: {} of {} draft tokens right in {} "
                                                     "rounds",
                                                     stats.drafter,
                                                     stats.accepted,
                                                     stats.drafted,
                                                     stats.rounds
                                                 );
  return fmt::format(
      "prompt {} tokens ({} cached), {:.1f} tokens/s; answer {} tokens, {:.1f} tokens/s; first "
      "token "
      "after {:.2f} s; peak memory {:.0f} MB{}{}",
      stats.prompt_tokens,
      stats.cached_tokens,
      stats.prompt_tps,
      stats.generation_tokens,
      stats.generation_tps,
      stats.time_to_first_token_s,
      static_cast<double>(stats.peak_memory_bytes) / 1e6,
      drafts,
      compared
  );
}

}  // namespace saker::cli
