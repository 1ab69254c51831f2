// SPDX-License-Identifier: Apache-2.0
#include "saker/text/chat_template.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/text/chat_messages.h"
#include "saker/text/continued_message.h"
#include "saker/text/rust_bridge.h"
#include "saker/text/template_traits.h"
#include "saker/text/tokenizer_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

namespace saker::text {
namespace {

using Sources = std::map<std::string, std::string>;

constexpr std::size_t kMaxTemplateBytes = std::size_t{1} << 18;
constexpr std::string_view kDefault = "default";
constexpr std::string_view kToolUse = "tool_use";

Sources read_jinja_files(const ModelTexts& texts) {
  Sources sources;
  if (constexpr std::string_view kFile = "chat_template.jinja"; texts.has(kFile)) {
    sources.emplace(kDefault, texts.read(kFile, kMaxTemplateBytes));
  }
  for (const std::string& name : additional_chat_templates(texts)) {
    sources[std::filesystem::path(name).stem().string()] = texts.read(name, kMaxTemplateBytes);
  }
  return sources;
}

// A `chat_template` value: a string, a list of {"name", "template"}, or templates by name.
Sources read_value(const Json& value, const std::string& where) {
  Sources sources;
  const auto name = [&](const std::string& key, const Json& source) {
    require(
        source.is_string(),
        ErrorCode::kCorruptData,
        "{}: chat_template {}: got {}, expected a string",
        where,
        quote(key),
        describe_json(source)
    );
    sources[key] = source.get<std::string>();
  };
  const auto is_entry = [](const Json& entry) {
    return entry.is_object() && entry.contains("name") && entry.at("name").is_string() &&
           entry.contains("template");
  };
  if (value.is_string()) {
    name(std::string(kDefault), value);
  } else if (value.is_object()) {
    for (const auto& [key, source] : value.items()) {
      name(key, source);
    }
  } else if (!value.is_null()) {
    require(
        value.is_array() && std::ranges::all_of(value, is_entry),
        ErrorCode::kCorruptData,
        "{}: chat_template: got {}, expected a string or a list of {{name, template}}",
        where,
        describe_json(value)
    );
    for (const auto& entry : value) {
      name(entry.at("name").get<std::string>(), entry.at("template"));
    }
  }
  return sources;
}

// The words of a template that may be names of variables, possibly among others.
class Names {
 public:
  explicit Names(std::string_view source) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= source.size(); ++i) {
      if (i == source.size() || !is_part(source[i])) {
        if (i > begin) {
          names_.emplace(source.substr(begin, i - begin));
        }
        begin = i + 1;
      }
    }
  }

  // True if the template may read a variable of this name. Names with letters beyond ASCII are not
  // checked.
  bool may_have(std::string_view name) const {
    return !std::ranges::all_of(name, is_part) || names_.contains(name);
  }

 private:
  static bool is_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  std::set<std::string, std::less<>> names_{"messages"};  // Always checked.
};

// A template's variables: the given ones that it may read. Files and requests may give hundreds of
// thousands.
class Variables {
 public:
  explicit Variables(const Names& names) : names_(names) {}

  void set(const std::string& name, Json value) {
    if (names_.may_have(name)) {
      values_.insert_or_assign(name, std::move(value));
    }
  }

  void set_all(const Json& object) {
    for (const auto& [name, value] : object.items()) {
      set(name, value);
    }
  }

  // As CBOR, which keeps all bits of numbers and the digits of long integers
  // (base/json/json_numbers.h).
  std::string dump() && {
    Json::object_t members;
    for (auto& [name, value] : values_) {
      // Appended directly: an ordered object searches all members for each new one.
      members.Container::emplace_back(name, std::move(value));
    }
    std::string cbor;
    Json::to_cbor(Json(std::move(members)), cbor);
    return cbor;
  }

 private:
  const Names& names_;
  std::map<std::string, Json> values_;
};

// The variable names that published templates use for it.
Json thinking_variables(std::optional<bool> thinking) {
  if (!thinking) {
    return Json::object();
  }
  return {
      {"enable_thinking", *thinking},
      {"thinking", *thinking},
      {"thinking_mode", *thinking ? "enabled" : "disabled"},
  };
}

// Processor time in milliseconds. Published templates take 700 ms for a thousand tool calls.
constexpr std::uint32_t kRenderTime = 3500;
// Processor time in milliseconds of one of the dozen probes of a template; published templates take
// 1 ms.
constexpr std::uint32_t kProbeTime = 100;

}  // namespace

// Compiled on first use: a model with a broken template can still complete plain text.
class ChatTemplate::Compiled {
 public:
  Compiled(std::string source, const std::map<std::string, std::string>& special_tokens)
      : source_(std::move(source)),
        names_(source_),
        traits_(
            [this](const Json& messages, const Json& tools) {
              return try_to_render(messages, tools);
            },
            source_
        ) {
    for (const auto& [name, token] : special_tokens) {
      if (names_.may_have(name)) {
        special_tokens_.emplace_back(name, token);
      }
    }
  }

  const TemplateTraits& traits() const { return traits_; }

  Variables variables(const Json& tools) const {
    Variables variables(names_);
    variables.set("tools", tools);
    variables.set("documents", nullptr);
    for (const auto& [name, token] : special_tokens_) {
      variables.set(name, token);
    }
    return variables;
  }

  const std::string& source() const { return source_; }

  std::string render(Variables&& variables, std::uint32_t milliseconds) const {
    const std::string cbor = std::move(variables).dump();
    SakerRsBytes text{};
    SakerRsBytes error{};
    const bool ok = saker_rs_template_render(
        &compiled(), rust_data(cbor), cbor.size(), milliseconds, &text, &error
    );
    check_rust(ok, error, ErrorCode::kInvalidArgument, "chat template");
    return take_string(text);
  }

 private:
  std::optional<std::string> try_to_render(const Json& messages, const Json& tools) const {
    Variables given = variables(tools);
    given.set("messages", messages);
    given.set("add_generation_prompt", false);
    try {
      return render(std::move(given), kProbeTime);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

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
  Names names_;
  std::vector<std::pair<std::string, std::string>> special_tokens_;  // That the template may read.
  TemplateTraits traits_;
  mutable std::mutex mutex_;
  mutable RustTemplate rust_;  // Guarded by mutex_; never changes once set.
};

ChatTemplate::ChatTemplate(std::string source, std::map<std::string, std::string> special_tokens)
    : special_tokens_(std::move(special_tokens)) {
  templates_.emplace(kDefault, std::make_shared<Compiled>(std::move(source), special_tokens_));
}

std::vector<std::string> additional_chat_templates(const ModelTexts& texts) {
  return texts.names_in("additional_chat_templates", ".jinja");
}

std::map<std::string, std::string> chat_template_sources(
    const ModelTexts& texts, const TokenizerConfig& config
) {
  if (auto sources = read_jinja_files(texts); !sources.empty()) {
    return sources;
  }
  require(config.damage.empty(), ErrorCode::kCorruptData, "{}", config.damage);
  auto sources = read_value(config.chat_template, texts.shown("tokenizer_config.json"));
  if (constexpr std::string_view kFile = "chat_template.json";
      sources.empty() && texts.has(kFile)) {
    const auto json = texts.read_json(kFile);
    if (json.is_object() && json.contains("chat_template")) {
      return read_value(json.at("chat_template"), texts.shown(kFile));
    }
  }
  return sources;
}

std::optional<ChatTemplate> ChatTemplate::load(const ModelTexts& texts) {
  return load(texts, load_tokenizer_config(texts));
}

std::optional<ChatTemplate> ChatTemplate::load(
    const ModelTexts& texts, const TokenizerConfig& config
) {
  ChatTemplate chat_template;
  chat_template.special_tokens_ = config.special_tokens;
  try {
    for (auto& [name, source] : chat_template_sources(texts, config)) {
      chat_template.templates_.emplace(
          name, std::make_shared<Compiled>(std::move(source), config.special_tokens)
      );
    }
  } catch (const Error& error) {
    chat_template.damage_ = error.what();
    return chat_template;
  }
  return chat_template.templates_.empty() ? std::nullopt : std::optional(std::move(chat_template));
}

void ChatTemplate::check() const {
  require(damage_.empty(), ErrorCode::kCorruptData, "{}", damage_);
}

const ChatTemplate::Compiled& ChatTemplate::choose(bool has_tools) const {
  check();
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
  return render_within(kRenderTime, messages, options);
}

std::optional<std::string> ChatTemplate::try_to_render(
    const Json& messages, const RenderOptions& options
) const {
  try {
    return render_within(kProbeTime, messages, options);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string_view ChatTemplate::source() const {
  const auto found = templates_.find(std::string(kToolUse));
  const auto chosen = found == templates_.end() ? templates_.find(std::string(kDefault)) : found;
  return chosen == templates_.end() ? std::string_view() : chosen->second->source();
}

std::string ChatTemplate::render_within(
    std::uint32_t milliseconds, const Json& messages, const RenderOptions& options
) const {
  require(
      options.template_kwargs.is_object(),
      ErrorCode::kInvalidArgument,
      "template variables: got {}, expected an object",
      describe_json(options.template_kwargs)
  );
  require(
      !options.tools || options.tools->is_null() || options.tools->is_array(),
      ErrorCode::kInvalidArgument,
      "tools: got {}, expected a list",
      options.tools ? describe_json(*options.tools) : ""
  );
  const Json tools = options.tools.value_or(nullptr);
  for (const auto* name : {"messages", "tools", "add_generation_prompt"}) {
    require(
        !options.template_kwargs.contains(name),
        ErrorCode::kInvalidArgument,
        "template variables: {} has its own argument",
        name
    );
  }
  const Compiled& chosen = choose(!tools.is_null());
  Variables variables = chosen.variables(tools);
  variables.set_all(thinking_variables(options.think));
  variables.set_all(options.template_kwargs);
  variables.set(
      "messages",
      fit_messages(options.continues_last ? with_mark(messages) : messages, chosen.traits())
  );
  variables.set("add_generation_prompt", options.add_generation_prompt && !options.continues_last);
  std::string prompt = chosen.render(std::move(variables), milliseconds);
  return options.continues_last ? cut_at_mark(std::move(prompt)) : prompt;
}

TemplateCapabilities ChatTemplate::capabilities() const {
  TemplateCapabilities found;
  if (source().empty()) {
    return found;
  }
  const TemplateTraits& traits = choose(true).traits();
  const auto called = [](const char* name) {
    return Json{{"type", "function"}, {"function", {{"name", name}, {"arguments", {{"a", 1}}}}}};
  };
  const auto declared = [](const char* name) {
    const Json parameters = {{"type", "object"}, {"properties", Json::object()}};
    return Json{
        {"type", "function"},
        {"function", {{"name", name}, {"description", ""}, {"parameters", parameters}}},
    };
  };
  const Json tools = Json::array({declared("listed_one"), declared("listed_two")});
  const Json question = {{"role", "user"}, {"content", "question"}};
  Json call = {{"role", "assistant"}, {"content", ""}};
  const auto shows = [&](const Json& calls, const Json& results, std::string_view text) {
    call["tool_calls"] = calls;
    Json messages = Json::array({question, call});
    for (const Json& result : results) {
      messages.push_back({{"role", "tool"}, {"content", result}});
    }
    const auto prompt = try_to_render(messages, {.tools = tools});
    return prompt && prompt->find(text) != std::string::npos;
  };
  const Json one = Json::array({called("sought_one")});
  const Json two = Json::array({called("sought_one"), called("sought_two")});
  const Json messages = Json::array({question});
  found.takes_tools = try_to_render(messages, {.tools = tools}) != try_to_render(messages);
  found.takes_calls = shows(one, Json::array(), "sought_one");
  found.takes_parallel_calls = shows(two, Json::array(), "sought_two");
  found.takes_results = shows(one, Json::array({"sought_result"}), "sought_result");
  found.takes_system = traits.takes_system();
  found.takes_late_system = traits.takes_second_system("system");
  found.takes_developer = traits.takes_developer();
  found.arguments_are_text = traits.call_form().arguments_are_text;
  return found;
}

bool ChatTemplate::switches_thinking() const {
  const Json question = {{{"role", "user"}, {"content", "question"}}};
  const auto rendered = [&](bool thinking) {
    return try_to_render(question, {.tools = std::nullopt, .think = thinking});
  };
  return rendered(true) != rendered(false);
}

}  // namespace saker::text
