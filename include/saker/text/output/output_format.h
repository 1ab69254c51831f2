// SPDX-License-Identifier: Apache-2.0
#pragma once

// How one model writes its answers: the markers of reasoning and content, and the form of tool
// calls. Formats are data; four machines read them (docs/adr/0064-the-output-parser.md). Plain
// values.

#include "saker/text/chat_template.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {

// The markers around reasoning.
struct ReasoningMarkers {
  std::string open = {};
  std::string close = {};
};

// The machine that reads calls.
enum class CallShape : std::uint8_t {
  kObjects,  // A JSON object with name and arguments, or Python's f(a=1); alone or in a list.
  kNamed,    // A name, then its arguments as one value.
  kTagged,   // A name, then each argument between tags.
};

// One form of tool calls. White space between the parts is free.
struct CallFormat {
  CallShape shape = CallShape::kObjects;
  // Around one call or several. Without `open`, calls begin with `call_open`; without both they
  // stand at the beginning of the content.
  std::string open = {};
  std::string close = {};
  std::string separator = {};  // Between calls.
  bool is_one = false;         // `open` and `close` stand around each call.

  // kObjects.
  std::string name_key = "name";
  std::string arguments_key = "arguments";
  bool name_is_key = false;  // {"f": {…}}
  bool is_list = false;      // Written as a list; both are read.
  bool is_python = false;    // Written as Python; both are read.

  // kNamed and kTagged.
  std::string call_open = {};
  std::string name_close = {};  // Empty: the name ends where its arguments begin.
  std::string call_close = {};
  std::string id_open = {};         // Between the name and an id.
  bool has_numbered_names = false;  // functions.f:0, which is also the call's id.
  std::string quote = {};           // kNamed: ends of strings; keys are bare then.

  // kTagged. `attributes_close`: what follows a name or key up to here are attributes.
  std::string attributes_close = {};
  std::string name_attributes = {};   // As written, behind a name;
  std::string text_attributes = {};   // behind the key of a text;
  std::string value_attributes = {};  // behind another key. "{type}" stands for the value's type.
  std::string key_open = {};
  std::string key_close = {};
  std::string value_open = {};
  std::string value_close = {};    // "{key}" stands for the key.
  bool has_line_values = false;    // A line end on each side of a value is not part of it.
  bool has_nested_values = false;  // Objects and lists are tags as well.
};

// A message's parts, a channel each (gpt-oss).
enum class ChannelUse : std::uint8_t { kNone, kHarmony };

struct OutputFormat {
  std::string name = "plain";
  // Tried in order at the beginning of an answer.
  std::vector<ReasoningMarkers> reasoning = {};
  std::string content_open = {};  // Around the content; may be missing.
  std::string content_close = {};
  // The first is the model's own; the others are read as well. None: there are no calls.
  std::vector<CallFormat> calls = {};
  ChannelUse channels = ChannelUse::kNone;
  TemplateCapabilities capabilities = {};
};

// A format without calls, with all markers of reasoning that are known.
const OutputFormat& plain_format();

// All formats that are known by name.
const std::vector<OutputFormat>& known_formats();

// Null for an unknown name.
const OutputFormat* known_format(std::string_view name);

}  // namespace saker::text
