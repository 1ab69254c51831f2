// SPDX-License-Identifier: Apache-2.0
// Random templates with what jinja2 makes of them (make_template_goldens.py).
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/text/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>

namespace saker::text {
namespace {

// Without what no two programs print alike.
std::string comparable(const std::string& text) {
  static const std::regex object(
      "<[\\w. ]*(object|function|method|class|generator|Namespace|Macro|LoopContext|"
      "TemplateReference|bound|iterator)[^>]*>"
  );
  return std::regex_replace(text, object, "<object>");
}

TEST(TemplateGoldens, AreWhatJinjaMakes) {
  const auto golden = read_json_file(
      std::filesystem::path(SAKER_SOURCE_DIR) / "tests/text/golden/random_templates.json"
  );
  const Json messages = {{{"role", "user"}, {"content", "Hi"}}};
  for (const auto& entry : golden.at("cases")) {
    const auto& source = entry.at("template").get_ref<const std::string&>();
    const ChatTemplate chat(source);
    const RenderOptions options{.tools = {}, .template_kwargs = golden.at("variables")};
    if (entry.contains("text")) {
      EXPECT_EQ(comparable(chat.render(messages, options)), entry.at("text").get<std::string>())
          << source;
    } else {
      EXPECT_THROW(chat.render(messages, options), Error) << source;
    }
  }
}

}  // namespace
}  // namespace saker::text
