// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/native/request.h"

#include "saker/server/turns/fields.h"
#include "saker/server/turns/sampling_fields.h"
#include "saker/server/turns/texts_between.h"
#include "saker/server/turns/texts_or_tokens.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace saker::server::native {
namespace {

constexpr std::size_t kMostPrompts = 1024;
constexpr std::size_t kMostFiles = 1024;
constexpr int kMostProbabilities = 20;

void read_prompts(Fields& fields, const ServedModel& model, NativeRequest& native) {
  const Json& given = fields.required("prompt");
  for (auto& input : read_texts_or_tokens(given, "prompt", model, kMostPrompts)) {
    engine::Prompt& prompt = native.prompts.emplace_back();
    if (auto* text = std::get_if<std::string>(&input)) {
      prompt.text = std::move(*text);
    } else {
      prompt.tokens = std::get<std::vector<std::int32_t>>(std::move(input));
    }
  }
  native.has_list = given.is_array() && !given.front().is_number();
}

// All but the prompt.
void read_rest(Fields& fields, const ServedModel& model, NativeRequest& native) {
  engine::Request& request = native.request;
  const FoundModel found = model.find(fields.text("model").value_or(""));
  native.model = found.name;
  request.placement.adapter = found.adapter;
  read_sampling(fields, model, request);
  read_stop(fields, "stop", request);
  read_constraint(fields, request);
  read_placement(fields, request);
  native.streams = fields.flag("stream").value_or(false);
  native.returns_tokens = fields.flag("return_tokens").value_or(false);
  native.response_fields = fields.texts("response_fields");
  const auto limit = fields.integer("n_predict", -1, kMaxInt).value_or(-1);
  native.has_no_answer = limit == 0;
  request.output.max_tokens =
      limit < 0 ? engine::kNoTokenLimit : static_cast<int>(std::max<std::int64_t>(limit, 1));
  if (const auto top = fields.integer("n_probs", 0, kMostProbabilities); top && *top > 0) {
    native.top = static_cast<int>(*top);
    request.output.logprobs = *native.top;
  }
  request.output.token_events = native.top || native.returns_tokens;
  // Limits of time are wishes there, too: they hold from line to line.
  fields.accept({"t_max_prompt_ms", "t_max_predict_ms", "cache_prompt", "id_slot", "n_keep"});
  fields.accept({"n_indent", "n_discard", "min_keep", "timings_per_token", "keep_alive"});
  fields.refuse({"lora", "return_progress", "post_sampling_probs", "n_cmpl", "image_data"});
}

std::vector<text::FileText> read_files(Fields& fields) {
  const Json* given = fields.list("input_extra");
  std::vector<text::FileText> files;
  if (given == nullptr) {
    return files;
  }
  if (given->size() > kMostFiles) {
    fields.fail("input_extra", fmt::format("expected at most {} texts", kMostFiles));
  }
  for (std::size_t i = 0; i < given->size(); ++i) {
    Fields file((*given)[i], fmt::format("{}[{}]", fields.path_of("input_extra"), i));
    file.required("text");
    files.push_back({file.text("filename").value_or("tmp"), *file.text("text")});
  }
  return files;
}

}  // namespace

NativeRequest read_completion(const Json& body, const ServedModel& model) {
  NativeRequest native;
  Fields fields(body);
  read_prompts(fields, model, native);
  read_rest(fields, model, native);
  if (native.streams && native.prompts.size() > 1) {
    fields.fail("stream", "does not go with several prompts");
  }
  fields.log_unknown("completion");
  return native;
}

NativeRequest read_infill(const Json& body, const ServedModel& model) {
  NativeRequest native;
  Fields fields(body);
  fields.required("input_prefix");
  fields.required("input_suffix");
  // What was typed since the prefix was taken.
  const std::string before =
      *fields.text("input_prefix") + fields.text("prompt").value_or(std::string());
  const std::vector<text::FileText> files = read_files(fields);
  native.prompts.push_back(
      {.tokens = between(before, *fields.text("input_suffix"), "input_prefix", model, files)}
  );
  read_rest(fields, model, native);
  fields.log_unknown("infill");
  return native;
}

}  // namespace saker::server::native
