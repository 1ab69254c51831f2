// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/typed_line.h"

#include "saker/cli/options/command_tree.h"
#include "saker/cli/usage/synonyms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

bool is_option(std::string_view arg) {
  return arg.size() > 1 && arg.front() == '-' && arg != "--";
}

// `saker help run` means `saker run --help`, `saker version` means `saker --version`.
std::vector<std::string> with_flags_for_words(std::vector<std::string> args) {
  if (args.empty()) {
    return args;
  }
  if (args.front() == "help") {
    std::rotate(args.begin(), args.begin() + 1, args.end());
    args.back() = "--help";
  } else if (args.front() == "version" || args.front() == "-V") {
    args.front() = "--version";
  }
  return args;
}

// `saker -m MODEL score` means `saker score -m MODEL`, and `saker -m MODEL` means `saker run -m
// MODEL`.
std::vector<std::string> with_model_behind(const CLI::App& app, std::vector<std::string> args) {
  const bool is_joined = !args.empty() && args.front().starts_with("--model=");
  const bool is_model = !args.empty() && (args.front() == "-m" || args.front() == "--model");
  const std::ptrdiff_t words = is_joined ? 1 : 2;
  if (std::ssize(args) < words || (!is_joined && !is_model)) {
    return args;
  }
  if (std::ssize(args) == words || is_option(args[static_cast<std::size_t>(words)])) {
    args.insert(args.begin(), "run");
    return args;
  }
  auto command_end = args.begin() + words + 1;  // An unknown command is reported later.
  const CLI::App* command = find_command(app, *(command_end - 1));
  while (command != nullptr && command_end != args.end()) {
    command = find_command(*command, *command_end);
    command_end += command == nullptr ? 0 : 1;
  }
  std::rotate(args.begin(), args.begin() + words, command_end);
  return args;
}

// Reads everything after the command's name.
class ArgumentReader {
 public:
  ArgumentReader(TypedLine& line, std::vector<std::string>& args, std::size_t at)
      : line_(line), args_(args), at_(at) {}

  void read() {
    while (at_ < args_.size() && args_[at_] != "--") {
      const std::string& arg = args_[at_++];
      if (is_option(arg)) {
        read_option(arg);
      } else {
        line_.texts.push_back(arg);
        line_.arguments.push_back(arg);
      }
    }
    if (line_.command->get_option_no_throw(std::string(kRestOption)) != nullptr) {
      read_rest();
    }
    for (; at_ < args_.size(); ++at_) {
      line_.arguments.push_back(args_[at_]);
      if (args_[at_] != "--") {
        line_.texts.push_back(args_[at_]);
      }
    }
    line_.arguments.insert(line_.arguments.begin(), output_.begin(), output_.end());
    line_.arguments.insert(line_.arguments.begin(), model_.begin(), model_.end());
  }

 private:
  // Words behind `--` become values of one option, so that none can be taken for another argument.
  void read_rest() {
    for (++at_; at_ < args_.size(); ++at_) {
      if (args_[at_].empty()) {  // CLI11 takes `--name=` for a name alone.
        line_.arguments.insert(line_.arguments.end(), {std::string(kRestOption), ""});
      } else {
        line_.arguments.push_back(fmt::format("{}={}", kRestOption, args_[at_]));
      }
    }
  }

  void read_option(const std::string& arg) {
    const std::size_t equals = arg.starts_with("--") ? arg.find('=') : std::string::npos;
    std::string name = arg.substr(0, equals);
    std::string value = equals == std::string::npos ? std::string() : arg.substr(equals + 1);
    bool has_value = equals != std::string::npos;
    const CLI::Option* option = find(name, value, has_value);
    if (option == nullptr || is_model(*option)) {
      const std::string meant =
          option != nullptr ? std::string(kModelArgument) : option_meant(*line_.command, name);
      if (meant == kModelArgument || meant == kOutputArgument) {
        take_argument(meant, value, has_value);
        return;
      }
      option = meant.empty() ? nullptr : line_.command->get_option_no_throw(meant);
      name = meant.empty() ? name : meant;
    }
    if (option == nullptr) {
      if (line_.unknown_option.empty()) {
        line_.unknown_option = name;
      }
      line_.arguments.push_back(arg);
      return;
    }
    line_.options.push_back(option);
    add(name, value, has_value, takes_value(*option));
  }

  // Also finds a short name with its value attached, as in -n20.
  const CLI::Option* find(std::string& name, std::string& value, bool& has_value) const {
    constexpr std::size_t kShort = 2;
    const CLI::Option* option = line_.command->get_option_no_throw(name);
    if (option != nullptr || name.starts_with("--") || name.size() == kShort) {
      return option;
    }
    const std::string letter = name.substr(0, kShort);
    option = line_.command->get_option_no_throw(letter);
    const std::string meant = option == nullptr ? option_meant(*line_.command, letter) : letter;
    const CLI::Option* known =
        option == nullptr ? line_.command->get_option_no_throw(meant) : option;
    if (known == nullptr || !option_meant(*line_.command, name).empty()) {
      return nullptr;
    }
    if (takes_value(*known)) {
      value = name.substr(kShort);
      has_value = true;
      name = meant;
    }
    return known;  // CLI11 separates flags that share a dash.
  }

  bool is_model(const CLI::Option& option) const {
    return option.check_name(std::string(kModelArgument)) || option.check_name("PATH");
  }

  // A short name and its value become one word.
  void add(const std::string& name, const std::string& value, bool has_value, bool needs_value) {
    if (has_value && name.starts_with("--")) {
      line_.arguments.push_back(name + "=" + value);
      return;
    }
    line_.arguments.push_back(name);
    if (has_value) {
      line_.arguments.push_back(value);
    } else if (needs_value && at_ < args_.size()) {
      line_.arguments.push_back(args_[at_++]);
    }
  }

  // Puts it before all others, so that the argument without a name is the text.
  void take_argument(const std::string& meant, std::string value, bool has_value) {
    if (!has_value && at_ < args_.size()) {
      value = args_[at_++];
      has_value = true;
    }
    auto& place = meant == kOutputArgument ? output_ : model_;
    const CLI::Option* option = line_.command->get_option_no_throw("-m");
    if (meant == kModelArgument && option != nullptr) {
      line_.options.push_back(option);
      place.emplace_back("-m");
    }
    if (has_value) {
      place.push_back(std::move(value));
    }
  }

  TypedLine& line_;
  std::vector<std::string>& args_;
  std::size_t at_;
  std::vector<std::string> model_;
  std::vector<std::string> output_;
};

// A single text of several words (or of token ids) that is not a model is the prompt; the model is
// the default one.
void take_prompt_alone(TypedLine& line) {
  const CLI::Option* prompt = line.command->get_option_no_throw("PROMPT");
  prompt = prompt == nullptr ? line.command->get_option_no_throw("TEXT") : prompt;
  prompt = prompt == nullptr ? line.command->get_option_no_throw("IDS") : prompt;
  const CLI::Option* model = line.command->get_option_no_throw(std::string(kModelArgument));
  if (prompt == nullptr || model == nullptr || line.texts.size() != 1 || line.has(model)) {
    return;
  }
  const std::string& text = line.texts.front();
  std::error_code unknown;
  const bool is_ids =
      prompt->check_name("IDS") && text.find_first_not_of("0123456789,") == std::string::npos;
  if ((!is_ids && text.find_first_of(kWhiteSpace) == std::string::npos) ||
      std::filesystem::exists(text, unknown)) {
    return;
  }
  for (const char* other : {"--prompt", "--text", "--file", "--tokens"}) {
    const CLI::Option* option = line.command->get_option_no_throw(other);
    if (option != nullptr && line.has(option)) {
      return;
    }
  }
  const auto place = std::ranges::find(line.arguments, text);
  if (place != line.arguments.end()) {
    line.arguments.insert(place, shown_name(*prompt));
    line.options.push_back(prompt);
    line.texts.clear();
  }
}

}  // namespace

bool TypedLine::has(const CLI::Option* option) const {
  return std::ranges::find(options, option) != options.end();
}

std::vector<std::string> TypedLine::words() const {
  std::vector<std::string> all = path;
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

TypedLine read_line(const CLI::App& app, std::vector<std::string> args) {
  args = with_model_behind(app, with_flags_for_words(std::move(args)));
  TypedLine line{.command = &app};
  std::size_t at = 0;
  while (at < args.size() && !is_option(args[at])) {
    const CLI::App* below = find_command(*line.command, args[at]);
    if (below == nullptr) {
      break;
    }
    line.command = below;
    line.path.push_back(below->get_name());
    ++at;
  }
  // Options of the program itself precede the command, and CLI11 knows them.
  if (line.command == &app && at < args.size() && is_option(args[at])) {
    const bool has_value = args[at].find('=') == std::string::npos;
    const CLI::Option* option = app.get_option_no_throw(args[at].substr(0, args[at].find('=')));
    const std::size_t count = option != nullptr && has_value && takes_value(*option) ? 2 : 1;
    const std::size_t end = std::min(at + count, args.size());
    if (option == nullptr) {
      line.unknown_option = args[at];
    }
    TypedLine rest = end < args.size() ? read_line(app, {args.begin() + end, args.end()})
                                       : TypedLine{.command = &app};
    rest.path.insert(rest.path.begin(), args.begin(), args.begin() + static_cast<long>(end));
    if (rest.unknown_option.empty()) {
      rest.unknown_option = line.unknown_option;
    }
    return rest;
  }
  if (!commands_of(*line.command).empty() && at < args.size() && !is_option(args[at])) {
    line.unknown_command = args[at];
  }
  ArgumentReader(line, args, at).read();
  take_prompt_alone(line);
  return line;
}

}  // namespace saker::cli
