// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/answer_setup.h"

#include "saker/text/continued_message.h"
#include "saker/text/output/tool.h"

namespace saker::engine {
namespace {

// Differs between the answers of a conversation, whose prompts differ. FNV-1a.
std::uint64_t id_seed(const std::vector<std::int32_t>& prompt, std::uint64_t seed) {
  std::uint64_t hash = 0xCBF29CE484222325U ^ seed;
  for (const std::int32_t token : prompt) {
    hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x100000001B3U;
  }
  return hash;
}

}  // namespace

Answer::Setup answer_setup(
    const Request& request, const std::vector<std::int32_t>& prompt, const Prompts& prompts
) {
  Answer::Setup setup{
      .prompt = prompt,
      .stop = request.output.stop,
      .with_logprobs = request.output.logprobs >= 0,
      .with_token_events = request.output.token_events,
  };
  if (request.prompt.messages && !request.output.whole_text) {
    const ToolChoice& choice = request.output.tool_choice;
    setup.format = &prompts.output_format();
    setup.tools = text::read_tools(request.prompt.tools.value_or(nullptr));
    setup.policy = {
        .calls = choice.use == ToolUse::kNone ? text::CallsRead::kNone
                 : choice.is_parallel         ? text::CallsRead::kAll
                                              : text::CallsRead::kOne,
        .id_seed = id_seed(prompt, request.sampling.seed),
        .begun = request.prompt.continues_last ? text::continued_part(*request.prompt.messages)
                                               : text::Begun::kNothing,
    };
  }
  return setup;
}

}  // namespace saker::engine
