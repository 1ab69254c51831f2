// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/set_command.h"

#include "saker/base/error.h"
#include "saker/base/nearest.h"
#include "saker/base/utf8.h"
#include "saker/cli/io/output.h"
#include "saker/cli/requests/modelfile_options.h"
#include "saker/engine/options/apply_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace saker::cli {
namespace {

using Then = ChatCommand::Then;

std::pair<std::string_view, std::string_view> first_word(std::string_view text) {
  const auto end = text.find_first_of(" \t\n=");
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(word.size());
  const auto rest = text.find_first_not_of(" \t\n=");
  return {word, rest == std::string_view::npos ? std::string_view() : text.substr(rest)};
}

std::string settings_text(const ChatShell& shell) {
  const engine::Request options = shell.chat.options();
  std::string text;
  const auto add = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<13} {}\n", name, value);
  };
  add("sampling", describe_sampling(options.sampling));
  add("max_tokens",
      options.output.max_tokens == engine::kNoTokenLimit
          ? "-1 (until the answer or the context ends)"
          : fmt::format("{}", options.output.max_tokens));
  const bool switches = shell.chat.engine().chat_template() != nullptr &&
                        shell.chat.engine().chat_template()->switches_thinking();
  add("think",
      !options.prompt.think   ? switches ? "auto" : "auto (the model has no switch for it)"
      : *options.prompt.think ? "on"
                              : "off");
  add("seed", fmt::format("{}", options.sampling.seed));
  for (const auto& [name, value] : shell.chat.settings().items()) {
    if (name != "think" && name != "seed" && name != "max_tokens") {
      add(name, value.dump() + " (set)");
    }
  }
  return text;
}

// Changes the look of answers by ollama's words; false for any other word.
bool set_view(ChatShell& shell, std::string_view word) {
  const auto change = [&](bool& setting, bool value) {
    setting = value;
    shell.note(fmt::format("{} is set", word));
    return true;
  };
  if (word == "wordwrap" || word == "nowordwrap") {
    return change(shell.view.wraps, word == "wordwrap");
  }
  if (word == "verbose" || word == "quiet") {
    return change(shell.shows_stats, word == "verbose");
  }
  if (word == "think" || word == "nothink") {
    set_thinking(shell, word == "think" ? "on" : "off");
    return true;
  }
  return false;
}

// `name` is of option_name(); `shown` is the command as it was typed.
Json setting_of(const std::string& name, std::string_view value, const std::string& shown) {
  if (!is_option_name(name)) {
    const auto near = nearest(name, setting_names());
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "{}: there is no such setting{}",
            shown,
            near ? fmt::format("; did you mean {}?", *near) : "; /set alone shows some"
        )
    );
  }
  return option_of(name, std::string(value), shown);
}

}  // namespace

std::vector<std::string> setting_names() {
  std::vector<std::string> names{"system", "verbose", "quiet", "wordwrap", "nowordwrap", "nothink"};
  for (const engine::RequestOption& option : engine::request_options()) {
    if (option.doors.setting) {
      names.emplace_back(option.name);
    }
  }
  return names;
}

Then set_setting(ChatShell& shell, std::string_view argument) {
  auto [name, value] = first_word(argument);
  const bool is_parameter = name == "parameter";
  if (is_parameter) {
    std::tie(name, value) = first_word(value);
  }
  if (name.empty()) {
    print(settings_text(shell));
    return Then::kGoOn;
  }
  if (name == "system") {
    Conversation conversation = shell.chat.conversation();
    conversation.set_system(value);
    shell.chat.set_conversation(std::move(conversation));
    shell.note("the system message is set");
    return Then::kGoOn;
  }
  if (value.empty() && set_view(shell, name)) {
    return Then::kGoOn;
  }
  const std::string shown = fmt::format("/set {}{}", is_parameter ? "parameter " : "", name);
  require(
      !value.empty(),
      ErrorCode::kInvalidArgument,
      "{}: the value is missing; {} default takes a setting back",
      shown,
      shown
  );
  Json settings = shell.chat.settings();
  std::string typed(name);
  std::ranges::replace(typed, '-', '_');
  const std::string own = option_name(typed);
  if (value == "default" && is_option_name(own)) {
    settings.erase(own);
  } else {
    settings.update(setting_of(typed, value, shown));
  }
  shell.chat.set_settings(std::move(settings));
  const auto set = shell.chat.settings().find(own);
  const bool is_set = set != shell.chat.settings().end();
  shell.note(fmt::format(
      "{} = {}; sampling: {}",
      own,
      is_set ? set->dump() : std::string(value),
      describe_sampling(shell.chat.options().sampling)
  ));
  return Then::kGoOn;
}

Then set_thinking(ChatShell& shell, std::string_view argument) {
  if (argument == "show" || argument == "fold") {
    shell.view.thoughts = argument == "show" ? ThoughtView::kShown : ThoughtView::kFolded;
    shell.note(argument == "show" ? "thoughts are shown" : "thoughts are one line");
    return Then::kGoOn;
  }
  Json settings = shell.chat.settings();
  if (argument.empty() || argument == "auto") {
    settings.erase("think");
  } else {
    require(
        argument == "on" || argument == "off",
        ErrorCode::kInvalidArgument,
        "/think: got {}, expected on, off, auto, show or fold",
        quote(argument)
    );
    settings["think"] = argument == "on";
  }
  const auto* chat_template = shell.chat.engine().chat_template();
  const bool switches = chat_template != nullptr && chat_template->switches_thinking();
  if (!argument.empty()) {
    shell.chat.set_settings(std::move(settings));
  }
  const auto thinking = shell.chat.options().prompt.think;
  const std::string_view now = !thinking ? "auto" : *thinking ? "on" : "off";
  shell.note(
      switches
          ? fmt::format("thinking: {}", now)
          : fmt::format("thinking: {}, but the model's chat template has no switch for it", now)
  );
  return Then::kGoOn;
}

Then show(ChatShell& shell, std::string_view argument) {
  const Conversation& conversation = shell.chat.conversation();
  const bool is_all = argument.empty();
  if (is_all || argument == "model" || argument == "info") {
    print(model_facts(shell.chat.model()));
  }
  if (is_all || argument == "settings" || argument == "parameters") {
    print(settings_text(shell));
  }
  if (is_all || argument == "system") {
    const std::string system = conversation.system();
    print_text(fmt::format("  {:<13} {}\n", "system", system.empty() ? "none" : system));
  }
  if (is_all) {
    const int turns = conversation.turns();
    print(fmt::format("  {:<13} {} turn{}\n", "conversation", turns, turns == 1 ? "" : "s"));
  } else if (argument == "messages" || argument == "conversation") {
    for (const Json& message : conversation.messages()) {
      const auto role = message.at("role").get<std::string>();
      print_text(wrapped(shell.terminal, fmt::format("{}: {}\n", role, message_text(message))));
    }
  } else if (argument == "thoughts") {
    const auto& last = shell.chat.last();
    const bool has = last && last->parts && !last->parts->reasoning.empty();
    print_text(
        has ? wrapped(shell.terminal, last->parts->reasoning) + "\n"
            : "no thoughts in the last answer\n"
    );
  } else {
    constexpr std::array<std::string_view, 5> kKnown{
        "model", "info", "settings", "parameters", "system"
    };
    require(
        std::ranges::find(kKnown, argument) != kKnown.end(),
        ErrorCode::kInvalidArgument,
        "/show: got {}, expected one of {}",
        quote(argument),
        kShowWords
    );
  }
  return Then::kGoOn;
}

}  // namespace saker::cli
