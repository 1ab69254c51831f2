// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/completion.h"

#include "saker/server/api/openai/prompt_logprobs.h"
#include "saker/server/turns/sampling_fields.h"
#include "saker/server/turns/texts_between.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace saker::server::openai {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();
constexpr std::size_t kMostPrompts = 1024;

bool are_tokens(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::ranges::all_of(value, [](const Json& one) { return one.is_number_integer(); });
}

engine::Prompt token_prompt(const Json& ids, const ServedModel& model) {
  const std::int64_t vocabulary = model.model().facts().vocab_size;
  std::vector<std::int32_t> tokens;
  for (const Json& id : ids) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
        id.get<std::int64_t>() >= vocabulary) {
      throw bad_field(
          "prompt", "expected token ids below {}, got {}", vocabulary, describe_json(id)
      );
    }
    tokens.push_back(id.get<std::int32_t>());
  }
  return {.tokens = std::move(tokens)};
}

engine::Prompt one_prompt(const Json& value, const ServedModel& model) {
  if (value.is_string()) {
    return {.text = value.get<std::string>()};
  }
  if (are_tokens(value)) {
    return token_prompt(value, model);
  }
  throw bad_field("prompt", "expected a string or a list of token ids, got {}", kind_of(value));
}

std::vector<engine::Prompt> read_prompts(const Json& given, const ServedModel& model) {
  std::vector<engine::Prompt> prompts;
  if (!given.is_array() || are_tokens(given)) {
    prompts.push_back(one_prompt(given, model));
    return prompts;
  }
  if (given.empty() || given.size() > kMostPrompts) {
    throw bad_field("prompt", "expected 1 to {} prompts, got {}", kMostPrompts, given.size());
  }
  for (const Json& one : given) {
    prompts.push_back(one_prompt(one, model));
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
    prompt.text = between(*prompt.text, *suffix, "suffix", model);
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
  completion.prompts = read_prompts(fields.required("prompt"), model);
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
