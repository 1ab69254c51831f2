// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/completion.h"

#include "saker/cli/usage/command_tree.h"
#include "saker/cli/usage/typed_line.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

constexpr std::string_view kBash =
    R"sh(# bash completion of saker: source this, or put it where bash-completion looks.
_saker() {
  local IFS=$'\n'
  COMPREPLY=($(saker completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -o bashdefault -F _saker saker
)sh";

constexpr std::string_view kZsh = R"sh(#compdef saker
# zsh completion of saker: source this, or save it as _saker in a folder of $fpath.
_saker() {
  local line
  local -a names texts
  for line in "${(@f)$(saker completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] || continue
    names+=("${line%%$'\t'*}")
    texts+=("${line%%$'\t'*}  ${line#*$'\t'}")
  done
  (( ${#names} )) && compadd -l -d texts -a names
  [[ $PREFIX == -* ]] || _files
}
compdef _saker saker
)sh";

constexpr std::string_view kFish =
    R"sh(# fish completion of saker: save this as ~/.config/fish/completions/saker.fish.
function __saker_candidates
    set -l words (commandline -opc)
    set -e words[1]
    saker completion words -- $words (commandline -ct) 2>/dev/null
end
complete -c saker -a '(__saker_candidates)'
)sh";

bool starts(std::string_view text, std::string_view beginning) {
  return text.starts_with(beginning);
}

// The words of an option's type "cpu|gpu"; empty if it is not such a list.
std::vector<std::string> choices(std::string_view type) {
  std::vector<std::string> words;
  if (type.find('|') == std::string_view::npos) {
    return words;
  }
  while (!type.empty()) {
    const std::size_t end = std::min(type.find('|'), type.size());
    const std::string_view word = type.substr(0, end);
    if (!word.empty() && std::isupper(static_cast<unsigned char>(word.front())) == 0) {
      words.emplace_back(word);
    }
    type.remove_prefix(std::min(end + 1, type.size()));
  }
  return words;
}

void add_all(
    std::vector<Candidate>& found, const std::vector<std::string>& words, std::string_view typed
) {
  for (const std::string& word : words) {
    if (starts(word, typed)) {
      found.push_back({word, ""});
    }
  }
}

void add_options(std::vector<Candidate>& found, const CLI::App& command, std::string_view typed) {
  for (const CLI::Option* option : options_of(command)) {
    if (option->get_group().empty()) {
      continue;
    }
    for (const std::string& name : option->get_lnames()) {
      if (starts("--" + name, typed)) {
        found.push_back({"--" + name, option->get_description()});
      }
    }
  }
}

void add_commands_below(
    std::vector<Candidate>& found, const CLI::App& command, std::string_view typed
) {
  for (const CLI::App* below : commands_of(command)) {
    if (starts(below->get_name(), typed) && !below->get_group().empty()) {
      found.push_back({below->get_name(), below->get_description()});
    }
  }
}

bool takes_model(const CLI::App& command) {
  return std::ranges::any_of(options_of(command), [](const CLI::Option* option) {
    return option->check_name("MODEL") || option->check_name("PATH") || option->check_name("paths");
  });
}

}  // namespace

std::vector<Candidate> candidates(
    const CLI::App& app, std::vector<std::string> words, const std::vector<std::string>& models
) {
  std::vector<Candidate> found;
  const std::string typed = words.empty() ? std::string() : words.back();
  if (!words.empty()) {
    words.pop_back();
  }
  const bool asks_for_help = !words.empty() && words.front() == "help";
  if (asks_for_help) {
    words.erase(words.begin());
  }
  const std::string before = words.empty() ? std::string() : words.back();
  const TypedLine line = read_line(app, std::move(words));
  const CLI::Option* option =
      before.starts_with('-') ? line.command->get_option_no_throw(before) : nullptr;
  if (option != nullptr && takes_value(*option)) {
    const bool is_model = option->get_type_name() == "MODEL";
    add_all(found, is_model ? models : choices(option->get_type_name()), typed);
  } else if (starts(typed, "-")) {
    add_options(found, *line.command, typed);
  } else if (!commands_of(*line.command).empty()) {
    add_commands_below(found, *line.command, typed);
    if (line.command == &app && !asks_for_help && starts("help", typed)) {
      found.push_back({"help", "The options of a command"});
    }
  } else if (!asks_for_help && takes_model(*line.command) && line.texts.empty()) {
    add_all(found, models, typed);
  }
  return found;
}

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") {
    return kBash;
  }
  if (shell == "zsh") {
    return kZsh;
  }
  return shell == "fish" ? kFish : std::string_view();
}

}  // namespace saker::cli
