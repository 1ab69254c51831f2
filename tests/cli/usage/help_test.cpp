// SPDX-License-Identifier: Apache-2.0
// The help of every command: groups, examples, width; and what shells complete.
#include "saker/cli/usage/help.h"

#include "saker/cli/options/command_tree.h"
#include "saker/cli/usage/completion.h"
#include "saker/cli/usage/man_page.h"
#include "saker/cli/usage/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// All of ASCII that is shown.
const std::string kPlain = [] {
  std::string plain;
  for (char c = ' '; c <= '~'; ++c) {
    plain += c;
  }
  return plain;
}();

class Help : public ::testing::Test {
 protected:
  Help() { add_commands(app_, action_); }

  // All commands, those below others too.
  std::vector<const CLI::App*> all() const {
    std::vector<const CLI::App*> found{&app_};
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (const CLI::App* below : commands_of(*found[i])) {
        found.push_back(below);
      }
    }
    return found;
  }

  // "cache", "save"
  static std::vector<std::string> words_of(const CLI::App& command) {
    std::istringstream text(full_name(command));
    std::vector<std::string> words;
    for (std::string word; text >> word;) {
      words.push_back(word);
    }
    words.erase(words.begin());
    return words;
  }

  static std::string in_roff(const std::string& text) {
    std::string result;
    for (const char c : text) {
      result += c == '-' ? "\\-" : std::string(1, c);
    }
    return result;
  }

  std::vector<std::string> completed(std::vector<std::string> words) const {
    std::vector<std::string> texts;
    for (const Candidate& candidate : asked(std::move(words)).words) {
      texts.push_back(candidate.text);
    }
    return texts;
  }

  Completions asked(std::vector<std::string> words) const {
    return completions(app_, std::move(words), [] {
      return std::vector<std::string>{"org/model", "mario"};
    });
  }

  CLI::App app_;
  Action action_;
};

TEST_F(Help, IsAtMostAHundredColumnsWide) {
  for (const CLI::App* command : all()) {
    std::istringstream lines(help_of(*command));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), kHelpWidth) << full_name(*command) << ": " << line;
    }
  }
}

TEST_F(Help, HasEveryOptionInAGroup) {
  for (const CLI::App* command : all()) {
    const std::string help = help_of(*command);
    EXPECT_THAT(help, HasSubstr("Usage: " + full_name(*command)));
    EXPECT_THAT(help, HasSubstr("\nGeneral:\n"));
    for (const CLI::Option* option : options_of(*command)) {
      if (!option->get_group().empty() && !option->check_name("paths")) {
        EXPECT_THAT(help, HasSubstr(shown_name(*option))) << full_name(*command);
        EXPECT_FALSE(option->get_description().empty()) << shown_name(*option);
      }
    }
  }
}

TEST_F(Help, ShowsExamplesOfEveryCommand) {
  for (const CLI::App* command : all()) {
    const std::string_view examples = examples_of(full_name(*command));
    EXPECT_FALSE(examples.empty()) << full_name(*command);
    EXPECT_THAT(std::string(examples), HasSubstr("saker"));
  }
}

TEST_F(Help, BeginsWithWhatIsNeededMost) {
  const std::string help = help_of(*app_.get_subcommand("generate"));
  const char* const order[] = {
      "Usage:",
      "Arguments:",
      "Prompt:",
      "Answer:",
      "Sampling:",
      "Repetition:",
      "Drafts:",
      "Engine:",
      "Output:",
      "General:",
      "Examples:"
  };
  std::size_t last = 0;
  for (const char* title : order) {
    const std::size_t at = help.find(title);
    ASSERT_NE(at, std::string::npos) << title;
    EXPECT_GE(at, last) << title;
    last = at;
  }
}

// Everything that a person can type stands in each text that is made from the table.
TEST_F(Help, IsInManualPagesAndCompletionsToo) {
  for (const CLI::App* command : all_commands(app_)) {
    const std::string page = man_page(*command);
    EXPECT_THAT(page, ::testing::StartsWith(".TH "));
    std::vector<std::string> words = words_of(*command);
    words.emplace_back("--");
    const std::vector<std::string> found = completed(words);
    for (const CLI::Option* option : options_of(*command)) {
      if (option->get_group().empty()) {
        continue;
      }
      for (const std::string& name : option->get_lnames()) {
        EXPECT_THAT(found, Contains("--" + name)) << full_name(*command);
        EXPECT_THAT(page, HasSubstr("\\fB" + in_roff("--" + name) + "\\fR")) << full_name(*command);
      }
      for (const std::string& name : option->get_snames()) {
        EXPECT_THAT(page, HasSubstr("\\fB\\-" + name + "\\fR")) << full_name(*command);
      }
    }
    words.back().clear();
    const std::vector<std::string> below = completed(words);
    for (const CLI::App* other : commands_of(*command)) {
      EXPECT_THAT(below, Contains(other->get_name()));
      EXPECT_THAT(page, HasSubstr("\\fB" + other->get_name() + "\\fR"));
    }
  }
}

// No text can be taken for a request.
TEST_F(Help, HasManualPagesOfPlainCharacters) {
  for (const CLI::App* command : all_commands(app_)) {
    std::istringstream lines(man_page(*command));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(line.starts_with('\'')) << line;
      EXPECT_TRUE(line.find_first_not_of(kPlain) == std::string::npos) << line;
    }
  }
}

TEST_F(Help, CompletesCommandsOptionsValuesAndModels) {
  EXPECT_THAT(completed({"ge"}), ::testing::ElementsAre("generate"));
  EXPECT_THAT(completed({""}), Contains("bench"));
  EXPECT_THAT(completed({"cache", ""}), ::testing::ElementsAre("save", "info", "convert"));
  EXPECT_THAT(completed({"help", "det"}), ::testing::ElementsAre("detokenize"));
  EXPECT_THAT(
      completed({"run", "--tem"}),
      ::testing::ElementsAre("--temperature", "--temp", "--template-kwargs")
  );
  EXPECT_THAT(completed({"run", "--device", ""}), ::testing::ElementsAre("cpu", "gpu"));
  EXPECT_THAT(completed({"run", "--think", "o"}), ::testing::ElementsAre("on", "off"));
  EXPECT_THAT(completed({"run", "m"}), ::testing::ElementsAre("mario"));
  EXPECT_THAT(completed({"run", "-m", "org"}), ::testing::ElementsAre("org/model"));
  EXPECT_TRUE(completed({"run", "model", ""}).empty());
  EXPECT_TRUE(completed({"generate", "-f", ""}).empty());
  EXPECT_THAT(completed({"run", "--kv-bits", ""}), ::testing::ElementsAre("4", "8", "16", "32"));
  EXPECT_THAT(completed({"run", "--acceptance", "r"}), ::testing::ElementsAre("rejection"));
  EXPECT_THAT(completed({"run", "--speculate", "p"}), ::testing::ElementsAre("prompt-lookup"));
  EXPECT_THAT(completed({"run", "--device=g"}), ::testing::ElementsAre("--device=gpu"));
  EXPECT_THAT(completed({"run", "--device", "=", "g"}), ::testing::ElementsAre("gpu"));
  EXPECT_THAT(completed({"run", "--device", "="}), ::testing::ElementsAre("cpu", "gpu"));
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_THAT(std::string(completion_script(shell)), HasSubstr("saker completions words --"));
  }
}

TEST_F(Help, SaysWhereFilesCompleteALine) {
  using Words = std::vector<std::string>;
  for (const Words& words : {
           Words{"run", ""},
           Words{"run", "model", ""},
           Words{"run", "-m", ""},
           Words{"generate", "-f", ""},
           Words{"generate", "--draft="},
           Words{"score", "--adapter", ""},
           Words{"run", "--adapter", ""},
           Words{"convert", ""},
           Words{"inspect", ""},
           Words{"cache", "info", ""},
       }) {
    EXPECT_TRUE(asked(words).files) << words.front() << " " << words[1];
  }
  for (const Words& words : {
           Words{""},
           Words{"ge"},
           Words{"cache", ""},
           Words{"run", "-"},
           Words{"run", "--device", ""},
           Words{"run", "--kv-bits", ""},
           Words{"run", "--temp", ""},
           Words{"pull", ""},
           Words{"rm", ""},
           Words{"help", "run", ""},
       }) {
    EXPECT_FALSE(asked(words).files) << words.front();
  }
}

}  // namespace
}  // namespace saker::cli
