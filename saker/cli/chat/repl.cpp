// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/repl.h"

#include "saker/base/error.h"
#include "saker/cli/chat/line_editor.h"
#include "saker/cli/output.h"

#include <fmt/format.h>

#include <algorithm>
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
    "Anything else is a question, also with a / in front of more than one word; a space before\n"
    "the / makes one of a single word. Ctrl-C stops an answer; arrow keys edit and recall lines.\n";

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

std::string_view without_spaces_behind(std::string_view text) {
  const auto last = text.find_last_not_of(" \t");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// Whether the line can only be meant as a command: a slash and letters. Paths, `/no_think Why?` and
// the like are for the model.
bool is_command(std::string_view line) {
  const std::string_view word = without_spaces_behind(line);
  return word.size() > 1 && word.front() == '/' &&
         std::ranges::all_of(word.substr(1), [](char c) { return c >= 'a' && c <= 'z'; });
}

// What the model is asked: without the space that keeps a word from being a command.
std::string_view question_of(std::string_view line) {
  return line.starts_with(" /") ? line.substr(1) : line;
}

// False: leave.
bool run_command(std::string_view line, Conversation& conversation) {
  const std::string_view command = without_spaces_behind(line);
  if (command == "/quit" || command == "/exit") {
    return false;
  }
  if (command == "/help") {
    print(kHelp);
  } else if (command == "/reset") {
    conversation.reset();
    print("the conversation is forgotten\n");
  } else if (command == "/stats") {
    show_stats(conversation);
  } else {
    print(fmt::format(
        "unknown command {}; /help lists them, a space before the / asks it as a question\n",
        command
    ));
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
  hooks.on_text = [](std::string_view piece) { print_text(piece); };
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
    } else if (is_command(line.text)) {
      if (!run_command(line.text, conversation)) {
        return 0;
      }
    } else if (line.text.find_first_not_of(" \t") != std::string::npos) {
      answer(question_of(line.text), conversation, engine, watcher);
    }
  }
}

}  // namespace saker::cli
