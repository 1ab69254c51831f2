// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/chat_request.h"

#include "saker/base/utf8.h"
#include "saker/server/api/openai/prompt_logprobs.h"
#include "saker/server/turns/api_error.h"
#include "saker/server/turns/custom_tool.h"
#include "saker/server/turns/sampling_fields.h"
#include "saker/server/turns/tools.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace saker::server::openai {
namespace {

constexpr std::size_t kMostMessages = 10'000;
constexpr std::size_t kMostTools = 1024;
constexpr std::array<std::string_view, 6> kRoles = {
    "developer", "system", "user", "assistant", "tool", "function"
};

void check_content(const Json& message, const std::string& path) {
  const auto found = message.find("content");
  if (found == message.end() || found->is_null() || found->is_string()) {
    return;
  }
  if (!found->is_array()) {
    throw bad_field(
        path + ".content", "expected a string or a list of parts, got {}", kind_of(*found)
    );
  }
  for (std::size_t i = 0; i < found->size(); ++i) {
    const Json& part = (*found)[i];
    const std::string name = fmt::format("{}.content[{}]", path, i);
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
      throw bad_field(name, "expected an object with a type");
    }
    if (part["type"] == "text" && (!part.contains("text") || !part["text"].is_string())) {
      throw bad_field(name + ".text", "expected a string");
    }
  }
}

// {"type": "custom", "custom": {"name", "input"}} as a call of the function that stands for the tool.
void read_custom_call(Json& call, const std::string& path) {
  Fields outer(call, path);
  outer.required("custom");
  Fields custom(*outer.object("custom"), path + ".custom");
  custom.required("name");
  custom.required("input");
  Json function = {
      {"name", *custom.text("name")}, {"arguments", custom_arguments(*custom.text("input"))}
  };
  call.erase("custom");
  call["type"] = "function";
  call["function"] = std::move(function);
}

void read_calls(Json& message, const std::string& path) {
  const auto found = message.find("tool_calls");
  if (found == message.end() || found->is_null()) {
    return;
  }
  if (!found->is_array()) {
    throw bad_field(path + ".tool_calls", "expected a list, got {}", kind_of(*found));
  }
  for (std::size_t i = 0; i < found->size(); ++i) {
    Json& call = (*found)[i];
    const std::string name = fmt::format("{}.tool_calls[{}]", path, i);
    if (call.is_object() && call.value("type", Json()) == "custom") {
      read_custom_call(call, name);
    }
    const bool is_function = call.is_object() && call.contains("function") &&
                             call["function"].is_object() &&
                             call["function"].value("name", Json()).is_string();
    if (!is_function) {
      throw bad_field(name, "expected an object with a function and its name");
    }
  }
}

// The form of a tool that OpenAI's first API had.
Json as_tools(const Json& functions) {
  Json tools = Json::array();
  for (const Json& function : functions) {
    tools.push_back({{"type", "function"}, {"function", function}});
  }
  return tools;
}

void check_function(Fields& tool, const std::string& path) {
  tool.required("function");
  Fields function(*tool.object("function"), path + ".function");
  function.required("name");
  if (function.text("name")->empty()) {
    function.fail("name", "is empty");
  }
  function.text("description");
  function.object("parameters");
  function.flag("strict");
}

ChatTools checked_tools(const Json& tools, const std::string& path) {
  if (tools.size() > kMostTools) {
    throw bad_field(path, "expected at most {} tools, got {}", kMostTools, tools.size());
  }
  ChatTools checked{.functions = Json::array()};
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", path, i);
    Fields tool(tools[i], name);
    const std::string type = tool.text("type").value_or("function");
    if (type == "custom") {
      tool.required("custom");
      Fields custom(*tool.object("custom"), name + ".custom");
      checked.functions->push_back(custom_tool(custom));
      checked.custom.insert(*custom.text("name"));
      continue;
    }
    if (type != "function") {
      throw bad_field(name + ".type", "expected function or custom, got {}", quote(type));
    }
    check_function(tool, name);
    checked.functions->push_back(tools[i]);
  }
  return checked;
}

void read_response_format(Fields& fields, engine::Request& request) {
  const Json* given = fields.object("response_format");
  if (given == nullptr) {
    return;
  }
  Fields format(*given, fields.path_of("response_format"));
  format.required("type");
  const std::string type = *format.text("type");
  if (type == "text") {
    return;
  }
  if (type == "json_schema") {
    const Json* inner = format.object("json_schema");
    if (inner == nullptr) {  // llama-server's form.
      constrain_to_schema(format.required("schema"), format.path_of("schema"), request);
      return;
    }
    Fields named(*inner, format.path_of("json_schema"));
    constrain_to_schema(named.required("schema"), named.path_of("schema"), request);
    return;
  }
  if (type == "json_object") {
    const Json* schema = format.find("schema");
    constrain_to_schema(
        schema != nullptr ? *schema : Json{{"type", "object"}}, format.path_of("schema"), request
    );
    return;
  }
  format.fail("type", "expected text, json_object or json_schema, got " + quote(type));
}

void read_reasoning(Fields& fields, engine::Request& request) {
  if (const Json* kwargs = fields.object("chat_template_kwargs")) {
    request.prompt.template_kwargs = *kwargs;
  }
  if (const auto effort = fields.text("reasoning_effort")) {
    constexpr std::array<std::string_view, 7> kEfforts = {
        "none", "minimal", "low", "medium", "high", "xhigh", "max"
    };
    if (std::ranges::find(kEfforts, *effort) == kEfforts.end()) {
      fields.fail("reasoning_effort", "expected none, minimal, low, medium, high, xhigh or max");
    }
    request.prompt.think = *effort != "none";
    request.prompt.template_kwargs.emplace("reasoning_effort", *effort);
  }
}

void read_lengths(Fields& fields, engine::Request& request) {
  request.output.max_tokens = engine::kNoTokenLimit;
  const auto limit = fields.integer("max_completion_tokens", 1, kMaxInt);
  auto old_limit = fields.integer("max_tokens", -1, kMaxInt);
  if (old_limit && *old_limit == 0) {
    fields.fail("max_tokens", "expected at least 1");
  }
  for (const auto& found : {limit, old_limit, fields.integer("n_predict", -1, kMaxInt)}) {
    if (found && *found > 0) {
      request.output.max_tokens = static_cast<int>(*found);
      break;
    }
  }
}

void read_logprobs(Fields& fields, ChatRequest& chat) {
  constexpr int kMost = 20;
  const Json* given = fields.find("logprobs");
  const bool is_count = given != nullptr && given->is_number_integer();  // Old clients send it.
  const auto top = fields.integer("top_logprobs", 0, kMost);
  const bool wanted = is_count || fields.flag("logprobs").value_or(false);
  if (top && *top > 0 && !wanted) {
    fields.fail("top_logprobs", "needs logprobs");
  }
  if (wanted) {
    const auto count = is_count ? fields.integer("logprobs", 0, kMost) : top;
    chat.answering.top_logprobs = static_cast<int>(count.value_or(0));
    chat.request.output.logprobs = *chat.answering.top_logprobs;
    chat.request.output.token_events = true;
  }
}

// OpenAI's predicted outputs: {"type": "content", "content": a text or parts of text}.
std::optional<std::string> read_prediction(Fields& fields) {
  const Json* object = fields.object("prediction");
  if (object == nullptr) {
    return std::nullopt;
  }
  Fields prediction(*object, fields.path_of("prediction"));
  if (prediction.text("type").value_or("content") != "content") {
    prediction.fail("type", "expected \"content\"");
  }
  const Json& content = prediction.required("content");
  if (content.is_string()) {
    return content.get<std::string>();
  }
  check_content(*object, fields.path_of("prediction"));
  std::string text;
  for (const Json& part : content) {
    if (part["type"] != "text") {
      prediction.fail("content", "expected parts of text");
    }
    text += part["text"].get<std::string>();
  }
  return text;
}

}  // namespace

Json read_messages(const Json& given, const std::string& path) {
  Json messages = given;
  if (!messages.is_array() || messages.empty() || messages.size() > kMostMessages) {
    throw bad_field(
        path,
        "expected a list of 1 to {} messages, got {}",
        kMostMessages,
        messages.is_array() ? std::to_string(messages.size()) : std::string(kind_of(messages))
    );
  }
  bool has_turn = false;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", path, i);
    Fields message(messages[i], name);
    message.required("role");
    const std::string role = *message.text("role");
    if (std::ranges::find(kRoles, role) == kRoles.end()) {
      throw bad_field(
          name + ".role", "expected developer, system, user, assistant or tool, got {}", quote(role)
      );
    }
    has_turn = has_turn || (role != "system" && role != "developer");
    check_content(messages[i], name);
    read_calls(messages[i], name);
  }
  if (!has_turn) {
    throw bad_field(path, "there is nothing to answer: all messages are the system's");
  }
  return messages;
}

bool read_continuation(Fields& fields) {
  const bool continues = fields.flag("continue_final_message").value_or(false);
  const auto has_header = fields.flag("add_generation_prompt");
  if (continues && has_header.value_or(false)) {
    fields.fail("continue_final_message", "does not go with add_generation_prompt");
  }
  if (!continues && !has_header.value_or(true)) {
    fields.fail("add_generation_prompt", "an answer without a header has to continue a message");
  }
  return continues;
}

void read_streaming(Fields& fields, Answering& answering) {
  answering.streams = fields.flag("stream").value_or(false);
  if (const Json* given = fields.object("stream_options")) {
    if (!answering.streams) {
      fields.fail("stream_options", "needs stream");
    }
    Fields options(*given, fields.path_of("stream_options"));
    answering.includes_usage = options.flag("include_usage").value_or(false);
    answering.continuous_usage = options.flag("continuous_usage_stats").value_or(false);
  }
  answering.service_tier = fields.text("service_tier").value_or("default");
  if (answering.service_tier == "auto") {
    answering.service_tier = "default";
  }
}

ChatTools read_tools(Fields& fields) {
  const Json* tools = fields.list("tools");
  const Json* functions = fields.list("functions");
  if (tools != nullptr && !tools->empty()) {
    return checked_tools(*tools, fields.path_of("tools"));
  }
  if (functions != nullptr && !functions->empty()) {
    return checked_tools(as_tools(*functions), fields.path_of("functions"));
  }
  return {};
}

ChatRequest read_chat(const Json& body, const ServedModel& model) {
  ChatRequest chat;
  Fields fields(body);
  engine::Request& request = chat.request;
  const FoundModel found = model.find(fields.text("model").value_or(""));
  chat.answering.model = found.name;
  request.placement.adapter = found.adapter;
  request.prompt.messages = read_messages(fields.required("messages"), "messages");
  ChatTools tools = read_tools(fields);
  request.prompt.tools = std::move(tools.functions);
  chat.answering.custom_tools = std::move(tools.custom);
  read_tool_choice(fields, request);
  read_sampling(fields, model, request);
  read_stop(fields, "stop", request);
  read_lengths(fields, request);
  read_response_format(fields, request);
  read_constraint(fields, request);
  if (request.output.constraint && request.prompt.tools) {
    throw ApiError(400, "tools: an answer with a constraint can't call tools")
        .with_param("tools")
        .with_code("unsupported_value");
  }
  read_reasoning(fields, request);
  read_placement(fields, request);
  read_streaming(fields, chat.answering);
  read_logprobs(fields, chat);
  chat.answering.prompt_top = read_prompt_logprobs(fields, chat.answering.streams);
  request.output.n = static_cast<int>(fields.integer("n", 1, engine::kMostChoices).value_or(1));
  chat.answering.returns_token_ids = fields.flag("return_token_ids").value_or(false);
  if (chat.answering.returns_token_ids) {
    request.output.token_events = true;
  }
  // Calls run one after the other in any case; a client that wants one alone takes the first.
  request.output.tool_choice.is_parallel = fields.flag("parallel_tool_calls").value_or(true);
  fields.accept({"function_call"});
  fields.accept({"metadata", "store", "safety_identifier", "prompt_cache_key"});
  fields.accept({"prompt_cache_options", "prompt_cache_retention", "verbosity", "cache_prompt"});
  fields.accept({"keep_alive", "ttl", "id_slot", "skip_special_tokens", "reasoning_format"});
  fields.accept({"include_reasoning", "request_id", "session_id", "moderation", "parse_tool_calls"}
  );
  fields.accept({"spaces_between_special_tokens", "stream_interval", "timings_per_token"});
  fields.refuse({"audio", "web_search_options", "documents", "chat_template", "echo"});
  fields.refuse({"return_progress", "lora"});
  for (const std::string_view name : {"thinking_token_budget", "reasoning_budget_tokens"}) {
    if (const auto budget = fields.integer(name, 0, kMaxInt)) {
      chat.request.output.reasoning_budget = static_cast<int>(*budget);
    }
  }
  fields.refuse({"n_probs"});
  if (const Json* modalities = fields.list("modalities")) {
    if (*modalities != Json::array({"text"})) {
      fields.fail("modalities", "this server answers in text alone");
    }
  }
  request.prompt.continues_last = read_continuation(fields);
  request.drafting.prediction = read_prediction(fields);
  fields.log_unknown("chat completions");
  return chat;
}

}  // namespace saker::server::openai
