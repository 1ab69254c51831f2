// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model's chat template: renders messages to prompt text, as transformers' apply_chat_template
// does. Templates come from strangers: time, output and memory of a rendering are bounded, and a
// template can reach nothing but its variables. Copies are cheap and share the compiled templates.
// Any thread may call any member.

#include "saker/base/json/json.h"
#include "saker/text/model_texts.h"
#include "saker/text/tokenizer_config.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {

// Variables of a rendering.
struct RenderOptions {
  std::optional<Json> tools;          // A list; selects a template "tool_use" if there is one.
  bool add_generation_prompt = true;  // Ends with the header of the answer.
  // Ends with the last message, an assistant's, so that an answer continues it. Its reasoning is
  // continued if it has no content. Used instead of `add_generation_prompt`.
  bool continues_last = false;
  // True: the model thinks before it answers. Empty: the template's default.
  std::optional<bool> think = std::nullopt;
  // More variables, such as enable_thinking; they override special tokens and `think`.
  Json template_kwargs = Json::object();
};

// The messages that a template shows.
struct TemplateCapabilities {
  bool takes_tools = false;           // Tools change the prompt.
  bool takes_calls = false;           // Calls of earlier answers are shown.
  bool takes_parallel_calls = false;  // Two calls of one answer are shown.
  bool takes_results = false;         // Results of tools are shown.
  bool takes_system = false;
  bool takes_late_system = false;  // Behind another message of the system.
  bool takes_developer = false;
  bool arguments_are_text = false;  // Otherwise an object.
};

// The names additional_chat_templates/*.jinja, sorted; each file is named after its template.
std::vector<std::string> additional_chat_templates(const ModelTexts& texts);

// The texts of a model's templates by name, "default" for the unnamed one, from the files that
// ChatTemplate::load takes. Throws kCorruptData if they cannot be read.
std::map<std::string, std::string> chat_template_sources(
    const ModelTexts& texts, const TokenizerConfig& config
);

// A model's template, or several by name.
class ChatTemplate {
 public:
  // Loads chat_template.jinja (and additional_chat_templates/*.jinja), else the template of
  // tokenizer_config.json, else of chat_template.json, which image processors have. Empty if the
  // model has no template. Errors in files or templates are thrown when one is rendered.
  static std::optional<ChatTemplate> load(const ModelTexts& texts);
  // As above, with the tokenizer's files already read.
  static std::optional<ChatTemplate> load(const ModelTexts& texts, const TokenizerConfig& config);

  // One template and its special tokens as variables ("bos_token" ...).
  explicit ChatTemplate(std::string source, std::map<std::string, std::string> special_tokens = {});

  // Throws kCorruptData if the files that may hold templates cannot be read.
  void check() const;

  // `messages` is a list of objects: [{"role", "content"}, ...]; forms of OpenAI's API are adapted
  // (chat_messages.h). Throws kInvalidArgument for malformed arguments and for errors that the
  // template raises. Throws kUnsupported for content that the template does not take, and
  // kCorruptData for templates that cannot be read.
  std::string render(const Json& messages, const RenderOptions& options = {}) const;

  // As render(); nothing if that fails or takes longer than 100 ms of processor time.
  std::optional<std::string> try_to_render(const Json& messages, const RenderOptions& options = {})
      const;

  // Found by rendering a few conversations.
  TemplateCapabilities capabilities() const;

  // The text of the template that requests with tools use; empty if there is none.
  std::string_view source() const;

  // True if `think` changes a prompt.
  bool switches_thinking() const;

 private:
  class Compiled;

  ChatTemplate() = default;

  const Compiled& choose(bool has_tools) const;
  std::string render_within(
      std::uint32_t milliseconds, const Json& messages, const RenderOptions& options
  ) const;

  std::map<std::string, std::shared_ptr<Compiled>>
      templates_;  // By name; a single one is "default".
  std::map<std::string, std::string> special_tokens_;
  std::string damage_;  // Why there are no templates though files may hold some.
};

}  // namespace saker::text
