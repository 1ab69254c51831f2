// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/call_grammar.h"

#include "saker/base/error.h"
#include "saker/text/output/argument_types.h"
#include "saker/text/output/call_reader.h"
#include "saker/text/output/call_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace saker::text {
namespace {

constexpr std::string_view kAnyText = R"(/(?s:.*)/)";

// Arguments of a call, in the order of the schema.
struct Argument {
  std::string name;
  Json schema;
  bool is_required = false;
  bool is_text = false;
};

class Grammar {
 public:
  Grammar(const OutputFormat& format, const Tokenizer& tokenizer, const CallGrammarOptions& options)
      : format_(format), tokenizer_(tokenizer), options_(options) {}

  std::string make(const std::vector<Tool>& tools);

 private:
  std::string literal(std::string_view text) const;
  bool begins_with_special(std::string_view text) const;
  std::string json(const Tool& tool, Json schema) const;
  std::string rule(const std::string& body);
  std::string call(const CallFormat& format, const Tool& tool);
  std::string object(const CallFormat& format, const Tool& tool);
  std::string named(const CallFormat& format, const Tool& tool);
  std::string tagged(const CallFormat& format, const Tool& tool);
  std::string channel(const Tool& tool);
  std::string text_up_to(std::string_view close);
  std::string text_value(const Argument& argument, std::string_view close);
  std::string tag(const CallFormat& format, const Tool& tool, const Argument& argument);
  template <typename Write>
  std::string arguments(const Tool& tool, std::string_view separator, Write&& write);
  std::string section(const CallFormat& format, const std::string& any);
  std::string within_text(const CallFormat& format, const std::string& any);

  const OutputFormat& format_;
  const Tokenizer& tokenizer_;
  CallGrammarOptions options_;
  std::string rules_;
  std::size_t count_ = 0;
};

std::string quoted_lark(std::string_view text) {
  return text.empty() ? std::string() : Json(text).dump();
}

// A text, whose special tokens are written by their ids.
std::string Grammar::literal(std::string_view text) const {
  std::string written;
  std::string plain;
  const auto add = [&](const std::string& part) {
    written += (written.empty() || part.empty() ? "" : " ") + part;
  };
  for (const std::int32_t id : tokenizer_.encode(text, {.add_special_tokens = false})) {
    if (!tokenizer_.is_special(id)) {
      continue;
    }
    const std::string piece = tokenizer_.token_piece(id);
    const auto at = text.find(piece);
    if (at == std::string_view::npos) {
      continue;
    }
    add(quoted_lark(text.substr(0, at)));
    add(fmt::format("<[{}]>", id));
    text.remove_prefix(at + piece.size());
  }
  add(quoted_lark(text));
  return written;
}

bool Grammar::begins_with_special(std::string_view text) const {
  return literal(trimmed(text)).starts_with("<[");
}

std::string Grammar::rule(const std::string& body) {
  const std::string name = fmt::format("r{}", count_++);
  rules_ += name + ": " + body + "\n";
  return name;
}

std::string Grammar::json(const Tool& tool, Json schema) const {
  if (!schema.is_object()) {
    schema = Json::object();
  }
  Json guidance = {
      {"whitespace_flexible", false}, {"item_separator", ", ?"}, {"key_separator", ": ?"}
  };
  if (!tool.is_strict) {
    guidance["lenient"] = true;
  }
  schema["x-guidance"] = std::move(guidance);
  return "%json " + schema.dump();
}

Json schema_of(const Tool& tool, bool reads_schemas) {
  Json schema = reads_schemas && tool.parameters.is_object() ? tool.parameters : Json::object();
  if (!schema.contains("type")) {
    schema["type"] = "object";
  }
  return schema;
}

std::vector<Argument> arguments_of(const Tool& tool) {
  std::vector<Argument> found;
  const Json& schema = tool.parameters;
  const auto properties = schema.is_object() ? schema.find("properties") : schema.end();
  if (!schema.is_object() || properties == schema.end() || !properties->is_object()) {
    return found;
  }
  const Json required = schema.value("required", Json::array());
  for (const auto& [name, property] : properties->items()) {
    Json own = property.is_object() ? property : Json::object();
    if (schema.contains("$defs")) {
      own["$defs"] = schema["$defs"];
    }
    found.push_back({
        .name = name,
        .schema = std::move(own),
        .is_required = std::ranges::find(required, Json(name)) != required.end(),
        .is_text = types_of_argument(tool, name).is_text_alone(),
    });
  }
  return found;
}

// The arguments in order; those that are not required may be left out.
template <typename Write>
std::string Grammar::arguments(const Tool& tool, std::string_view separator, Write&& write) {
  const std::vector<Argument> list = arguments_of(tool);
  std::string rest_if_none;  // Behind no argument so far.
  std::string rest;          // Behind one or several.
  for (std::size_t i = list.size(); i-- > 0;) {
    const std::string one = rule(write(list[i]));
    const std::string between = quoted_lark(separator);
    const std::string first = one + " " + rest;
    const std::string more = between + " " + one + " " + rest;
    if (list[i].is_required) {
      rest_if_none = rule(first);
      rest = rule(more);
    } else {
      rest_if_none = rule(first + " | " + (rest_if_none.empty() ? "\"\"" : rest_if_none));
      rest = rule(more + " | " + (rest.empty() ? "\"\"" : rest));
    }
  }
  return rest_if_none;
}

std::string Grammar::object(const CallFormat& format, const Tool& tool) {
  const Json schema = schema_of(tool, options_.reads_schemas);
  if (format.is_python) {
    const std::string list = arguments(tool, ", ", [&](const Argument& argument) {
      return literal(argument.name + "=") + " " + json(tool, argument.schema);
    });
    return literal(tool.name + "(") + " " + list + " " + literal(")");
  }
  const std::string name = json_string(tool.name);
  const std::string begin = format.name_is_key
                                ? "{" + name + ": "
                                : "{" + json_string(format.name_key) + ": " + name + ", " +
                                      json_string(format.arguments_key) + ": ";
  return literal(begin) + " " + json(tool, schema) + " " + literal("}");
}

std::string Grammar::named(const CallFormat& format, const Tool& tool) {
  std::string name = format.call_open;
  name += format.has_numbered_names ? "functions." + tool.name + ":" : tool.name;
  std::string text = literal(name);
  text += format.has_numbered_names ? " /[0-9]{1,3}/ " : " ";
  text += literal(format.name_close) + " ";
  if (format.quote.empty()) {
    text += json(tool, schema_of(tool, options_.reads_schemas));
  } else {
    const std::string list = arguments(tool, ",", [&](const Argument& argument) {
      const std::string key = literal(argument.name + ":");
      return argument.is_text
                 ? key + " " + literal(format.quote) + " " + text_value(argument, format.quote)
                 : key + " " + json(tool, argument.schema);
    });
    text += literal("{") + " " + list + " " + literal("}");
  }
  return text + " " + literal(format.call_close);
}

// Any text and the marker that ends it.
std::string Grammar::text_up_to(std::string_view close) {
  if (begins_with_special(close)) {
    return rule(std::string(kAnyText)) + " " + literal(close);
  }
  const std::string name = fmt::format("r{}", count_++);
  rules_ += fmt::format("{}[suffix={}]: {}\n", name, quoted_lark(close), kAnyText);
  return name;
}

// A text of its choices, or any, and the marker that ends it.
std::string Grammar::text_value(const Argument& argument, std::string_view close) {
  const auto choices = argument.schema.find("enum");
  if (choices == argument.schema.end() || !choices->is_array()) {
    return text_up_to(close);
  }
  std::string any;
  for (const Json& choice : *choices) {
    any += any.empty() ? "" : " | ";
    any += choice.is_string() ? literal(choice.get<std::string>()) : "\"\"";
  }
  return "(" + any + ") " + literal(close);
}

std::string Grammar::tag(const CallFormat& format, const Tool& tool, const Argument& argument) {
  const std::string close = replaced(format.value_close, "{key}", argument.name);
  const std::string type = argument.schema.value("type", Json("object")) == Json("integer")
                               ? std::string("number")
                               : argument.schema.value("type", Json("object")).dump();
  std::string begin = format.key_open + argument.name + format.key_close;
  if (!format.attributes_close.empty()) {
    begin += argument.is_text
                 ? format.text_attributes
                 : replaced(format.value_attributes, "{type}", replaced(type, "\"", ""));
    begin += format.attributes_close;
  }
  begin += format.value_open;
  const std::string text = literal(begin) + " ";
  if (argument.is_text) {
    return text + text_value(argument, close);
  }
  return text + json(tool, argument.schema) + " " + literal(close);
}

std::string Grammar::tagged(const CallFormat& format, const Tool& tool) {
  std::string begin = format.call_open + tool.name + format.name_close;
  if (!format.attributes_close.empty()) {
    begin += format.name_attributes + format.attributes_close;
  }
  const std::string list =
      arguments(tool, "", [&](const Argument& argument) { return tag(format, tool, argument); });
  return literal(begin) + " " + list + " " + literal(format.call_close);
}

std::string Grammar::call(const CallFormat& format, const Tool& tool) {
  switch (format.shape) {
    case CallShape::kObjects:
      return object(format, tool);
    case CallShape::kNamed:
      return named(format, tool);
    case CallShape::kTagged:
      return tagged(format, tool);
  }
  return {};
}

std::string Grammar::channel(const Tool& tool) {
  return literal(
             "<|channel|>commentary to=functions." + tool.name + " <|constrain|>json<|message|>"
         ) +
         " " + json(tool, schema_of(tool, options_.reads_schemas));
}

std::string Grammar::section(const CallFormat& format, const std::string& any) {
  const std::string more = fmt::format(" {} ", quoted_lark(format.separator));
  // Bare objects stand alone in most models' training.
  const bool is_alone = format.open.empty() && format.call_open.empty() && !format.is_list;
  const bool repeats = options_.is_parallel && !is_alone;
  std::string calls = any;
  if (repeats && !format.is_one) {
    calls += fmt::format(" ({}{})*", more, any);
  }
  if (format.is_list) {
    calls = fmt::format("{} {} {}", literal("["), calls, literal("]"));
  }
  const std::string whole =
      rule(fmt::format("{} {} {}", literal(format.open), calls, literal(format.close)));
  return repeats && format.is_one ? fmt::format("{0} ({1}{0})*", whole, more) : whole;
}

// Text that calls may interrupt. The text before one ends with its opening marker.
std::string Grammar::within_text(const CallFormat& format, const std::string& any) {
  CallFormat rest = format;
  const bool has_section = !format.open.empty();
  const std::string trigger(trimmed(has_section ? format.open : format.call_open));
  if (trigger.empty()) {
    return fmt::format("{} | {}", section(format, any), rule(std::string(kAnyText)));
  }
  rest.open = has_section ? format.open.substr(format.open.find(trigger) + trigger.size()) : "";
  const std::string begin = text_up_to(trigger);
  const std::string one = rule(begin + " " + section(rest, any));
  const std::string times = options_.is_parallel ? "*" : "?";
  if (begins_with_special(trigger)) {
    return fmt::format("{}{} {}", one, times, rule(std::string(kAnyText)));
  }
  std::string pattern;
  for (const char byte : trigger) {
    pattern +=
        std::string_view("\\^$.|?*+()[]{}/").find(byte) == std::string_view::npos ? "" : "\\";
    pattern += byte;
  }
  rules_ += fmt::format("FREE: {} & ~/(?s:.*){}(?s:.*)/\n", kAnyText, pattern);
  return fmt::format("{}{} FREE?", one, times);
}

std::string Grammar::make(const std::vector<Tool>& tools) {
  std::string any;
  std::string start;
  const bool has_channels = format_.channels != ChannelUse::kNone;
  for (const Tool& tool : tools) {
    any += any.empty() ? "" : " | ";
    any += rule(has_channels ? channel(tool) : call(format_.calls.front(), tool));
  }
  any = rule(any);
  if (has_channels) {
    const std::string text = rule(std::string(kAnyText));
    const auto message = [&](std::string_view name) {
      return fmt::format("{} {}", literal(fmt::format("<|channel|>{}<|message|>", name)), text);
    };
    const std::string next = literal("<|end|><|start|>assistant");
    const std::string thoughts = rule(fmt::format("({} {})?", message("analysis"), next));
    start = options_.is_forced ? fmt::format("{} {}", thoughts, any)
                               : fmt::format(
                                     "{0} ({1} | {2} | {3} {4} {1})",
                                     thoughts,
                                     any,
                                     rule(message("final")),
                                     rule(message("commentary")),
                                     next
                                 );
  } else if (options_.is_forced) {
    rules_ += "BLANKS: /[ \\n]{1,4}/\n";
    start = "BLANKS? " + section(format_.calls.front(), any);
  } else {
    start = within_text(format_.calls.front(), any);
  }
  return "start: " + start + "\n" + rules_;
}

}  // namespace

std::string call_grammar(
    const OutputFormat& format,
    const std::vector<Tool>& tools,
    const Tokenizer& tokenizer,
    const CallGrammarOptions& options
) {
  require(
      !format.calls.empty() || format.channels != ChannelUse::kNone,
      ErrorCode::kUnsupported,
      "tools: the model's chat template shows no calls, so none can be forced"
  );
  return Grammar(format, tokenizer, options).make(tools);
}

}  // namespace saker::text
