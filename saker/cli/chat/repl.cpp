// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/repl.h"

#include "saker/base/error.h"
#include "saker/cli/chat/line_editor.h"
#include "saker/cli/output.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace saker::cli {
namespace {

constexpr std::string_view kHelp =
    "  /help   this text\n"
    "  /reset  forget the conversation\n"
    "  /stats  tokens and speed of the last answer\n"
    "  /quit   leave (or Ctrl-D)\n"
    "Anything else is a question. Ctrl-C stops an answer; arrow keys edit and recall lines.\n";

// The history file in the user's state folder; empty when there is none to write.
std::filesystem::path history_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && *state == '/') {
    folder = state;
  } else if (home != nullptr && *home == '/') {
    folder = std::filesystem::path(home) / ".local" / "state";
  } else {
    return {};
  }
  folder /= "saker";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  return failed ? std::filesystem::path{} : folder / "history";
}

void show_stats(const Conversation& conversation) {
  if (!conversation.stats()) {
    print("no answer yet\n");
    return;
  }
  print(fmt::format("{} turns; {}\n", conversation.turns(), describe(*conversation.stats())));
}

// False: leave.
bool run_command(std::string_view line, Conversation& conversation) {
  if (line == "/quit" || line == "/exit") {
    return false;
  }
  if (line == "/help") {
    print(kHelp);
  } else if (line == "/reset") {
    conversation.reset();
    print("the conversation is forgotten\n");
  } else if (line == "/stats") {
    show_stats(conversation);
  } else {
    print(fmt::format("unknown command {}; /help lists them\n", line));
  }
  return true;
}

void answer(
    std::string_view question,
    Conversation& conversation,
    engine::Engine& engine,
    InterruptWatcher& watcher
) {
  watcher.set_handler({});
  StreamHooks hooks;
  hooks.on_text = [](std::string_view piece) { print(piece); };
  hooks.on_started = [&](std::uint64_t id) {
    watcher.set_handler([&engine, id] { engine.cancel(id); });
  };
  try {
    const engine::GenerateResult result = conversation.ask(question, hooks);
    watcher.end_program();
    print(result.text.ends_with('\n') ? "" : "\n");
    if (result.finish_reason == engine::FinishReason::kCancelled) {
      print("[stopped]\n");
    } else if (result.finish_reason == engine::FinishReason::kLength) {
      const std::size_t rows = result.prompt_tokens.size() + result.tokens.size();
      print(
          rows >= static_cast<std::size_t>(engine.facts().context_length)
              ? "[cut where the model's context ends; /reset begins anew]\n"
              : "[cut at the token limit; --max-tokens raises it]\n"
      );
    }
  } catch (const Error& error) {
    watcher.end_program();
    if (error.code() == ErrorCode::kInternal) {
      throw;
    }
    print(fmt::format("error: {}\n", error.what()));
  }
}

}  // namespace

int run_repl(Conversation& conversation, engine::Engine& engine, InterruptWatcher& watcher) {
  LineEditor editor(history_path());
  print(fmt::format(
      "Saker, model {}. Ask something; /help shows the commands.\n", engine.facts().model_type
  ));
  bool interrupted = false;
  while (true) {
    const Line line = editor.read("> ");
    if (line.kind == Line::Kind::kEnd || (line.kind == Line::Kind::kInterrupted && interrupted)) {
      return 0;
    }
    interrupted = line.kind == Line::Kind::kInterrupted;
    if (line.kind == Line::Kind::kNotUtf8) {
      print("error: the line is not UTF-8\n");
    } else if (interrupted) {
      print("(Ctrl-C again or Ctrl-D to leave)\n");
    } else if (line.text.starts_with('/')) {
      if (!run_command(line.text, conversation)) {
        return 0;
      }
    } else if (line.text.find_first_not_of(" \t") != std::string::npos) {
      answer(line.text, conversation, engine, watcher);
    }
  }
}

}  // namespace saker::cli
