// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/completion.h"

#include "saker/cli/options/command_tree.h"
#include "saker/cli/usage/typed_line.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
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
  COMPREPLY=($(saker completions words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -o bashdefault -F _saker saker
)sh";

constexpr std::string_view kZsh = R"sh(#compdef saker
# zsh completion of saker: source this, or save it as _saker in a folder of $fpath.
_saker() {
  local line files
  local -a found
  for line in "${(@f)$(saker completions words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      '') ;;
      $'\t'*) files=yes ;;
      *) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( ${#found} )) && _describe saker found
  [[ -n $files ]] || return
  [[ $PREFIX == --*=* ]] && compset -P '*='
  _files
}
if [[ ${funcstack[1]} == _saker ]]; then
  _saker "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i; }
  compdef _saker saker
fi
)sh";

constexpr std::string_view kFish =
    R"sh(# fish completion of saker: save this as ~/.config/fish/completions/saker.fish.
function __saker_candidates
    set -l words (commandline -opc)
    set -e words[1]
    set -l typed (commandline -ct)
    for line in (saker completions words -- $words "$typed" 2>/dev/null)
        if string match -q \t'*' -- $line
            __fish_complete_path "$typed"
        else
            printf '%s\n' $line
        end
    end
end
complete -c saker -f -a '(__saker_candidates)'
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

// Whether a value of this type may be a file or a folder.
bool is_path(std::string_view type) {
  constexpr std::array<std::string_view, 4> kPaths{"FILE", "DIR", "MODEL", "PATH"};
  return std::ranges::any_of(kPaths, [type](std::string_view path) {
    return type.find(path) != std::string_view::npos;
  });
}

bool takes_paths(const CLI::App& command) {
  return std::ranges::any_of(options_of(command), [](const CLI::Option* option) {
    const std::string type = option->get_type_name();
    return option->get_positional() && !starts(type, "REPO") &&
           (option->check_name("paths") || is_path(type) || is_path(option->get_name()));
  });
}

void add_values(
    Completions& found, const CLI::Option& option, const ModelNames& models, std::string_view typed
) {
  const std::string type = option.get_type_name();
  add_all(found.words, type == "MODEL" ? models() : choices(type), typed);
  found.files = is_path(type);
}

// Completions of `--option=value`, as one word.
Completions completed_value(
    const CLI::App& command, std::string_view typed, const ModelNames& models
) {
  Completions found;
  const std::size_t equals = typed.find('=');
  const std::string name(typed.substr(0, equals));
  const CLI::Option* option = command.get_option_no_throw(name);
  if (option != nullptr && takes_value(*option)) {
    add_values(found, *option, models, typed.substr(equals + 1));
    for (Candidate& word : found.words) {
      word.text.insert(0, name + "=");
    }
  }
  return found;
}

// bash takes `--option=value` for three words.
void join_value(std::vector<std::string>& words) {
  if (words.size() > 1 && words.back() == "=") {
    words.back().clear();
  } else if (words.size() > 2 && words[words.size() - 2] == "=") {
    words.erase(words.end() - 2);
  }
}

}  // namespace

Completions completions(
    const CLI::App& app, std::vector<std::string> words, const ModelNames& models
) {
  Completions found;
  join_value(words);
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
    add_values(found, *option, models, typed);
  } else if (starts(typed, "--") && typed.find('=') != std::string::npos) {
    return completed_value(*line.command, typed, models);
  } else if (starts(typed, "-")) {
    add_options(found.words, *line.command, typed);
  } else if (!commands_of(*line.command).empty()) {
    add_commands_below(found.words, *line.command, typed);
    if (line.command == &app && !asks_for_help && starts("help", typed)) {
      found.words.push_back({"help", "The options of a command"});
    }
  } else if (!asks_for_help) {
    if (takes_model(*line.command) && line.texts.empty()) {
      add_all(found.words, models(), typed);
    }
    found.files = takes_paths(*line.command);
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
