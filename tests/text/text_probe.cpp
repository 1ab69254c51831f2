// SPDX-License-Identifier: Apache-2.0
// Runs saker/text for real_text_test.py and other_files_test.py: one JSON request a line in, one
// answer a line out.
//   {"op": "load", "dir"}  {"op": "encode", "text", "special"}  {"op": "decode", "tokens",
//   "skip_special"}  {"op": "chat", "messages"}
//   {"op": "render", "template", "special_tokens", "messages", "tools", "kwargs",
//   "add_generation_prompt"}
// A failure answers {"error": line}.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/text/chat_template.h"
#include "saker/text/detokenizer.h"
#include "saker/text/eos_tokens.h"
#include "saker/text/tokenizer.h"
#include "saker/text/tokenizer_config.h"

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using saker::Json;
namespace text = saker::text;

class Probe {
 public:
  Json answer(const Json& request) {
    const auto& op = request.at("op").get_ref<const std::string&>();
    if (op == "load") {
      return load(request.at("dir").get<std::string>());
    }
    if (op == "chat") {
      const std::string prompt = chat_template_.value().render(request.at("messages"));
      return {
          {"text", prompt}, {"tokens", tokenizer_->encode(prompt, {.add_special_tokens = false})}
      };
    }
    if (op == "encode") {
      const auto& input = request.at("text").get_ref<const std::string&>();
      return {{"tokens", tokenizer_->encode(input, {.add_special_tokens = request.at("special")})}};
    }
    return op == "decode" ? decode(request) : render(request);
  }

 private:
  Json load(const std::filesystem::path& dir) {
    const text::TokenizerConfig config = text::load_tokenizer_config(dir);
    tokenizer_ = text::Tokenizer::load(dir, config);
    chat_template_ = text::ChatTemplate::load(dir, config);
    return {
        {"vocab_size", tokenizer_->vocab_size()},
        {"special_tokens", config.special_tokens},
        {"eos", text::load_eos_tokens(dir, tokenizer_.get(), config)},
        {"warnings", config.warnings},
    };
  }

  Json decode(const Json& request) const {
    const auto ids = request.at("tokens").get<std::vector<std::int32_t>>();
    const text::DecodeOptions options{.skip_special_tokens = request.at("skip_special")};
    text::Detokenizer detokenizer(*tokenizer_, options);
    std::string streamed;
    for (const auto id : ids) {
      streamed += detokenizer.add(id);
    }
    streamed += detokenizer.finish();
    return {{"text", tokenizer_->decode(ids, options)}, {"streamed", streamed}};
  }

  static Json render(const Json& request) {
    const text::ChatTemplate chat_template(
        request.at("template"),
        request.at("special_tokens").get<std::map<std::string, std::string>>()
    );
    text::RenderOptions options;
    if (!request.at("tools").is_null()) {
      options.tools = request.at("tools");
    }
    options.template_kwargs = request.at("kwargs");
    options.add_generation_prompt = request.at("add_generation_prompt");
    return {{"text", chat_template.render(request.at("messages"), options)}};
  }

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::optional<text::ChatTemplate> chat_template_;
};

}  // namespace

int main() {
  Probe probe;
  for (std::string line; std::getline(std::cin, line);) {
    Json reply;
    try {
      reply = probe.answer(saker::parse_json(line, "request"));
    } catch (const saker::Error& error) {
      reply = {{"error", error.what()}};
    }
    std::cout << reply.dump() << '\n' << std::flush;  // The other side waits for each line.
  }
}
