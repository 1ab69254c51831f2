// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/anthropic/messages_request.h"

#include "saker/base/json/json_numbers.h"
#include "saker/base/utf8.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/sampling_fields.h"
#include "saker/server/turns/tools.h"

#include <spdlog/spdlog.h>

#include <array>
#include <string_view>
#include <utility>

namespace saker::server::anthropic {
namespace {

constexpr std::size_t kMostMessages = 10'000;
constexpr std::size_t kMostTools = 1024;
// It changes with each request of one client, so that no prompt would be found in the prefix cache.
constexpr std::string_view kBillingHeader = "x-anthropic-billing-header:";

std::string block_type(const Json& block, const std::string& path) {
  Fields fields(block, path);
  fields.required("type");
  return *fields.text("type");
}

std::string block_text(const Json& block, const std::string& path) {
  Fields fields(block, path);
  fields.required("text");
  return *fields.text("text");
}

// A text, or the texts of blocks, one below the other.
std::string joined_text(const Json& content, const std::string& path) {
  if (content.is_string()) {
    return content.get<std::string>();
  }
  if (!content.is_array()) {
    throw bad_field(path, "expected a string or a list of blocks, got {}", kind_of(content));
  }
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", path, i);
    const std::string type = block_type(content[i], name);
    if (type != "text") {
      throw bad_field(name + ".type", "this model takes text alone, got {}", quote(type));
    }
    const std::string piece = block_text(content[i], name);
    if (!piece.starts_with(kBillingHeader)) {
      text += (text.empty() ? "" : "\n") + piece;
    }
  }
  return text;
}

void add_text(Json& message, const std::string& text) {
  std::string& content = message["content"].get_ref<std::string&>();
  content += (content.empty() ? "" : "\n") + text;
}

Json tool_result(const Json& block, const std::string& path) {
  Fields fields(block, path);
  fields.required("tool_use_id");
  const Json* content = fields.find("content");
  return {
      {"role", "tool"},
      {"tool_call_id", *fields.text("tool_use_id")},
      {"content", content == nullptr ? "" : joined_text(*content, fields.path_of("content"))},
  };
}

// Results of tools come first, as messages of their own; the texts beside them follow.
void add_user_blocks(const Json& blocks, const std::string& path, Json& messages) {
  Json user = {{"role", "user"}, {"content", ""}};
  bool has_text = false;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", path, i);
    const std::string type = block_type(blocks[i], name);
    if (type == "tool_result") {
      messages.push_back(tool_result(blocks[i], name));
    } else if (type == "text") {
      has_text = true;
      add_text(user, block_text(blocks[i], name));
    } else {
      throw bad_field(name + ".type", "this model takes text alone, got {}", quote(type));
    }
  }
  if (has_text) {
    messages.push_back(std::move(user));
  }
}

Json tool_call(const Json& block, const std::string& path) {
  Fields fields(block, path);
  fields.required("id");
  fields.required("name");
  const Json* input = fields.object("input");
  return {
      {"id", *fields.text("id")},
      {"type", "function"},
      {"function",
       {{"name", *fields.text("name")},
        {"arguments", write_json(input == nullptr ? Json::object() : *input)}}},
  };
}

void add_assistant_blocks(const Json& blocks, const std::string& path, Json& messages) {
  Json message = {{"role", "assistant"}, {"content", ""}};
  std::string thoughts;
  Json calls = Json::array();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string name = fmt::format("{}[{}]", path, i);
    const std::string type = block_type(blocks[i], name);
    if (type == "text") {
      add_text(message, block_text(blocks[i], name));
    } else if (type == "thinking") {
      Fields thought(blocks[i], name);
      thoughts += thought.text("thinking").value_or("");
    } else if (type == "tool_use") {
      calls.push_back(tool_call(blocks[i], name));
    } else if (type != "redacted_thinking") {
      throw bad_field(name + ".type", "unknown type of block {}", quote(type));
    }
  }
  if (!thoughts.empty()) {
    message["reasoning_content"] = std::move(thoughts);
  }
  if (!calls.empty()) {
    message["tool_calls"] = std::move(calls);
  }
  messages.push_back(std::move(message));
}

void add_message(const Json& given, const std::string& path, Json& messages) {
  Fields fields(given, path);
  fields.required("role");
  const std::string role = *fields.text("role");
  const Json& content = fields.required("content");
  const std::string name = fields.path_of("content");
  if (role != "user" && role != "assistant" && role != "system") {
    throw bad_field(path + ".role", "expected user or assistant, got {}", quote(role));
  }
  if (content.is_string() || role == "system") {
    messages.push_back({{"role", role}, {"content", joined_text(content, name)}});
  } else if (!content.is_array()) {
    throw bad_field(name, "expected a string or a list of blocks, got {}", kind_of(content));
  } else if (role == "user") {
    add_user_blocks(content, name, messages);
  } else {
    add_assistant_blocks(content, name, messages);
  }
}

Json read_conversation(Fields& fields) {
  Json messages = Json::array();
  if (const Json* system = fields.find("system")) {
    const std::string text = joined_text(*system, "system");
    if (!text.empty()) {
      messages.push_back({{"role", "system"}, {"content", text}});
    }
  }
  fields.required("messages");
  const Json& given = *fields.list("messages");
  if (given.empty() || given.size() > kMostMessages) {
    fields.fail("messages", fmt::format("expected 1 to {} messages", kMostMessages));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    add_message(given[i], fmt::format("messages[{}]", i), messages);
  }
  if (messages.empty()) {
    fields.fail("messages", "there is nothing to answer");
  }
  return messages;
}

// Tools that the vendor's own servers would run can't be had here.
bool is_hosted(std::string_view type) {
  constexpr std::array<std::string_view, 5> kHosted = {
      "web_search", "web_fetch", "code_execution", "mcp", "tool_search"
  };
  for (const std::string_view hosted : kHosted) {
    if (type.starts_with(hosted)) {
      return true;
    }
  }
  return false;
}

std::optional<Json> read_tools(Fields& fields) {
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
    const std::string type = tool.text("type").value_or("custom");
    if (is_hosted(type)) {
      spdlog::info("messages: the hosted tool {} is left out", quote(type));
      continue;
    }
    tools.push_back(function_tool(tool, "input_schema"));
  }
  return tools.empty() ? std::nullopt : std::optional(std::move(tools));
}

void read_choice(Fields& fields, engine::Request& request) {
  const Json* given = fields.object("tool_choice");
  if (given == nullptr) {
    return;
  }
  Fields choice(*given, "tool_choice");
  choice.required("type");
  const std::string type = *choice.text("type");
  if (type == "none") {
    request.prompt.tools.reset();
    return;
  }
  const bool is_forced = type == "any" || type == "tool";
  if (!is_forced && type != "auto") {
    choice.fail("type", "expected auto, any, tool or none, got " + quote(type));
  }
  if (is_forced && !request.prompt.tools) {
    choice.fail("type", "there are no tools");
  }
  if (type == "any") {
    request.output.tool_choice.use = engine::ToolUse::kRequired;
  } else if (type == "tool") {
    choice.required("name");
    force_tool(*choice.text("name"), choice.path_of("name"), request);
  }
  request.output.tool_choice.is_parallel =
      !choice.flag("disable_parallel_tool_use").value_or(false);
}

void read_thinking(Fields& fields, engine::Request& request) {
  if (const Json* given = fields.object("thinking")) {
    Fields thinking(*given, "thinking");
    thinking.required("type");
    const std::string type = *thinking.text("type");
    if (type != "enabled" && type != "disabled" && type != "adaptive") {
      thinking.fail("type", "expected enabled, disabled or adaptive, got " + quote(type));
    }
    request.prompt.think = type != "disabled";
    if (const auto budget = thinking.integer("budget_tokens", 1, kMaxInt)) {
      request.output.reasoning_budget = static_cast<int>(*budget);
    }
  }
  const Json* given = fields.object("output_config");
  if (given == nullptr) {
    return;
  }
  Fields config(*given, "output_config");
  if (const auto effort = config.text("effort")) {
    request.prompt.template_kwargs.emplace("reasoning_effort", *effort);
  }
  if (const Json* format = config.object("format")) {
    Fields inner(*format, config.path_of("format"));
    inner.required("type");
    if (*inner.text("type") != "json_schema") {
      inner.fail("type", "expected json_schema");
    }
    constrain_to_schema(inner.required("schema"), inner.path_of("schema"), request);
  }
}

}  // namespace

MessagesRequest read_messages(const Json& body, const ServedModel& model, Purpose purpose) {
  MessagesRequest messages;
  Fields fields(body);
  engine::Request& request = messages.request;
  const FoundModel found = model.find(fields.text("model").value_or(""));
  messages.model = found.name;
  request.placement.adapter = found.adapter;
  request.prompt.messages = read_conversation(fields);
  request.prompt.continues_last = request.prompt.messages->back()["role"] == "assistant";
  request.prompt.tools = read_tools(fields);
  read_choice(fields, request);
  read_sampling(fields, model, request);
  read_stop(fields, "stop_sequences", request);
  read_thinking(fields, request);
  if (request.output.constraint && request.prompt.tools) {
    throw bad_field("output_config.format", "an answer with a schema can't call tools");
  }
  if (purpose == Purpose::kAnswer) {
    fields.required("max_tokens");
  }
  request.output.max_tokens =
      static_cast<int>(fields.integer("max_tokens", 1, kMaxInt).value_or(1));
  messages.streams = fields.flag("stream").value_or(false);
  if (const Json* metadata = fields.object("metadata")) {
    Fields inner(*metadata, "metadata");
    request.placement.user = inner.text("user_id").value_or("").substr(0, 256);
  }
  fields.accept({"service_tier", "context_management", "cache_control", "speed", "diagnostics"});
  fields.accept({"betas", "inference_geo"});
  fields.refuse({"container", "mcp_servers"});
  fields.log_unknown("messages");
  return messages;
}

}  // namespace saker::server::anthropic
