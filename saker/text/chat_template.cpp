// SPDX-License-Identifier: Apache-2.0
#include "saker/text/chat_template.h"

#include "saker/base/error.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"
#include "saker/text/rust_bridge.h"
#include "saker/text/tokenizer_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <ranges>
#include <string_view>
#include <system_error>
#include <utility>

namespace saker::text {
namespace {

using Sources = std::map<std::string, std::string>;

constexpr std::size_t kMaxTemplateBytes = std::size_t{1} << 18;
constexpr std::string_view kDefault = "default";
constexpr std::string_view kToolUse = "tool_use";

bool is_present(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Sources read_jinja_files(const std::filesystem::path& model_dir) {
  Sources sources;
  if (const auto path = model_dir / "chat_template.jinja"; is_present(path)) {
    sources.emplace(kDefault, read_file(path, kMaxTemplateBytes));
  }
  for (const auto& path : additional_chat_templates(model_dir)) {
    sources.emplace(path.stem().string(), read_file(path, kMaxTemplateBytes));
  }
  return sources;
}

// A `chat_template` value: a string, or a list of {"name", "template"}.
Sources read_value(const Json& value, const std::string& where) {
  if (value.is_null()) {
    return {};
  }
  if (value.is_string()) {
    return {{std::string(kDefault), value.get<std::string>()}};
  }
  Sources sources;
  const auto entry_ok = [](const Json& entry) {
    return entry.is_object() && entry.contains("name") && entry.at("name").is_string() &&
           entry.contains("template") && entry.at("template").is_string();
  };
  require(
      value.is_array() && std::ranges::all_of(value, entry_ok),
      ErrorCode::kCorruptData,
      "{}: chat_template: got {}, expected a string or a list of {{name, template}}",
      where,
      describe_json(value)
  );
  for (const auto& entry : value) {
    sources[entry.at("name").get<std::string>()] = entry.at("template").get<std::string>();
  }
  return sources;
}

Sources find_sources(const std::filesystem::path& model_dir, const TokenizerConfig& config) {
  if (auto sources = read_jinja_files(model_dir); !sources.empty()) {
    return sources;
  }
  if (const auto path = model_dir / "chat_template.json"; is_present(path)) {
    const auto json = read_json_file(path);
    if (json.is_object() && json.contains("chat_template")) {
      return read_value(json.at("chat_template"), path.string());
    }
  }
  return read_value(config.chat_template, (model_dir / "tokenizer_config.json").string());
}

// Keys without a value are dropped, since many templates print them; reasoning goes by three names,
// of which templates read one.
Json normalize(const Json& message) {
  const auto given = [&](const char* key) -> const Json* {
    const auto found = message.find(key);
    return found == message.end() || found->is_null() ? nullptr : &*found;
  };
  const Json* reasoning = nullptr;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    reasoning = reasoning == nullptr ? given(name) : reasoning;
  }
  // Appended: assignment looks through all keys before.
  Json::object_t fields;
  if (reasoning != nullptr) {
    const Json* thinking = given("thinking");
    fields.emplace_back("thinking", thinking == nullptr ? *reasoning : *thinking);
  }
  for (const auto& [key, value] : message.items()) {
    if (!value.is_null() && key != "thinking") {
      fields.emplace_back(key, value);
    }
  }
  if (reasoning != nullptr && given("reasoning_content") == nullptr) {
    fields.emplace_back("reasoning_content", *reasoning);
  }
  return fields;
}

Json normalize_all(const Json& messages) {
  const auto is_object = [](const Json& message) { return message.is_object(); };
  require(
      messages.is_array() && !messages.empty() && std::ranges::all_of(messages, is_object),
      ErrorCode::kInvalidArgument,
      "messages: got {}, expected a list of at least one object",
      describe_json(messages)
  );
  Json normalized = Json::array();
  for (const auto& message : messages) {
    normalized.push_back(normalize(message));
  }
  return normalized;
}

// As CBOR, which keeps each bit of a number, and the digits of long integers
// (base/json/json_numbers.h).
std::string dump(const Json& variables) {
  std::string cbor;
  Json::to_cbor(variables, cbor);
  return cbor;
}

}  // namespace

// Compiled when it is first used: a model whose template is broken still completes plain text.
class ChatTemplate::Compiled {
 public:
  explicit Compiled(std::string source) : source_(std::move(source)) {}

  std::string render(const std::string& variables) const {
    SakerRsBytes text{};
    SakerRsBytes error{};
    const bool ok = saker_rs_template_render(
        &compiled(), rust_data(variables), variables.size(), &text, &error
    );
    check_rust(ok, error, ErrorCode::kInvalidArgument, "chat template");
    return take_string(text);
  }

 private:
  const SakerRsTemplate& compiled() const {
    const std::lock_guard lock(mutex_);
    if (!rust_) {
      SakerRsTemplate* rust = nullptr;
      SakerRsBytes error{};
      const bool ok = saker_rs_template_new(rust_data(source_), source_.size(), &rust, &error);
      check_rust(ok, error, ErrorCode::kCorruptData, "chat template");
      rust_.reset(rust);
    }
    return *rust_;
  }

  std::string source_;
  mutable std::mutex mutex_;
  mutable RustTemplate rust_;  // Guarded by mutex_; never changes once set.
};

ChatTemplate::ChatTemplate(std::string source, std::map<std::string, std::string> special_tokens)
    : special_tokens_(std::move(special_tokens)) {
  templates_.emplace(kDefault, std::make_shared<Compiled>(std::move(source)));
}

std::vector<std::filesystem::path> additional_chat_templates(const std::filesystem::path& model_dir
) {
  std::vector<std::filesystem::path> found;
  std::error_code failed;
  for (const auto& entry :
       std::filesystem::directory_iterator(model_dir / "additional_chat_templates", failed)) {
    if (entry.path().extension() == ".jinja" && entry.is_regular_file(failed)) {
      found.push_back(entry.path());
    }
  }
  std::ranges::sort(found);
  return found;
}

std::optional<ChatTemplate> ChatTemplate::load(const std::filesystem::path& model_dir) {
  auto config = load_tokenizer_config(model_dir);
  ChatTemplate chat_template;
  for (auto& [name, source] : find_sources(model_dir, config)) {
    chat_template.templates_.emplace(name, std::make_shared<Compiled>(std::move(source)));
  }
  chat_template.special_tokens_ = std::move(config.special_tokens);
  return chat_template.templates_.empty() ? std::nullopt : std::optional(std::move(chat_template));
}

const ChatTemplate::Compiled& ChatTemplate::choose(bool has_tools) const {
  auto found = has_tools ? templates_.find(std::string(kToolUse)) : templates_.end();
  if (found == templates_.end()) {
    found = templates_.find(std::string(kDefault));
  }
  require(
      found != templates_.end(),
      ErrorCode::kUnsupported,
      "chat template: got the names {}, expected one named default",
      fmt::join(templates_ | std::views::keys, ", ")
  );
  return *found->second;
}

std::string ChatTemplate::render(const Json& messages, const RenderOptions& options) const {
  require(
      options.kwargs.is_object(),
      ErrorCode::kInvalidArgument,
      "template variables: got {}, expected an object",
      describe_json(options.kwargs)
  );
  require(
      !options.tools || options.tools->is_null() || options.tools->is_array(),
      ErrorCode::kInvalidArgument,
      "tools: got {}, expected a list",
      options.tools ? describe_json(*options.tools) : ""
  );
  const Json tools = options.tools.value_or(nullptr);
  Json variables = {{"tools", tools}, {"documents", nullptr}};
  for (const auto& [name, token] : special_tokens_) {
    variables[name] = token;
  }
  variables.update(options.kwargs);
  for (const auto* name : {"messages", "tools", "add_generation_prompt"}) {
    require(
        !options.kwargs.contains(name),
        ErrorCode::kInvalidArgument,
        "template variables: {} has its own argument",
        name
    );
  }
  variables["messages"] = normalize_all(messages);
  variables["add_generation_prompt"] = options.add_generation_prompt;
  return choose(!tools.is_null()).render(dump(variables));
}

}  // namespace saker::text
