// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/argument_types.h"

#include "saker/text/output/value_reader.h"

#include <array>
#include <cstddef>
#include <utility>

namespace saker::text {
namespace {

// References and alternatives may nest this deep.
constexpr int kMaxNesting = 8;

void add_type(ArgumentTypes& types, std::string_view name) {
  types.text = types.text || name == "string";
  types.number = types.number || name == "number" || name == "integer";
  types.boolean = types.boolean || name == "boolean";
  types.null = types.null || name == "null";
  types.list = types.list || name == "array";
  types.object = types.object || name == "object";
}

void add_value(ArgumentTypes& types, const Json& value) {
  types.text = types.text || value.is_string();
  types.number = types.number || value.is_number();
  types.boolean = types.boolean || value.is_boolean();
  types.null = types.null || value.is_null();
  types.list = types.list || value.is_array();
  types.object = types.object || value.is_object();
}

// A local reference such as #/$defs/place.
const Json* resolve(const Json& root, std::string_view reference) {
  if (!reference.starts_with("#")) {
    return nullptr;
  }
  try {
    return &root.at(Json::json_pointer(std::string(reference.substr(1))));
  } catch (const Json::exception&) {
    return nullptr;
  }
}

ArgumentTypes types_of(const Json& schema, const Json& root, int depth) {
  if (!schema.is_object() || depth > kMaxNesting) {
    return any_type();
  }
  if (const Json* reference = find_member(schema, "$ref"); reference && reference->is_string()) {
    const Json* found = resolve(root, reference->get_ref<const std::string&>());
    return found == nullptr ? any_type() : types_of(*found, root, depth + 1);
  }
  ArgumentTypes types;
  if (const Json* type = find_member(schema, "type"); type && type->is_string()) {
    add_type(types, type->get_ref<const std::string&>());
    return types;
  } else if (type && type->is_array()) {
    for (const Json& name : *type) {
      add_type(types, name.is_string() ? name.get_ref<const std::string&>() : std::string());
    }
    return types;
  }
  if (const Json* value = find_member(schema, "const")) {
    add_value(types, *value);
    return types;
  }
  if (const Json* values = find_member(schema, "enum"); values && values->is_array()) {
    for (const Json& value : *values) {
      add_value(types, value);
    }
    return types;
  }
  for (const char* key : {"anyOf", "oneOf"}) {
    if (const Json* choices = find_member(schema, key); choices && choices->is_array()) {
      for (const Json& choice : *choices) {
        types = types | types_of(choice, root, depth + 1);
      }
      return types;
    }
  }
  if (const Json* parts = find_member(schema, "allOf");
      parts && parts->is_array() && parts->size() == 1) {
    return types_of(parts->front(), root, depth + 1);
  }
  return any_type();
}

// The value as JSON; empty if it is none.
std::string read_value(std::string_view text) {
  const ValueNotation notation;
  ValueReader reader(notation);
  std::string out;
  bool is_whole = false;
  for (const char byte : text) {
    if (is_whole) {
      return {};
    }
    switch (reader.feed(byte, out)) {
      case ValueReader::Reading::kMore:
        break;
      case ValueReader::Reading::kDone:
        is_whole = true;
        break;
      case ValueReader::Reading::kDoneBefore:
      case ValueReader::Reading::kBad:
        return {};
    }
  }
  if (!is_whole && reader.may_end()) {
    reader.end(out);
    is_whole = true;
  }
  return is_whole ? out : std::string();
}

bool allows(const ArgumentTypes& types, std::string_view json) {
  switch (json.front()) {
    case '{':
      return types.object;
    case '[':
      return types.list;
    case 't':
    case 'f':
      return types.boolean;
    case 'n':
      return types.null;
    case '"':
      return false;  // A text is written without quotes.
    default:
      return types.number;
  }
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace

ArgumentTypes any_type() {
  return {
      .text = true, .number = true, .boolean = true, .null = true, .list = true, .object = true
  };
}

ArgumentTypes ArgumentTypes::operator|(const ArgumentTypes& other) const {
  return {
      .text = text || other.text,
      .number = number || other.number,
      .boolean = boolean || other.boolean,
      .null = null || other.null,
      .list = list || other.list,
      .object = object || other.object,
  };
}

ArgumentTypes types_of_argument(const Tool& tool, std::string_view key) {
  const Json* properties = find_member(tool.parameters, "properties");
  const Json* property = properties == nullptr ? nullptr : find_member(*properties, key);
  if (property == nullptr) {
    property = find_member(tool.parameters, "additionalProperties");
  }
  return property == nullptr ? any_type() : types_of(*property, tool.parameters, 0);
}

std::string typed_argument(std::string_view text, const ArgumentTypes& types) {
  if (types.is_text_alone()) {
    return json_string(text);
  }
  std::string json = read_value(without_blanks(text));
  return !json.empty() && allows(types, json) ? json : json_string(text);
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char byte : text) {
    append_escaped(out, byte);
  }
  return out + "\"";
}

}  // namespace saker::text
