// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/completion.h"

#include "saker/server/api/openai/prompt_logprobs.h"
#include "saker/server/turns/sampling_fields.h"
#include "saker/server/turns/texts_between.h"
#include "saker/server/turns/texts_or_tokens.h"

#include <algorithm>
#include <utility>

namespace saker::server::openai {
namespace {

constexpr std::size_t kMostPrompts = 1024;

std::vector<engine::Prompt> read_prompts(Fields& fields, const ServedModel& model) {
  std::vector<engine::Prompt> prompts;
  for (auto& input :
       read_texts_or_tokens(fields.required("prompt"), "prompt", model, kMostPrompts)) {
    engine::Prompt& prompt = prompts.emplace_back();
    if (auto* text = std::get_if<std::string>(&input)) {
      prompt.text = std::move(*text);
    } else {
      prompt.tokens = std::get<std::vector<std::int32_t>>(std::move(input));
    }
  }
  return prompts;
}

// `suffix`: the answer stands between the prompt and it.
void read_suffix(Fields& fields, const ServedModel& model, CompletionRequest& completion) {
  const auto suffix = fields.text("suffix");
  if (!suffix || suffix->empty()) {
    return;
  }
  if (completion.echoes) {
    fields.fail("suffix", "does not go with echo");
  }
  for (engine::Prompt& prompt : completion.prompts) {
    if (!prompt.text) {
      fields.fail("suffix", "needs prompts that are texts");
    }
    prompt.tokens = between(*prompt.text, *suffix, "suffix", model);
    prompt.text.reset();
  }
}

}  // namespace

CompletionRequest read_completion(const Json& body, const ServedModel& model) {
  constexpr int kDefaultTokens = 16;
  constexpr int kMostLogprobs = 20;
  constexpr std::int64_t kMostChoices = 1024;
  CompletionRequest completion;
  Fields fields(body);
  engine::Request& request = completion.request;
  const FoundModel found = model.find(fields.text("model").value_or(""));
  completion.answering.model = found.name;
  request.placement.adapter = found.adapter;
  completion.prompts = read_prompts(fields, model);
  read_sampling(fields, model, request);
  read_stop(fields, "stop", request);
  read_constraint(fields, request);
  read_placement(fields, request);
  read_streaming(fields, completion.answering);
  completion.echoes = fields.flag("echo").value_or(false);
  read_suffix(fields, model, completion);
  const auto limit = fields.integer("max_tokens", 0, kMaxInt).value_or(kDefaultTokens);
  completion.has_no_answer = limit == 0;
  if (completion.has_no_answer && !completion.echoes) {
    fields.fail("max_tokens", "expected at least 1 without echo");
  }
  request.output.max_tokens = static_cast<int>(std::max<std::int64_t>(limit, 1));
  if (const auto top = fields.integer("logprobs", 0, kMostLogprobs)) {
    completion.answering.top_logprobs = static_cast<int>(*top);
    request.output.logprobs = static_cast<int>(*top);
    request.output.token_events = true;
  }
  request.output.n = static_cast<int>(fields.integer("n", 1, engine::kMostChoices).value_or(1));
  const auto choices = request.output.n * static_cast<std::int64_t>(completion.prompts.size());
  if (choices > kMostChoices) {
    fields.fail("n", fmt::format("expected at most {} choices in all", kMostChoices));
  }
  if (const auto best = fields.integer("best_of", 1, engine::kMostChoices);
      best && *best != request.output.n) {
    fields.fail("best_of", "expected the value of n");
  }
  if (completion.echoes && completion.answering.streams) {
    fields.fail("echo", "does not go with stream");
  }
  completion.answering.prompt_top = read_prompt_logprobs(fields, completion.answering.streams);
  fields.refuse({"prompt_embeds", "return_token_ids"});
  fields.accept({"metadata", "store", "request_id", "skip_special_tokens", "cache_prompt"});
  fields.accept({"add_special_tokens", "spaces_between_special_tokens", "keep_alive", "ttl"});
  fields.log_unknown("completions");
  return completion;
}

}  // namespace saker::server::openai
