// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model's chat template: messages to prompt text, as transformers' apply_chat_template renders
// it. Templates come with models from strangers: work, output and memory of a rendering are
// bounded, and nothing outside its variables can be reached. Copies are cheap and share the
// compiled templates; all members may be called from any thread.

#include "saker/base/json.h"
#include "saker/text/model_texts.h"
#include "saker/text/tokenizer_config.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saker::text {

struct RenderOptions {
  std::optional<Json> tools;  // A list of tool descriptions; a template "tool_use" is then taken
                              // where there is one.
  bool add_generation_prompt = true;  // Ends with the header of the answer.
  // Whether the model is to think before it answers; none: as the template has it by itself.
  std::optional<bool> thinking = std::nullopt;
  // More variables, such as enable_thinking; they replace special tokens and what `thinking` sets.
  Json kwargs = Json::object();
};

// The names additional_chat_templates/*.jinja, in order; each is named for its template.
std::vector<std::string> additional_chat_templates(const ModelTexts& texts);

class ChatTemplate {
 public:
  // From chat_template.jinja (and additional_chat_templates/*.jinja), else tokenizer_config.json,
  // else chat_template.json, which processors of images have. None when the model has no template.
  // What is wrong with files or templates shows when one is rendered.
  static std::optional<ChatTemplate> load(const ModelTexts& texts);
  // With what was read of the tokenizer's files before.
  static std::optional<ChatTemplate> load(const ModelTexts& texts, const TokenizerConfig& config);

  // One template, and the variables that go with it ("bos_token" ...).
  explicit ChatTemplate(std::string source, std::map<std::string, std::string> special_tokens = {});

  // Throws kCorruptData where the files that may hold templates cannot be read.
  void check() const;

  // `messages` is a list of objects: [{"role", "content"}, ...], which may be shaped as clients of
  // OpenAI's API keep them (chat_messages.h). Throws kInvalidArgument for malformed arguments and
  // for what the template raises, kUnsupported for content that it does not take, kCorruptData for
  // templates that cannot be read.
  std::string render(const Json& messages, const RenderOptions& options = {}) const;

  // Whether `thinking` changes a prompt.
  bool switches_thinking() const;

 private:
  class Compiled;

  ChatTemplate() = default;

  const Compiled& choose(bool has_tools) const;

  std::map<std::string, std::shared_ptr<Compiled>>
      templates_;  // By name; a single one is "default".
  std::map<std::string, std::string> special_tokens_;
  std::string damage_;  // Why there are none though the model may have some.
};

}  // namespace saker::text
