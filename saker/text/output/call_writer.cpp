// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/call_writer.h"

#include "saker/text/output/argument_types.h"
#include "saker/text/output/call_reader.h"

#include <utility>

namespace saker::text {
namespace {

std::string write_object(const CallFormat& format, std::string_view name, const Json& arguments) {
  const std::string text = arguments.dump();
  std::string call;
  if (format.is_python) {
    call = std::string(name) + "(";
    for (const auto& [key, value] : arguments.items()) {
      call += (call.ends_with('(') ? "" : ", ") + key + "=" + value.dump();
    }
    call += ")";
  } else if (format.name_is_key) {
    call = "{" + json_string(name) + ": " + text + "}";
  } else {
    call = "{" + json_string(format.name_key) + ": " + json_string(name) + ", " +
           json_string(format.arguments_key) + ": " + text + "}";
  }
  return format.is_list ? "[" + call + "]" : call;
}

// As ValueNotation reads it.
std::string write_bare(const Json& value, const std::string& quote) {
  std::string text;
  if (value.is_string()) {
    return quote + value.get<std::string>() + quote;
  }
  if (!value.is_structured()) {
    return value.dump();
  }
  for (const auto& [key, member] : value.items()) {
    text += text.empty() ? "" : ",";
    text += value.is_object() ? key + ":" : "";
    text += write_bare(member, quote);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

std::string write_named(const CallFormat& format, std::string_view name, const Json& arguments) {
  std::string text = format.call_open;
  text += format.has_numbered_names ? "functions." + std::string(name) + ":0" : name;
  text += format.name_close;
  text += format.quote.empty() ? arguments.dump() : write_bare(arguments, format.quote);
  return text + format.call_close;
}

std::string write_tagged(const CallFormat& format, std::string_view name, const Json& arguments) {
  const auto attributes = [&](const std::string& written) {
    return format.attributes_close.empty() ? "" : written + format.attributes_close;
  };
  std::string text = format.call_open + std::string(name) + format.name_close;
  text += attributes(format.name_attributes);
  for (const auto& [key, value] : arguments.items()) {
    text += format.key_open + key + format.key_close;
    text += attributes(
        value.is_string() ? format.text_attributes
                          : replaced(format.value_attributes, "{type}", json_type(value))
    );
    text += format.value_open;
    text += value.is_string() ? value.get<std::string>() : value.dump();
    text += replaced(format.value_close, "{key}", key);
  }
  return text + format.call_close;
}

}  // namespace

std::string write_call(const CallFormat& format, std::string_view name, const Json& arguments) {
  std::string call;
  switch (format.shape) {
    case CallShape::kObjects:
      call = write_object(format, name, arguments);
      break;
    case CallShape::kNamed:
      call = write_named(format, name, arguments);
      break;
    case CallShape::kTagged:
      call = write_tagged(format, name, arguments);
      break;
  }
  return format.open + call + format.close;
}

std::string_view json_type(const Json& value) {
  return value.is_string()    ? "string"
         : value.is_number()  ? "number"
         : value.is_boolean() ? "boolean"
         : value.is_null()    ? "null"
         : value.is_array()   ? "array"
                              : "object";
}

std::string replaced(std::string text, std::string_view mark, std::string_view by) {
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size())) {
    text.replace(at, mark.size(), by);
  }
  return text;
}

}  // namespace saker::text
