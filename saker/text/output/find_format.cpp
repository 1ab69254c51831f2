// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/find_format.h"

#include "saker/base/error.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>

namespace saker::text {
namespace {

// A format shows itself by these words of the template, or by this token of the vocabulary.
struct Words {
  std::string_view format;
  std::string_view first;
  std::string_view second = {};
  std::string_view token = {};
};

// The first row that holds is taken.
constexpr std::array<Words, 31> kWords{{
    {.format = "apertus", .first = {}, .token = "<|inner_prefix|>"},
    {.format = "gemma4", .first = "<|tool_call>call:"},
    {.format = "gpt_oss", .first = "<|channel|>", .second = "<|message|>"},
    {.format = "kimi_k2", .first = {}, .token = "<|tool_calls_section_begin|>"},
    {.format = "kimi_k3", .first = "<|open|>", .second = "<|close|>"},
    {.format = "minimax_m3", .first = "]<]minimax[>["},
    {.format = "minimax_m2", .first = "<minimax:tool_call>"},
    {.format = "mistral", .first = "[TOOL_CALLS]", .second = "[ARGS]"},
    {.format = "mistral_list", .first = "[TOOL_CALLS]"},
    {.format = "deepseek_v41", .first = "｜DSML｜", .second = "｜ calls>"},
    {.format = "deepseek_v4", .first = "｜DSML｜", .second = "tool_calls>"},
    {.format = "deepseek_v32", .first = "｜DSML｜"},
    {.format = "deepseek_v3", .first = "<｜tool▁sep｜>", .second = "```json"},
    {.format = "deepseek_v31", .first = "<｜tool▁sep｜>"},
    {.format = "lfm2", .first = "<|tool_call_start|>"},
    {.format = "minicpm5", .first = "<function name=", .second = "<param name="},
    {.format = "hunyuan3", .first = "<tool_calls>", .second = "<tool_sep>"},
    {.format = "glm", .first = "<arg_key>"},
    {.format = "glm", .first = {}, .token = "<arg_key>"},
    {.format = "step3", .first = "steptml:invoke"},
    {.format = "seed_oss", .first = "<seed:tool_call>"},
    {.format = "qwen3_coder", .first = "<function=", .second = "<parameter="},
    {.format = "command_r7b", .first = "<|START_ACTION|>"},
    {.format = "nemotron_v2", .first = "<TOOLCALL>"},
    {.format = "longcat", .first = "<longcat_tool_call>"},
    {.format = "functiongemma", .first = "<start_function_call>"},
    {.format = "hermes", .first = "<tool_call>", .second = "arguments"},
    {.format = "functionary32", .first = ">>>all"},
    {.format = "internlm", .first = "<|plugin|>"},
    {.format = "llama4", .first = "<|python_start|>"},
    {.format = "llama3", .first = "<|python_tag|>"},
}};

}  // namespace

const OutputFormat* format_of_words(std::string_view source, const Tokenizer* tokenizer) {
  const auto* const found = std::ranges::find_if(kWords, [&](const Words& words) {
    if (!words.token.empty()) {
      return tokenizer != nullptr && tokenizer->token_id(words.token).has_value();
    }
    return source.find(words.first) != std::string_view::npos &&
           source.find(words.second) != std::string_view::npos;
  });
  return found == kWords.end() ? nullptr : known_format(found->format);
}

OutputFormat find_output_format(
    const ChatTemplate* chat, const Tokenizer* tokenizer, const Json& response_template
) {
  OutputFormat format = plain_format();
  const std::string_view source = chat == nullptr ? std::string_view() : chat->source();
  if (auto described = format_of_response_template(response_template)) {
    format = std::move(*described);
  } else if (auto shown = chat == nullptr ? std::nullopt : format_of_template(*chat)) {
    format = std::move(*shown);
  } else if (const OutputFormat* known = format_of_words(source, tokenizer)) {
    format = *known;
  }
  if (chat != nullptr) {
    format.capabilities = chat->capabilities();
  }
  spdlog::debug("answers: read as {}", format.name);
  return format;
}

}  // namespace saker::text
