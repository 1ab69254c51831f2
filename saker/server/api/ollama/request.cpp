// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/ollama/request.h"

#include "saker/base/utf8.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/sampling_fields.h"
#include "saker/server/turns/texts_between.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace saker::server::ollama {
namespace {

constexpr std::size_t kMostMessages = 10'000;

void read_format(Fields& fields, engine::Request& request) {
  const Json* format = fields.find("format");
  if (format == nullptr || *format == "") {
    return;
  }
  if (*format == "json") {
    constrain_to_schema({{"type", "object"}}, "format", request);
  } else if (format->is_object()) {
    constrain_to_schema(*format, "format", request);
  } else {
    fields.fail("format", "expected json or a JSON schema, got " + describe_json(*format));
  }
}

void read_think(Fields& fields, engine::Request& request) {
  const Json* think = fields.find("think");
  if (think == nullptr) {
    return;
  }
  constexpr std::array<std::string_view, 4> kLevels = {"low", "medium", "high", "max"};
  if (think->is_boolean()) {
    request.prompt.think = think->get<bool>();
  } else if (think->is_string() &&
             std::ranges::find(kLevels, think->get_ref<const std::string&>()) != kLevels.end()) {
    request.prompt.think = true;
    request.prompt.template_kwargs["reasoning_effort"] = *think;
  } else {
    fields.fail("think", "expected true, false, low, medium, high or max");
  }
}

void read_options(Fields& fields, const ServedModel& model, engine::Request& request) {
  static const Json kNone = Json::object();
  const Json* given = fields.object("options");
  Fields options(given == nullptr ? kNone : *given, "options");
  read_sampling(options, model, request);
  read_stop(options, "stop", request);
  request.output.max_tokens = engine::kNoTokenLimit;
  // -1: no limit; -2: until the context is full, which is the same here.
  if (const auto limit = options.integer("num_predict", -2, kMaxInt); limit && *limit > 0) {
    request.output.max_tokens = static_cast<int>(*limit);
  }
  // A larger context than the model's can't be had, and a smaller one saves nothing here.
  options.accept({"num_ctx", "num_keep", "num_batch", "num_gpu", "main_gpu", "use_mmap"});
  options.accept({"num_thread", "numa", "low_vram", "f16_kv", "vocab_only", "use_mlock"});
  options.accept({"penalize_newline", "tfs_z", "mirostat_eta", "mirostat_tau"});
  options.log_unknown("ollama");
}

void check_message(const Json& given, std::size_t i) {
  constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
  Fields message(given, fmt::format("messages[{}]", i));
  message.required("role");
  const std::string role = *message.text("role");
  if (std::ranges::find(kRoles, role) == kRoles.end()) {
    message.fail("role", "expected system, user, assistant or tool, got " + quote(role));
  }
  message.text("content");
  message.text("thinking");
  message.list("tool_calls");
  message.refuse({"images"});
}

// Messages as chat templates take them.
Json read_messages(Fields& fields) {
  const Json* given = fields.list("messages");
  if (given == nullptr) {
    return Json::array();
  }
  if (given->size() > kMostMessages) {
    fields.fail("messages", fmt::format("expected at most {} messages", kMostMessages));
  }
  Json messages = *given;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    check_message(messages[i], i);
    Json& message = messages[i];
    message.erase("images");
    if (const auto name = message.find("tool_name"); name != message.end()) {
      message["name"] = *name;
      message.erase("tool_name");
    }
    if (const auto thoughts = message.find("thinking"); thoughts != message.end()) {
      message["reasoning_content"] = *thoughts;
      message.erase("thinking");
    }
  }
  return messages;
}

// An answer continues a text of the assistant at the end, as Ollama's templates have it.
bool ends_with_answer(const Json& messages) {
  if (messages.empty() || messages.back()["role"] != "assistant") {
    return false;
  }
  const Json content = messages.back().value("content", Json(""));
  return content.is_string() && content != "" && !messages.back().contains("tool_calls");
}

void read_chat(Fields& fields, OllamaRequest& request) {
  Json messages = read_messages(fields);
  request.only_loads = messages.empty();
  request.request.prompt.continues_last = ends_with_answer(messages);
  request.request.prompt.messages = std::move(messages);
  if (const Json* tools = fields.list("tools"); tools != nullptr && !tools->empty()) {
    for (std::size_t i = 0; i < tools->size(); ++i) {
      Fields tool((*tools)[i], fmt::format("tools[{}]", i));
      tool.required("function");
      Fields function(*tool.object("function"), tool.path_of("function"));
      function.required("name");
      function.text("name");
    }
    request.request.prompt.tools = *tools;
  }
}

void read_generate(Fields& fields, const ServedModel& model, OllamaRequest& request) {
  const std::string prompt = fields.text("prompt").value_or("");
  const auto system = fields.text("system");
  request.only_loads = prompt.empty();
  engine::Prompt& target = request.request.prompt;
  const std::string suffix = fields.text("suffix").value_or("");
  if (!suffix.empty()) {
    target.tokens = between(prompt, suffix, "suffix", model);
  } else if (fields.flag("raw").value_or(false) || model.model().chat_template() == nullptr) {
    target.text = prompt;
  } else {
    Json messages = Json::array();
    if (system && !system->empty()) {
      messages.push_back({{"role", "system"}, {"content", *system}});
    }
    messages.push_back({{"role", "user"}, {"content", prompt}});
    target.messages = std::move(messages);
  }
  fields.refuse({"template", "context", "images"});
}

void read_logprobs(Fields& fields, OllamaRequest& request) {
  constexpr int kMost = 20;
  request.has_logprobs = fields.flag("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, kMost).value_or(0);
  if (top > 0 && !request.has_logprobs) {
    fields.fail("top_logprobs", "needs logprobs");
  }
  if (request.has_logprobs) {
    request.request.output.logprobs = static_cast<int>(top);
    request.request.output.token_events = true;
  }
}

}  // namespace

bool only_loads(const Json& body, Form form) {
  const auto found = body.find(form == Form::kChat ? "messages" : "prompt");
  return found == body.end() || found->is_null() || found->empty() || *found == "";
}

OllamaRequest read_request(const Json& body, Form form, const ServedModel& model) {
  OllamaRequest request;
  request.form = form;
  Fields fields(body);
  fields.required("model");
  const FoundModel found = model.find(*fields.text("model"));
  request.model = found.name;
  request.request.placement.adapter = found.adapter;
  if (form == Form::kChat) {
    read_chat(fields, request);
  } else {
    read_generate(fields, model, request);
  }
  read_options(fields, model, request.request);
  read_format(fields, request.request);
  read_think(fields, request.request);
  if (request.request.output.constraint && request.request.prompt.tools) {
    throw bad_field("format", "an answer with a format can't call tools");
  }
  request.streams = fields.flag("stream").value_or(true);
  read_logprobs(fields, request);
  fields.accept({"truncate", "shift"});  // Nothing is ever cut off here.
  fields.accept({"keep_alive"});         // Read before the model was there.
  fields.log_unknown("ollama");
  return request;
}

}  // namespace saker::server::ollama
