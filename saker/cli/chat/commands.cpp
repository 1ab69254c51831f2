// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/commands.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cli/chat/set_command.h"
#include "saker/cli/chat/transcript.h"
#include "saker/cli/io/output.h"

#include <fmt/format.h>

#include <array>

namespace saker::cli {
namespace {

using Then = ChatCommand::Then;

std::string turns_text(int turns) {
  return fmt::format("{} turn{}", turns, turns == 1 ? "" : "s");
}

constexpr std::string_view kMoreHelp =
    "Anything else is a question, also one that begins with a slash and is none of\n"
    "these; a space before the slash makes a question of a command. Alt-Enter, \\ at\n"
    "the end of a line, or three quotation marks before and after a text let it have\n"
    "several lines. Tab completes, arrow keys recall lines, Ctrl-R searches them,\n"
    "Ctrl-C stops an answer. docs/cli.md says more.\n";

Then help(ChatShell& /*shell*/, std::string_view /*argument*/) {
  std::string text;
  for (const ChatCommand& command : chat_commands()) {
    if (!command.help.empty()) {
      const std::string form = fmt::format("/{} {}", command.name, command.argument);
      text += fmt::format("  {:<19} {}\n", form, command.help);
    }
  }
  print(text);
  print(kMoreHelp);
  return Then::kGoOn;
}

Then leave(ChatShell& /*shell*/, std::string_view /*argument*/) {
  return Then::kLeave;
}

Then clear(ChatShell& shell, std::string_view /*argument*/) {
  shell.chat.reset();
  shell.attached.clear();
  shell.note("the conversation is forgotten");
  return Then::kGoOn;
}

Then undo(ChatShell& shell, std::string_view /*argument*/) {
  Conversation conversation = shell.chat.conversation();
  const auto question = conversation.undo();
  require(question.has_value(), ErrorCode::kInvalidArgument, "there is no question to take back");
  shell.chat.set_conversation(std::move(conversation));
  constexpr std::size_t kShown = 60;
  shell.note(fmt::format(
      "taken back: {}; {} left",
      quote(*question, kShown),
      turns_text(shell.chat.conversation().turns())
  ));
  return Then::kGoOn;
}

Then regenerate(ChatShell& shell, std::string_view /*argument*/) {
  const engine::Request options = shell.chat.options();
  if (options.sampling.temperature <= 0.0) {
    shell.note("greedy: the same answer comes again; /set temperature 0.8 makes others");
  }
  shell.answer([&shell](const StreamHooks& hooks) { return shell.chat.ask_again(hooks); });
  return Then::kGoOn;
}

Then compact(ChatShell& shell, std::string_view /*argument*/) {
  const int before = shell.chat.conversation().turns();
  shell.answer([&shell](const StreamHooks& hooks) { return shell.chat.compact(hooks); });
  const int now = shell.chat.conversation().turns();
  if (now < before || before == 1) {
    shell.note(fmt::format("this stands for {} from now on", turns_text(before)));
  }
  return Then::kGoOn;
}

Then save(ChatShell& shell, std::string_view argument) {
  require(!argument.empty(), ErrorCode::kInvalidArgument, "/save FILE: the name is missing");
  const auto path = named_file(argument);
  save_conversation(shell.chat.conversation(), path);
  shell.note(fmt::format(
      "saved {} to {}", turns_text(shell.chat.conversation().turns()), quote(path.string())
  ));
  return Then::kGoOn;
}

Then load(ChatShell& shell, std::string_view argument) {
  require(!argument.empty(), ErrorCode::kInvalidArgument, "/load FILE: the name is missing");
  shell.chat.set_conversation(load_conversation(named_file(argument)));
  shell.note(
      fmt::format("the conversation has {} now", turns_text(shell.chat.conversation().turns()))
  );
  return Then::kGoOn;
}

Then read(ChatShell& shell, std::string_view argument) {
  require(!argument.empty(), ErrorCode::kInvalidArgument, "/read FILE: the name is missing");
  const auto path = named_file(argument);
  const std::string text = read_text(path);
  const auto bad = find_invalid_utf8(text);
  require(!bad, ErrorCode::kInvalidArgument, "{}: is no text in UTF-8", path.string());
  shell.attached += text + (text.ends_with('\n') ? "\n" : "\n\n");
  shell.note(fmt::format("{} bytes go before the next question", text.size()));
  return Then::kGoOn;
}

Then system(ChatShell& shell, std::string_view argument) {
  Conversation conversation = shell.chat.conversation();
  if (!argument.empty()) {
    conversation.set_system(argument == "off" ? "" : argument);
    shell.chat.set_conversation(std::move(conversation));
    shell.note(argument == "off" ? "no system message now" : "the system message is set");
    return Then::kGoOn;
  }
  const std::string text = conversation.system();
  if (text.empty()) {
    shell.note("no system message; /system TEXT sets one");
  } else {
    print_text(wrapped(shell.terminal, text) + "\n");
  }
  return Then::kGoOn;
}

Then change_model(ChatShell& shell, std::string_view argument) {
  if (!argument.empty()) {
    shell.chat.change_model(shell.load(std::string(argument)));
  }
  print(wrapped(shell.terminal, banner(shell.chat.model())));
  return Then::kGoOn;
}

Then show_stats(ChatShell& shell, std::string_view /*argument*/) {
  if (!shell.chat.last()) {
    shell.note("no answer yet");
    return Then::kGoOn;
  }
  const int turns = shell.chat.conversation().turns();
  shell.note(fmt::format("{}; {}", turns_text(turns), describe(shell.chat.last()->stats)));
  return Then::kGoOn;
}

constexpr std::array<ChatCommand, 24> kCommands{{
    {"help", "", "this text", "", false, help},
    {"?", "", "", "", false, help},
    {"set", "[NAME VALUE]", "a setting of answers; /set alone shows them", "", true, set_setting},
    {"system", "[TEXT|off]", "the system message", "off", true, system},
    {"think",
     "[WHAT]",
     "think first: on, off, auto; thoughts: show, fold",
     "on off auto show fold",
     false,
     set_thinking},
    {"model", "[NAME]", "which model answers; the conversation goes on", "", true, change_model},
    {"show", "[WHAT]", "model, settings, system, messages or thoughts", kShowWords, false, show},
    {"stats", "", "tokens and speed of the last answer", "", false, show_stats},
    {"undo", "", "takes the last question and its answer back", "", false, undo},
    {"regen", "", "asks the last question again", "", false, regenerate},
    {"retry", "", "", "", false, regenerate},
    {"regenerate", "", "", "", false, regenerate},
    {"compact", "", "the model sums the conversation up and goes on from there", "", false, compact
    },
    {"clear", "", "forgets the conversation", "", false, clear},
    {"reset", "", "", "", false, clear},
    {"new", "", "", "", false, clear},
    {"save", "FILE", "writes the conversation, as messages of OpenAI's API", "", true, save},
    {"load", "FILE", "goes on with a conversation that was saved", "", true, load},
    {"read", "FILE", "puts a text file before the next question", "", true, read},
    {"bye", "", "leave (or Ctrl-D)", "", false, leave},
    {"quit", "", "", "", false, leave},
    {"exit", "", "", "", false, leave},
    {"q", "", "", "", false, leave},
    {"h", "", "", "", false, help},
}};

}  // namespace

std::span<const ChatCommand> chat_commands() {
  return kCommands;
}

}  // namespace saker::cli
