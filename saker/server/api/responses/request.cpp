// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/responses/request.h"

#include "saker/base/utf8.h"
#include "saker/server/turns/custom_tool.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/sampling_fields.h"
#include "saker/server/turns/tools.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace saker::server::responses {
namespace {

constexpr std::size_t kMostItems = 10'000;
constexpr std::size_t kMostTools = 1024;

// A text, or the texts of parts.
std::string joined_text(const Json& content, const std::string& path) {
  if (content.is_string()) {
    return content.get<std::string>();
  }
  if (!content.is_array()) {
    throw bad_field(path, "expected a string or a list of parts, got {}", kind_of(content));
  }
  constexpr std::array<std::string_view, 5> kTexts = {
      "input_text", "output_text", "text", "reasoning_text", "summary_text"
  };
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    Fields part(content[i], fmt::format("{}[{}]", path, i));
    part.required("type");
    const std::string type = *part.text("type");
    if (std::ranges::find(kTexts, type) != kTexts.end()) {
      part.required("text");
      text += *part.text("text");
    } else if (type == "refusal") {
      text += part.text("refusal").value_or("");
    } else {
      part.fail("type", "this model takes text alone, got " + quote(type));
    }
  }
  return text;
}

// Builds messages from items: calls and thoughts belong to the assistant's message beside them.
class Conversation {
 public:
  explicit Conversation(Json messages) : messages_(std::move(messages)) {}

  void add(const Json& item, const std::string& path) {
    Fields fields(item, path);
    const std::string type = fields.text("type").value_or("message");
    if (type == "message") {
      add_message(fields);
    } else if (type == "function_call") {
      add_call(fields);
    } else if (type == "custom_tool_call") {
      add_custom_call(fields);
    } else if (type == "function_call_output" || type == "custom_tool_call_output") {
      add_output(fields);
    } else if (type == "reasoning") {
      add_thoughts(fields);
    } else if (!is_history(type)) {
      fields.fail("type", "unknown type of item " + quote(type));
    }
  }

  Json take() { return std::move(messages_); }

 private:
  // Items of tools that other servers ran.
  static bool is_history(std::string_view type) {
    constexpr std::array<std::string_view, 6> kHosted = {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools"
    };
    return std::ranges::find(kHosted, type) != kHosted.end();
  }

  void add_message(Fields& fields) {
    fields.required("role");
    const std::string role = *fields.text("role");
    if (role != "user" && role != "assistant" && role != "system" && role != "developer") {
      fields.fail("role", "expected user, assistant, system or developer, got " + quote(role));
    }
    const std::string text = joined_text(fields.required("content"), fields.path_of("content"));
    if (role == "assistant") {
      Json& message = answer();
      message["content"] = message["content"].get<std::string>() + text;
    } else {
      messages_.push_back({{"role", role}, {"content", text}});
    }
  }

  void add_call(Fields& fields) {
    fields.required("arguments");
    add_call(fields, *fields.text("arguments"));
  }

  void add_custom_call(Fields& fields) {
    fields.required("input");
    add_call(fields, custom_arguments(*fields.text("input")));
  }

  void add_call(Fields& fields, const std::string& arguments) {
    fields.required("call_id");
    fields.required("name");
    Json& message = answer();
    if (!message.contains("tool_calls")) {
      message["tool_calls"] = Json::array();
    }
    message["tool_calls"].push_back(
        {{"id", *fields.text("call_id")},
         {"type", "function"},
         {"function", {{"name", *fields.text("name")}, {"arguments", arguments}}}}
    );
  }

  void add_output(Fields& fields) {
    fields.required("call_id");
    messages_.push_back(
        {{"role", "tool"},
         {"tool_call_id", *fields.text("call_id")},
         {"content", joined_text(fields.required("output"), fields.path_of("output"))}}
    );
  }

  void add_thoughts(Fields& fields) {
    for (const std::string_view name : {"content", "summary"}) {
      const Json* parts = fields.list(name);
      if (parts != nullptr && !parts->empty()) {
        answer()["reasoning_content"] = joined_text(*parts, fields.path_of(name));
        return;
      }
    }
  }

  // The assistant's message at the end.
  Json& answer() {
    if (messages_.empty() || messages_.back()["role"] != "assistant") {
      messages_.push_back({{"role", "assistant"}, {"content", ""}});
    }
    return messages_.back();
  }

  Json messages_;
};

std::optional<Json> read_tools(Fields& fields, std::set<std::string>& custom_tools) {
  const Json* given = fields.list("tools");
  if (given == nullptr) {
    return std::nullopt;
  }
  if (given->size() > kMostTools) {
    fields.fail("tools", fmt::format("expected at most {} tools", kMostTools));
  }
  Json tools = Json::array();
  for (std::size_t i = 0; i < given->size(); ++i) {
    Fields tool((*given)[i], fmt::format("tools[{}]", i));
    tool.required("type");
    const std::string type = *tool.text("type");
    if (type == "custom") {
      tools.push_back(custom_tool(tool));
      custom_tools.insert(*tool.text("name"));
      continue;
    }
    if (type != "function") {  // Some clients always send tools that their vendor's servers run.
      spdlog::info("responses: the tool {} is left out", quote(type));
      continue;
    }
    tools.push_back(function_tool(tool, "parameters"));
  }
  return tools.empty() ? std::nullopt : std::optional(std::move(tools));
}

void read_format(Fields& fields, engine::Request& request) {
  const Json* text = fields.object("text");
  if (text == nullptr) {
    return;
  }
  Fields inner(*text, "text");
  const Json* given = inner.object("format");
  if (given == nullptr) {
    return;
  }
  Fields format(*given, "text.format");
  format.required("type");
  const std::string type = *format.text("type");
  if (type == "json_object") {
    constrain_to_schema({{"type", "object"}}, "text.format", request);
  } else if (type == "json_schema") {
    constrain_to_schema(format.required("schema"), "text.format.schema", request);
  } else if (type != "text") {
    format.fail("type", "expected text, json_object or json_schema, got " + quote(type));
  }
}

void read_reasoning(Fields& fields, engine::Request& request) {
  if (const Json* given = fields.object("reasoning")) {
    Fields reasoning(*given, "reasoning");
    if (const auto effort = reasoning.text("effort")) {
      request.prompt.think = *effort != "none";
      request.prompt.template_kwargs.emplace("reasoning_effort", *effort);
    }
  }
}

// Log-probabilities come if `include` lists them; `top_logprobs` is the number of alternatives.
void read_logprobs(Fields& fields, ResponsesRequest& responses) {
  constexpr int kMost = 20;
  const auto top = fields.integer("top_logprobs", 0, kMost).value_or(0);
  const Json* include = fields.list("include");
  responses.has_logprobs =
      top > 0 ||
      (include != nullptr &&
       std::ranges::find(*include, Json("message.output_text.logprobs")) != include->end());
  if (responses.has_logprobs) {
    responses.request.output.logprobs = static_cast<int>(top);
    responses.request.output.token_events = true;
  }
}

Json or_null(Fields& fields, std::string_view name) {
  const Json* found = fields.find(name);
  return found == nullptr ? Json(nullptr) : *found;
}

// Members that every response has, whether they were asked for or not.
Json echoed(Fields& fields, const engine::Request& request, const ResponsesRequest& responses) {
  const auto value_or = [&](std::string_view name, Json fallback) {
    const Json* found = fields.find(name);
    return found == nullptr ? std::move(fallback) : *found;
  };
  return {
      {"model", responses.model},
      {"previous_response_id", or_null(fields, "previous_response_id")},
      {"instructions", or_null(fields, "instructions")},
      {"tools", value_or("tools", Json::array())},
      {"tool_choice", value_or("tool_choice", "auto")},
      {"truncation", value_or("truncation", "disabled")},
      {"parallel_tool_calls", value_or("parallel_tool_calls", true)},
      {"text", value_or("text", {{"format", {{"type", "text"}}}})},
      {"top_p", request.sampling.top_p},
      {"presence_penalty", request.sampling.presence_penalty},
      {"frequency_penalty", request.sampling.frequency_penalty},
      {"top_logprobs", value_or("top_logprobs", 0)},
      {"temperature", request.sampling.temperature},
      {"reasoning", value_or("reasoning", {{"effort", nullptr}, {"summary", nullptr}})},
      {"max_output_tokens", or_null(fields, "max_output_tokens")},
      {"max_tool_calls", or_null(fields, "max_tool_calls")},
      {"store", responses.stores},
      {"background", false},
      {"service_tier", "default"},
      {"metadata", value_or("metadata", Json::object())},
      {"safety_identifier", or_null(fields, "safety_identifier")},
      {"prompt_cache_key", or_null(fields, "prompt_cache_key")},
      {"user", or_null(fields, "user")},
  };
}

Json previous_messages(Fields& fields, ResponseStore& store) {
  const auto id = fields.text("previous_response_id");
  if (!id) {
    return Json::array();
  }
  auto found = store.get(*id);
  if (!found) {
    throw ApiError(404, fmt::format("the previous response {} is not here", quote(*id)))
        .with_param("previous_response_id")
        .with_code("previous_response_not_found");
  }
  return std::move(found->messages);
}

void read_input(Fields& fields, ResponseStore& store, ResponsesRequest& responses) {
  const Json& input = fields.required("input");
  if (!input.is_string() && (!input.is_array() || input.empty() || input.size() > kMostItems)) {
    fields.fail("input", fmt::format("expected a string or a list of 1 to {} items", kMostItems));
  }
  responses.input =
      input.is_array() ? input
                       : Json::array({{{"type", "message"}, {"role", "user"}, {"content", input}}});
  Conversation conversation(previous_messages(fields, store));
  for (std::size_t i = 0; i < responses.input.size(); ++i) {
    conversation.add(responses.input[i], fmt::format("input[{}]", i));
  }
  responses.conversation = conversation.take();
  if (responses.conversation.empty() || responses.conversation.back()["role"] == "assistant") {
    fields.fail("input", "the last item is an answer: there is nothing to answer");
  }
  Json messages = Json::array();
  if (const auto instructions = fields.text("instructions")) {
    messages.push_back({{"role", "system"}, {"content", *instructions}});
  }
  messages.insert(messages.end(), responses.conversation.begin(), responses.conversation.end());
  responses.request.prompt.messages = std::move(messages);
}

}  // namespace

ResponsesRequest read_responses(const Json& body, const ServedModel& model, ResponseStore& store) {
  ResponsesRequest responses;
  Fields fields(body);
  engine::Request& request = responses.request;
  const FoundModel found = model.find(fields.text("model").value_or(""));
  responses.model = found.name;
  request.placement.adapter = found.adapter;
  read_input(fields, store, responses);
  request.prompt.tools = read_tools(fields, responses.custom_tools);
  read_tool_choice(fields, request);
  read_sampling(fields, model, request);
  read_format(fields, request);
  read_reasoning(fields, request);
  if (request.output.constraint && request.prompt.tools) {
    fields.fail("text", "an answer with a format can't call tools");
  }
  const auto limit = fields.integer("max_output_tokens", 1, kMaxInt);
  request.output.max_tokens = static_cast<int>(limit.value_or(engine::kNoTokenLimit));
  responses.streams = fields.flag("stream").value_or(false);
  responses.stores = fields.flag("store").value_or(true);
  if (const auto truncation = fields.text("truncation");
      truncation && *truncation != "auto" && *truncation != "disabled") {
    fields.fail("truncation", "expected auto or disabled");
  }
  request.output.tool_choice.is_parallel = fields.flag("parallel_tool_calls").value_or(true);
  fields.object("metadata");
  read_logprobs(fields, responses);
  fields.refuse({"background", "conversation", "prompt", "max_tool_calls"});
  fields.accept({"stream_options", "service_tier", "client_metadata", "context_management"});
  responses.echoed = echoed(fields, request, responses);
  fields.log_unknown("responses");
  return responses;
}

}  // namespace saker::server::responses
