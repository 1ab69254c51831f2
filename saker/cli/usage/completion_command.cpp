// SPDX-License-Identifier: Apache-2.0
// `saker completions`: prints scripts with which shells complete command lines.
#include "saker/cli/io/output.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command.h"
#include "saker/cli/usage/completion.h"
#include "saker/hub/cached_models.h"
#include "saker/hub/environment.h"
#include "saker/load/files/named_models.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

// What the scripts ask for, instead of a shell.
constexpr const char* kWords = "words";

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const load::NamedModel& model : load::named_models()) {
    names.push_back(model.name);
  }
  for (const hub::CachedModel& model : hub::cached_models(hub::cache_dir())) {
    names.push_back(model.repo);
  }
  return names;
}

// Prints a line per candidate: the word, a tab, its help. A last line without a word says that
// files fit, too.
int print_candidates(const CLI::App& app, const std::vector<std::string>& words) {
  const Completions found = completions(app, words, model_names);
  std::string text;
  for (const Candidate& candidate : found.words) {
    text += candidate.text + "\t" + candidate.help + "\n";
  }
  text += found.files ? "\tfiles\n" : "";
  print(text);
  return 0;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App& command = *app.add_subcommand(
      "completions", "Print a script that completes command lines: source <(saker completions bash)"
  );
  command.alias("completion");
  command.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check([shells = one_of({"bash", "zsh", "fish"})](const std::string& given) {
        return given == kWords ? std::string() : shells(given);
      })
      ->type_name("bash|zsh|fish");
  command.add_option("WORDS", *words, "What the script asks for")->group("");
  command.callback([=, &app, &action] {
    action = [=, &app] {
      if (*shell == kWords) {
        return print_candidates(app, *words);
      }
      print(completion_script(*shell));
      return 0;
    };
  });
}

}  // namespace saker::cli
