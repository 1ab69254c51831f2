// SPDX-License-Identifier: Apache-2.0
// What people type: forms of other programs, mistakes, and what is said of them.
#include "saker/base/nearest.h"
#include "saker/cli/usage/complaint.h"
#include "saker/cli/usage/program.h"
#include "saker/cli/usage/typed_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

class TypedForms : public ::testing::Test {
 protected:
  TypedForms() { add_commands(app_, action_); }

  TypedLine read(Words words) const { return read_line(app_, std::move(words)); }

  // As the program goes about it; empty: the command line is right.
  std::string wrong(Words words) {
    const TypedLine line = read(std::move(words));
    Words reversed = line.words();
    std::ranges::reverse(reversed);
    try {
      app_.parse(std::move(reversed));
    } catch (const CLI::ParseError& error) {
      return error.get_exit_code() == 0 ? "help" : complaint(line, error);
    }
    return {};
  }

  CLI::App app_;
  Action action_;
};

TEST_F(TypedForms, AModelAndItsTextWithoutFlags) {
  EXPECT_EQ(wrong({"run", "m", "Why is the sky blue?"}), "");
  EXPECT_EQ(
      app_.get_subcommand("run")->get_option("--prompt")->as<std::string>(), "Why is the sky blue?"
  );
  EXPECT_EQ(wrong({"generate", "m", "text"}), "");
  EXPECT_EQ(wrong({"tokenize", "m", "text"}), "");
  EXPECT_EQ(wrong({"detokenize", "m", "1,2"}), "");
  EXPECT_EQ(wrong({"score", "m", "text"}), "");
}

TEST_F(TypedForms, AModelByItsFlagAnywhere) {
  for (const Words& words :
       {Words{"generate", "-m", "m", "text"},
        Words{"-m", "m", "generate", "text"},
        Words{"--model=m", "generate", "text"},
        Words{"generate", "text", "-m", "m"},
        Words{"generate", "text", "--model=m"},
        Words{"generate", "-p", "text", "--hf-repo", "m"},
        Words{"generate", "--prompt", "text", "--model", "m", "-n", "5"}}) {
    EXPECT_EQ(wrong(words), "");
    const CLI::App* command = app_.get_subcommand("generate");
    EXPECT_EQ(command->get_option("MODEL")->as<std::string>(), "m");
    EXPECT_EQ(command->get_option("--prompt")->as<std::string>(), "text");
  }
}

TEST_F(TypedForms, AModelBeforeTheCommand) {
  EXPECT_EQ(wrong({"-m", "m", "cache", "save", "-p", "x", "-o", "f"}), "");
  EXPECT_THAT(wrong({"-m", "m", "rnu"}), HasSubstr("'rnu' is no command; the nearest is run"));
  EXPECT_EQ(read({"-m", "m"}).words(), (Words{"run", "-m", "m"}));
  EXPECT_EQ(read({"--model", "m", "-p", "x"}).words(), (Words{"run", "-m", "m", "-p", "x"}));
}

TEST_F(TypedForms, AQuestionAloneIsForTheDefaultModel) {
  EXPECT_EQ(wrong({"run", "Why is the sky blue?"}), "");
  const CLI::App* command = app_.get_subcommand("run");
  EXPECT_EQ(command->get_option("MODEL")->count(), 0U);
  EXPECT_EQ(command->get_option("--prompt")->count(), 1U);
  EXPECT_THAT(read({"run", "org/name"}).texts, ElementsAre("org/name"));
}

TEST_F(TypedForms, FlagsOfOtherPrograms) {
  EXPECT_THAT(
      read({"generate", "--max_tokens", "5", "--repeat-penalty=1.1", "-s", "3", "-t4"}).arguments,
      ElementsAre("--max-tokens", "5", "--repetition-penalty=1.1", "--seed", "3", "--threads=4")
  );
  EXPECT_THAT(
      read({"convert", "--hf-path", "a", "-q", "--q-bits", "8", "--mlx-path", "b"}).arguments,
      ElementsAre("a", "b", "-q", "--bits", "8")
  );
  EXPECT_THAT(read({"perplexity", "-c", "64"}).arguments, ElementsAre("--context", "64"));
  // Where a command has a meaning of its own, that counts.
  EXPECT_THAT(read({"bench", "-n", "4", "-d", "2"}).arguments, ElementsAre("-n", "4", "-d", "2"));
  EXPECT_THAT(read({"tokenize", "-t", "text"}).arguments, ElementsAre("-t", "text"));
  // A value is never taken for a flag.
  EXPECT_THAT(
      read({"generate", "-p", "--num-predict"}).arguments, ElementsAre("-p", "--num-predict")
  );
  EXPECT_THAT(read({"generate", "--", "-n"}).arguments, ElementsAre("--", "-n"));
}

TEST_F(TypedForms, WordsForCommands) {
  EXPECT_EQ(read({"ls"}).command->get_name(), "list");
  EXPECT_EQ(read({"show", "x"}).command->get_name(), "inspect");
  EXPECT_EQ(read({"chat"}).command->get_name(), "run");
  EXPECT_THAT(read({"help", "run"}).words(), ElementsAre("run", "--help"));
  EXPECT_THAT(read({"help"}).words(), ElementsAre("--help"));
  EXPECT_THAT(read({"version"}).words(), ElementsAre("--version"));
  EXPECT_EQ(wrong({"help", "cache", "save"}), "help");
}

TEST_F(TypedForms, TheNearestNameIsSaid) {
  EXPECT_EQ(wrong({"runn"}), "'runn' is no command; the nearest is run (saker --help lists all)");
  EXPECT_THAT(wrong({"models"}), HasSubstr("the nearest is list"));
  EXPECT_THAT(wrong({"ps"}), HasSubstr("no model stays in memory"));
  EXPECT_THAT(wrong({"cache", "svae"}), HasSubstr("the nearest is save"));
  EXPECT_EQ(
      wrong({"generate", "-p", "a", "--tmep", "1"}),
      "saker generate has no option '--tmep'; the nearest is --temp (saker generate --help lists "
      "all)"
  );
  EXPECT_THAT(wrong({"run", "-c", "4096"}), HasSubstr("--max-kv-size"));
  EXPECT_THAT(wrong({"run", "--zzzzz"}), Not(HasSubstr("nearest")));
}

TEST_F(TypedForms, OneStyleOfMessages) {
  EXPECT_EQ(
      wrong({"generate", "-p", "a", "--temp", "hot"}), "--temp: got 'hot', expected a number"
  );
  EXPECT_THAT(
      wrong({"generate", "-p", "a", "--temperature=hot"}),
      HasSubstr("--temperature: got 'hot', expected a number")
  );
  EXPECT_THAT(
      wrong({"generate", "-p", "a", "--temp", "-1"}), HasSubstr("--temp: got -1, expected")
  );
  EXPECT_EQ(
      wrong({"generate", "-p", "a", "--threads", "0"}), "--threads: got '0', expected 1 to 1024"
  );
  EXPECT_EQ(
      wrong({"generate", "-p", "a", "--device", "tpu"}), "--device: got 'tpu', expected cpu or gpu"
  );
  EXPECT_EQ(wrong({"generate", "-p", "a", "--seed"}), "--seed: expected INT behind it");
  EXPECT_THAT(wrong({"generate"}), HasSubstr("needs a prompt: -p TEXT, -f FILE or --tokens IDS"));
  EXPECT_EQ(
      wrong({"generate", "-p", "a", "--tokens", "1"}), "-p does not go together with --tokens"
  );
  EXPECT_THAT(
      wrong({"run", "m", "text", "more"}),
      HasSubstr("'more' is one argument too many, expected saker run")
  );
  EXPECT_THAT(wrong({"cache"}), HasSubstr("saker cache needs a command: save, info, convert"));
  EXPECT_THAT(
      wrong({"generate", "-p", "a", "--logit-bias", "{\"5\":"}), HasSubstr("--logit-bias: byte")
  );
}

TEST(Nearest, IsWhatFewEditsReach) {
  const Words names{"run", "rm", "list", "convert", "--max-tokens", "--min-p"};
  EXPECT_EQ(nearest("cnovert", names), "convert");
  EXPECT_EQ(nearest("--max-token", names), "--max-tokens");
  EXPECT_EQ(nearest("conv", names), "convert");
  EXPECT_EQ(nearest("quit", names), std::nullopt);
  EXPECT_EQ(nearest("x", names), std::nullopt);
  EXPECT_EQ(nearest("", names), std::nullopt);
  EXPECT_EQ(nearest(std::string(100000, 'r'), names), std::nullopt);
}

}  // namespace
}  // namespace saker::cli
