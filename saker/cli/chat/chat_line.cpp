// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/commands.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace saker::cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The text between quotation marks of several lines, else the text itself. Backslashes at ends of
// lines are removed.
std::string unquoted(std::string_view text) {
  const std::string_view inner = trimmed(text);
  if (inner.size() >= 2 * kQuotes.size() && inner.starts_with(kQuotes) &&
      inner.ends_with(kQuotes)) {
    return std::string(trimmed(inner.substr(kQuotes.size(), inner.size() - 2 * kQuotes.size())));
  }
  std::string joined(text);
  for (std::size_t at = joined.find("\\\n"); at != std::string::npos;
       at = joined.find("\\\n", at)) {
    joined.erase(at, 1);
  }
  return joined;
}

// Edit distance in bytes: insertions, deletions and replacements.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t exchanged = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, exchanged});
    }
  }
  return row[to.size()];
}

const ChatCommand* find_command(std::string_view name) {
  const auto commands = chat_commands();
  const auto found = std::ranges::find(commands, name, &ChatCommand::name);
  return found == commands.end() ? nullptr : &*found;
}

// The command that was possibly meant: letters are missing, wrong, or too many.
const ChatCommand* nearest_command(std::string_view name) {
  constexpr std::size_t kLongName = 3;
  const std::size_t most = name.size() > kLongName ? 2 : 1;
  const ChatCommand* nearest = nullptr;
  std::size_t best = most + 1;
  for (const ChatCommand& command : chat_commands()) {
    const std::size_t to =
        command.name.starts_with(name) && name.size() > 1 ? most : distance(name, command.name);
    if (to < best) {
      best = to;
      nearest = &command;
    }
  }
  return nearest;
}

bool is_word(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
}

// True if the command accepts the argument: "/show me how" and "/think about it" are for the model.
bool takes(const ChatCommand& command, std::string_view argument) {
  if (argument.empty() || command.argument.empty()) {
    return argument.empty();
  }
  const bool is_one_word = argument.find_first_of(kBlanks) == std::string_view::npos;
  return command.takes_text || is_one_word;
}

}  // namespace

ChatLine parse_line(std::string_view line) {
  if (trimmed(line).empty()) {
    return {};
  }
  if (!line.starts_with('/')) {
    // A leading space prevents a command.
    std::string question = unquoted(line.starts_with(" /") ? line.substr(1) : line);
    const bool is_empty = trimmed(question).empty();
    return {is_empty ? ChatLine::Kind::kNothing : ChatLine::Kind::kQuestion, std::move(question)};
  }
  const std::string_view given = trimmed(line.substr(1));
  const std::string_view word = given.substr(0, given.find_first_of(kBlanks));
  const std::string_view rest = trimmed(given.substr(word.size()));
  const bool is_joined = line.substr(1).starts_with(word);
  const ChatCommand* command = is_joined ? find_command(word) : nullptr;
  if (command != nullptr && takes(*command, rest)) {
    return {ChatLine::Kind::kCommand, unquoted(rest), command};
  }
  if (command == nullptr && is_joined && is_word(word)) {
    const ChatCommand* nearest = nearest_command(word);
    if (rest.empty() ||
        (nearest != nullptr && !nearest->argument.empty() && distance(word, nearest->name) == 1)) {
      return {ChatLine::Kind::kUnknown, std::string(word), nearest};
    }
  }
  return {ChatLine::Kind::kQuestion, unquoted(line)};
}

}  // namespace saker::cli
