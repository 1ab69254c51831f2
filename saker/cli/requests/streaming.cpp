// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/requests/streaming.h"

#include "saker/cli/io/progress.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

// Shorter prompts show no progress bar.
constexpr int kLongPrompt = 2048;

constexpr auto kWait = std::chrono::milliseconds(100);

enum class Part : std::uint8_t { kText, kReasoning, kContent };

struct Piece {
  Part part;
  std::string text;
};

// Reports of the engine's thread that the waiting thread has not taken yet.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Piece> pieces;
  std::pair<int, int> prompt{0, 0};
  std::optional<engine::GenerateResult> result;
  std::exception_ptr error;
  bool ended = false;

  std::function<void(std::string_view)> take(Part part) {
    return [this, part](std::string_view text) {
      const std::lock_guard lock(mutex);
      if (pieces.empty() || pieces.back().part != part) {
        pieces.push_back({part, {}});
      }
      pieces.back().text += text;
      changed.notify_one();
    };
  }
};

engine::EventHandler deliver_to(Mailbox& mailbox, const StreamHooks& hooks) {
  engine::EventHandler handler;
  handler.on_prompt = [&mailbox](int done, int total) {
    const std::lock_guard lock(mailbox.mutex);
    mailbox.prompt = {done, total};
    mailbox.changed.notify_one();
  };
  if (hooks.on_text) {
    handler.on_text = mailbox.take(Part::kText);
  }
  if (hooks.on_reasoning) {
    handler.on_reasoning = mailbox.take(Part::kReasoning);
  }
  if (hooks.on_content) {
    handler.on_content = mailbox.take(Part::kContent);
  }
  handler.on_done = [&mailbox](engine::GenerateResult result) {
    const std::lock_guard lock(mailbox.mutex);
    mailbox.result = std::move(result);
    mailbox.ended = true;
    mailbox.changed.notify_one();
  };
  handler.on_error = [&mailbox](std::exception_ptr error) {
    const std::lock_guard lock(mailbox.mutex);
    mailbox.error = std::move(error);
    mailbox.ended = true;
    mailbox.changed.notify_one();
  };
  return handler;
}

// Shows the progress of a long prompt if no hook does.
class PromptBar {
 public:
  void show(std::pair<int, int> prompt, bool has_text) {
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

void show_piece(const Piece& piece, const StreamHooks& hooks) {
  switch (piece.part) {
    case Part::kText:
      hooks.on_text(piece.text);
      break;
    case Part::kReasoning:
      hooks.on_reasoning(piece.text);
      break;
    case Part::kContent:
      hooks.on_content(piece.text);
      break;
  }
}

// Shows pieces until the request has ended; then throws the first error of showing one.
void show_until_end(
    Mailbox& mailbox, engine::Engine& engine, std::uint64_t id, const StreamHooks& hooks
) {
  PromptBar bar;
  std::exception_ptr failed;
  std::unique_lock lock(mailbox.mutex);
  std::pair<int, int> shown{0, 0};
  while (true) {
    const bool in_time = mailbox.changed.wait_for(lock, kWait, [&] {
      return mailbox.ended || !mailbox.pieces.empty() ||
             (!hooks.on_wait && mailbox.prompt != shown);
    });
    const std::vector<Piece> pieces = std::exchange(mailbox.pieces, {});
    shown = mailbox.prompt;
    const bool ended = mailbox.ended;
    lock.unlock();
    try {
      if (!hooks.on_wait) {
        bar.show(shown, !pieces.empty() || ended);
      } else if (!in_time && !failed) {
        hooks.on_wait(shown.first, shown.second);
      }
      for (std::size_t i = 0; i < pieces.size() && !failed; ++i) {
        show_piece(pieces[i], hooks);
      }
    } catch (...) {
      failed = std::current_exception();
      engine.cancel(id);
    }
    lock.lock();
    if (ended && mailbox.pieces.empty()) {
      break;
    }
  }
  if (failed) {
    std::rethrow_exception(failed);
  }
}

}  // namespace

engine::GenerateResult stream_request(
    engine::Engine& engine, engine::GenerateRequest request, const StreamHooks& hooks
) {
  Mailbox mailbox;
  const std::uint64_t id = engine.submit(std::move(request), deliver_to(mailbox, hooks));
  if (hooks.on_started) {
    hooks.on_started(id);
  }
  show_until_end(mailbox, engine, id, hooks);
  if (mailbox.error) {
    std::rethrow_exception(mailbox.error);
  }
  return std::move(*mailbox.result);
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
