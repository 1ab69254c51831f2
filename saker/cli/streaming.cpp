// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/streaming.h"

#include "saker/cli/progress.h"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace saker::cli {
namespace {

// Prompts shorter than this show no progress bar.
constexpr int kLongPrompt = 2048;

// What the engine's thread has reported and the waiting thread has not yet taken.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::string text;
  std::pair<int, int> prompt{0, 0};
  std::optional<engine::GenerateResult> result;
  std::exception_ptr error;
  bool ended = false;
};

engine::EventHandler deliver_to(Mailbox& mailbox) {
  engine::EventHandler handler;
  handler.on_prompt = [&mailbox](int done, int total) {
    const std::lock_guard lock(mailbox.mutex);
    mailbox.prompt = {done, total};
    mailbox.changed.notify_one();
  };
  handler.on_text = [&mailbox](std::string_view piece) {
    const std::lock_guard lock(mailbox.mutex);
    mailbox.text += piece;
    mailbox.changed.notify_one();
  };
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

// Shows pieces until the request has ended; the first failure to show one is thrown after that.
void show_until_end(
    Mailbox& mailbox, engine::Engine& engine, std::uint64_t id, const StreamHooks& hooks
) {
  std::optional<Progress> bar;
  std::exception_ptr failed;
  std::unique_lock lock(mailbox.mutex);
  std::pair<int, int> shown{0, 0};
  while (true) {
    mailbox.changed.wait(lock, [&] {
      return mailbox.ended || !mailbox.text.empty() || mailbox.prompt != shown;
    });
    const std::string text = std::exchange(mailbox.text, {});
    shown = mailbox.prompt;
    const bool ended = mailbox.ended;
    lock.unlock();
    if (!bar && shown.second >= kLongPrompt && text.empty()) {
      bar.emplace(static_cast<std::uint64_t>(shown.second), "prompt");
    }
    if (bar) {
      bar->set(static_cast<std::uint64_t>(shown.first));
    }
    if (!text.empty() || ended || shown.first == shown.second) {
      bar.reset();
    }
    try {
      if (hooks.on_text && !text.empty() && !failed) {
        hooks.on_text(text);
      }
    } catch (...) {
      failed = std::current_exception();
      engine.cancel(id);
    }
    lock.lock();
    if (ended && mailbox.text.empty()) {
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
  const std::uint64_t id = engine.submit(std::move(request), deliver_to(mailbox));
  if (hooks.on_started) {
    hooks.on_started(id);
  }
  show_until_end(mailbox, engine, id, hooks);
  if (mailbox.error) {
    std::rethrow_exception(mailbox.error);
  }
  return std::move(*mailbox.result);
}

std::string describe(const engine::GenerateStats& stats) {
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
      "after {:.2f} s; peak memory {:.0f} MB{}",
      stats.prompt_tokens,
      stats.cached_tokens,
      stats.prompt_tps,
      stats.generation_tokens,
      stats.generation_tps,
      stats.time_to_first_token_s,
      static_cast<double>(stats.peak_memory_bytes) / 1e6,
      drafts
  );
}

}  // namespace saker::cli
