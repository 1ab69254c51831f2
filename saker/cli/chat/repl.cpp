// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/repl.h"

#include "saker/base/characters/printable.h"
#include "saker/base/error.h"
#include "saker/cli/chat/answer_view.h"
#include "saker/cli/chat/commands.h"
#include "saker/cli/chat/line_editor.h"
#include "saker/cli/chat/set_command.h"
#include "saker/cli/chat/terminal.h"
#include "saker/cli/chat/word_wrap.h"
#include "saker/cli/io/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

using Ask = std::function<engine::GenerateResult(const StreamHooks& hooks)>;

// The history file in the user's state folder; empty if there is no such folder.
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

// Completions of the Tab key.
LineEditor::Words completions() {
  LineEditor::Words words;
  for (const ChatCommand& command : chat_commands()) {
    const std::string name = fmt::format("/{}", command.name);
    if (command.argument == "FILE") {
      words.files += name + " \n";
    }
    words.phrases += command.argument.empty() ? name + "\n" : name + " \n";
    std::string_view rest = command.words;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      words.phrases += fmt::format("{} {}\n", name, word);
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
  }
  for (const std::string& setting : setting_names()) {
    words.phrases += fmt::format("/set {} \n", setting);
  }
  return words;
}

class Repl {
 public:
  Repl(Chat& chat, LoadChatModel load, InterruptWatcher& watcher)
      : chat_(chat),
        watcher_(watcher),
        shell_{
            .chat = chat,
            .terminal = terminal_,
            .load = std::move(load),
            .answer = [this](const Ask& ask) { answer(ask); },
        },
        editor_(history_path()) {
    editor_.prepare(
        completions(),
        terminal_.has_colors() ? LineEditor::Prompts::kColored : LineEditor::Prompts::kPlain
    );
  }

  int run() {
    print(wrapped(terminal_, "Saker · " + banner(chat_.model())));
    note("Ask something; /? lists the commands, Ctrl-D leaves.");
    bool interrupted = false;
    while (true) {
      const Line line = editor_.read("> ");
      if (line.kind == Line::Kind::kEnd || (line.kind == Line::Kind::kInterrupted && interrupted)) {
        return 0;
      }
      interrupted = line.kind == Line::Kind::kInterrupted;
      if (line.kind == Line::Kind::kNotUtf8) {
        complain("the line is not UTF-8");
      } else if (interrupted) {
        print("(Ctrl-C again or Ctrl-D to leave)\n");
      } else if (!take(line.text)) {
        return 0;
      }
    }
  }

 private:
  // Runs one line; false: leave the chat.
  bool take(const std::string& text) {
    const ChatLine line = parse_line(text);
    try {
      switch (line.kind) {
        case ChatLine::Kind::kNothing:
          break;
        case ChatLine::Kind::kCommand:
          return line.command->run(shell_, line.text) == ChatCommand::Then::kGoOn;
        case ChatLine::Kind::kUnknown:
          explain_unknown(line);
          break;
        case ChatLine::Kind::kQuestion:
          ask(line.text);
          break;
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInternal) {
        throw;
      }
      complain(error.what());
    }
    return true;
  }

  void explain_unknown(const ChatLine& line) {
    const std::string near =
        line.command == nullptr ? "" : fmt::format("; did you mean /{}?", line.command->name);
    note(fmt::format(
        "unknown command /{}{}; /? lists them, a space before the / asks it as a question",
        line.text,
        near
    ));
  }

  void ask(std::string_view text) {
    const std::string question = std::exchange(shell_.attached, {}) + std::string(text);
    if (const int left = chat_.make_room(question); left > 0) {
      note(fmt::format(
          "[the oldest {} left: the model's context of {} tokens is full; /compact would sum them "
          "up]",
          left == 1 ? "turn has" : fmt::format("{} turns have", left),
          chat_.engine().facts().context_length
      ));
    }
    answer([&](const StreamHooks& hooks) { return chat_.ask(question, hooks); });
    answer_calls();
  }

  // The person at the terminal runs the tools.
  void answer_calls() {
    for (auto calls = chat_.open_calls(); !calls.empty(); calls = chat_.open_calls()) {
      std::vector<std::string> results;
      for (const text::ToolCall& call : calls) {
        note(fmt::format(
            "[calls {} {}; type its result, Ctrl-D skips it]", call.name, call.arguments
        ));
        const Line line = editor_.read("= ");
        if (line.kind != Line::Kind::kText) {
          note("[no result]");
          return;
        }
        results.push_back(line.text);
      }
      answer([&](const StreamHooks& hooks) { return chat_.answer_calls(results, hooks); });
    }
  }

  void answer(const Ask& ask) {
    watcher_.set_handler({});
    AnswerView view(terminal_, shell_.view);
    StreamHooks hooks;
    hooks.on_reasoning = [&](std::string_view piece) { view.think(piece); };
    hooks.on_content = [&](std::string_view piece) { view.say(piece); };
    hooks.on_wait = [&](int done, int total) { view.wait(done, total); };
    hooks.on_started = [&](std::uint64_t id) {
      watcher_.set_handler([this, id] { chat_.engine().cancel(id); });
    };
    try {
      const engine::GenerateResult result = ask(hooks);
      watcher_.end_program();
      view.end();
      explain_end(result, view);
    } catch (...) {
      watcher_.end_program();
      view.end();
      throw;
    }
  }

  void explain_end(const engine::GenerateResult& result, const AnswerView& view) {
    if (result.finish_reason == engine::FinishReason::kCancelled) {
      note("[stopped]");
    } else if (fills_context(result, chat_.engine())) {
      note(
          "[cut where the model's context ends; the oldest turns leave before the next question, "
          "/clear begins anew]"
      );
    } else if (result.finish_reason == engine::FinishReason::kLength) {
      note("[cut at the token limit; /set max_tokens -1 takes it away]");
    } else if (!view.has_answer() && result.finish_reason != engine::FinishReason::kToolCalls) {
      note("[an empty answer]");
    }
    if (shell_.shows_stats) {
      note(describe(result.stats));
    }
  }

  void note(std::string_view text) { print_note(terminal_, text); }

  void complain(std::string_view text) {
    constexpr std::string_view kError = "error:";
    const std::string line = fmt::format("{} {}", kError, printable_line(text));
    print_styled(terminal_.red(kError) + wrapped(terminal_, line).substr(kError.size()) + "\n");
  }

  Chat& chat_;
  InterruptWatcher& watcher_;
  Terminal terminal_;
  ChatShell shell_;
  LineEditor editor_;
};

}  // namespace

int run_repl(Chat& chat, const LoadChatModel& load, InterruptWatcher& watcher) {
  return Repl(chat, load, watcher).run();
}

}  // namespace saker::cli
