// SPDX-License-Identifier: Apache-2.0
// Text to tokens and back, and chat templates.
#include "saker/base/error.h"
#include "saker/capi/json_fields.h"
#include "saker/capi/model.h"
#include "saker/capi/status.h"
#include "saker/text/chat_template.h"
#include "saker/text/tokenizer.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::capi {
namespace {

// The ids of a text as a prompt has them, or of the text alone.
std::vector<std::int32_t> encode(const Model& model, std::string_view text, JsonFields options) {
  const bool adds_special_tokens = options.take_flag("add_special_tokens").value_or(true);
  options.require_all_taken();
  if (!adds_special_tokens) {
    return model.tokenizer().encode(text, {.add_special_tokens = false});
  }
  engine::Request request;
  request.prompt.text = std::string(text);
  return model.engine().prompt_tokens(request);
}

std::string decode(const Model& model, std::span<const std::int32_t> ids, JsonFields options) {
  const bool skips = options.take_flag("skip_special_tokens").value_or(false);
  options.require_all_taken();
  return model.tokenizer().decode(ids, {.skip_special_tokens = skips});
}

std::string render(const Model& model, JsonFields fields) {
  const bool adds_prompt = fields.take_flag("add_generation_prompt").value_or(true);
  engine::Prompt prompt = model.request(std::move(fields)).prompt;
  require(
      prompt.messages.has_value(),
      ErrorCode::kInvalidArgument,
      "expected \"messages\" in the request"
  );
  const text::ChatTemplate* const chat = model.engine().chat_template();
  require(chat != nullptr, ErrorCode::kUnsupported, "the model has no chat template");
  return chat->render(
      *prompt.messages,
      {.tools = std::move(prompt.tools),
       .add_generation_prompt = adds_prompt,
       .continues_last = prompt.continues_last,
       .think = prompt.think,
       .template_kwargs = std::move(prompt.template_kwargs)}
  );
}

}  // namespace
}  // namespace saker::capi

namespace capi = saker::capi;

SakerStatus saker_model_tokenize(
    const SakerModel* model,
    const char* text,
    size_t size,
    const char* options,
    SakerTokens** out,
    SakerText** message
) {
  return capi::guarded(message, [&] {
    SakerTokens*& place = capi::cleared(out);
    const std::string_view bytes =
        size == 0 ? "" : std::string_view(&capi::required(text, "text"), size);
    return capi::give(
        capi::encode(*capi::required(model, "model").model, bytes, {options, "options"}), place
    );
  });
}

SakerStatus saker_model_detokenize(
    const SakerModel* model,
    const int32_t* ids,
    size_t count,
    const char* options,
    SakerText** out,
    SakerText** message
) {
  return capi::guarded(message, [&] {
    SakerText*& place = capi::cleared(out);
    std::span<const std::int32_t> given;
    if (count > 0) {
      given = {&capi::required(ids, "ids"), count};
    }
    return capi::give(
        capi::decode(*capi::required(model, "model").model, given, {options, "options"}), place
    );
  });
}

SakerStatus saker_model_apply_template(
    const SakerModel* model, const char* request, SakerText** out, SakerText** message
) {
  return capi::guarded(message, [&] {
    SakerText*& place = capi::cleared(out);
    return capi::give(
        capi::render(*capi::required(model, "model").model, {request, "request"}), place
    );
  });
}

SakerStatus saker_model_prompt_tokens(
    const SakerModel* model, const char* request, SakerTokens** out, SakerText** message
) {
  return capi::guarded(message, [&] {
    SakerTokens*& place = capi::cleared(out);
    const capi::Model& loaded = *capi::required(model, "model").model;
    return capi::give(loaded.engine().prompt_tokens(loaded.request({request, "request"})), place);
  });
}
