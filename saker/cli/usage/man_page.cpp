// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/man_page.h"

#include "saker/cli/io/output.h"
#include "saker/cli/options/command_tree.h"
#include "saker/cli/usage/help.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace saker::cli {
namespace {

// Escapes text, so that man takes no part of it as a request.
std::string escaped(std::string_view text) {
  std::string result;
  bool is_start = true;
  for (const char c : text) {
    if (is_start && (c == '.' || c == '\'')) {
      result += "\\&";
    }
    result += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    is_start = c == '\n';
  }
  return result;
}

void add_command(std::string& page, const CLI::App& command) {
  page += fmt::format(
      ".SH \"{}\"\n.nf\n{}.fi\n", escaped(full_name(command)), escaped(help_of(command))
  );
  for (const CLI::App* below : commands_of(command)) {
    add_command(page, *below);
  }
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string page = fmt::format(
      ".TH SAKER 1 \"\" \"saker {}\"\n.SH NAME\nsaker \\- runs large language models: chat, "
      "generate, score, measure\n",
      SAKER_VERSION
  );
  add_command(page, app);
  return page;
}

void add_man(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand("man", "Print the manual page: saker man | man -l -");
  command.callback([&app, &action] {
    action = [&app] {
      print(man_page(app));
      return 0;
    };
  });
}

}  // namespace saker::cli
