// SPDX-License-Identifier: Apache-2.0

// Calls as JSON objects, {"name": "f", "arguments": {…}}, or as Python writes them, f(a=1); alone
// or in a list. A call is whole where its object or bracket closes.

#include "saker/text/output/argument_types.h"
#include "saker/text/output/call_reader.h"
#include "saker/text/output/value_reader.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace saker::text {
namespace {

bool begins_name(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

bool is_of_name(char byte) {
  return begins_name(byte) || (byte >= '0' && byte <= '9') || byte == '.' || byte == '-';
}

class ObjectsReader final : public CallReader {
 public:
  ObjectsReader(const CallFormat& format, CallSink& sink)
      : format_(format), sink_(sink), closer_({format.close}) {}

  Reading feed(char byte) override;
  bool finish() override;

 private:
  enum class State : std::uint8_t {
    kStart,
    kItem,       // Before a call of the list.
    kKey,        // Before a key of the object.
    kKeyText,    // Within the key.
    kColon,      // Behind the key.
    kValue,      // Within the value.
    kMember,     // Behind the value.
    kFunction,   // Within the name of a function.
    kParameter,  // Before or within a parameter's name.
    kParameterValue,
    kParameterEnd,  // Behind the value.
    kAfter,         // Behind a call, or the list.
  };
  enum class Member : std::uint8_t { kName, kArguments, kId, kOther };

  Reading start(char byte);
  Reading begin_object();
  Reading key(char byte);
  Reading key_text(char byte);
  Reading value(char byte);
  Reading take_value();
  Reading member(char byte);
  bool open_call(const std::string& name);
  bool take_arguments(std::string_view text);
  Reading end_object();
  Reading function(char byte);
  Reading parameter(char byte);
  Reading parameter_value(char byte);
  Reading parameter_end(char byte);
  Reading end_call();
  Reading after(char byte);
  Member member_of(std::string_view key) const;

  const CallFormat& format_;
  CallSink& sink_;
  MarkerChoice closer_;
  ValueNotation notation_;
  State state_ = State::kStart;
  bool is_list_ = false;
  bool list_has_ended_ = false;
  bool is_function_ = false;
  bool has_call_ = false;  // There is a whole call.
  // Of the call that is read.
  bool is_open_ = false;
  bool has_arguments_ = false;
  bool has_parameters_ = false;
  Member member_ = Member::kOther;
  std::string text_;       // A key, a value or a name.
  std::string arguments_;  // Met before the name.
  std::string id_;
  std::optional<ValueReader> value_;
};

CallReader::Reading ObjectsReader::feed(char byte) {
  switch (state_) {
    case State::kStart:
    case State::kItem:
      return start(byte);
    case State::kKey:
      return key(byte);
    case State::kKeyText:
      return key_text(byte);
    case State::kColon:
      if (byte == ':') {
        text_.clear();
        value_.emplace(notation_);
        state_ = State::kValue;
      }
      return byte == ':' || is_blank(byte) ? Reading::kMore : Reading::kFailed;
    case State::kValue:
      return value(byte);
    case State::kMember:
      return member(byte);
    case State::kFunction:
      return function(byte);
    case State::kParameter:
      return parameter(byte);
    case State::kParameterValue:
      return parameter_value(byte);
    case State::kParameterEnd:
      return parameter_end(byte);
    case State::kAfter:
      return after(byte);
  }
  return Reading::kFailed;
}

bool ObjectsReader::finish() {
  if (state_ == State::kMember && is_open_ && has_arguments_) {
    sink_.close();
    return true;
  }
  return state_ == State::kAfter && !closer_.has_begun();
}

CallReader::Reading ObjectsReader::start(char byte) {
  if (is_blank(byte)) {
    return Reading::kMore;
  }
  if (byte == '{') {
    return begin_object();
  }
  if (byte == '[' && state_ == State::kStart) {
    is_list_ = true;
    state_ = State::kItem;
    return Reading::kMore;
  }
  if (byte == ',' && state_ == State::kItem && has_call_) {
    return Reading::kMore;
  }
  if (byte == ']' && state_ == State::kItem && has_call_) {
    list_has_ended_ = true;
    state_ = State::kAfter;
    return closer_.is_empty() ? Reading::kEnd : Reading::kMore;
  }
  if (!begins_name(byte)) {
    return Reading::kFailed;
  }
  text_ = byte;
  state_ = State::kFunction;
  return Reading::kMore;
}

CallReader::Reading ObjectsReader::begin_object() {
  is_open_ = has_arguments_ = has_parameters_ = is_function_ = false;
  arguments_.clear();
  id_.clear();
  state_ = State::kKey;
  return Reading::kMore;
}

CallReader::Reading ObjectsReader::key(char byte) {
  if (is_blank(byte) || byte == ',') {
    return Reading::kMore;
  }
  if (byte == '}') {
    return end_object();
  }
  if (byte != '"' && byte != '\'') {
    return Reading::kFailed;
  }
  text_.clear();
  value_.emplace(notation_);
  state_ = State::kKeyText;
  return key_text(byte);
}

CallReader::Reading ObjectsReader::key_text(char byte) {
  const auto read = value_->feed(byte, text_);
  if (read == ValueReader::Reading::kBad || text_.size() > kMaxName) {
    return Reading::kFailed;
  }
  if (read == ValueReader::Reading::kDone) {
    const Json key = Json::parse(text_, nullptr, false);
    const std::string name = key.is_string() ? key.get<std::string>() : std::string();
    member_ = member_of(name);
    if (format_.name_is_key && !is_open_ && sink_.tool(name) != nullptr) {
      open_call(name);
      member_ = Member::kArguments;
    }
    state_ = State::kColon;
  }
  return Reading::kMore;
}

ObjectsReader::Member ObjectsReader::member_of(std::string_view key) const {
  const auto is_any = [key](auto... names) { return ((key == names) || ...); };
  if (is_any(std::string_view(format_.name_key), "name", "function")) {
    return Member::kName;
  }
  if (is_any(std::string_view(format_.arguments_key), "arguments", "parameters")) {
    return Member::kArguments;
  }
  return is_any("id", "tool_call_id", "call_id") ? Member::kId : Member::kOther;
}

CallReader::Reading ObjectsReader::value(char byte) {
  const bool is_streamed = member_ == Member::kArguments && is_open_ && !has_arguments_;
  const std::size_t size = text_.size();
  const auto read = value_->feed(byte, text_);
  if (is_streamed && text_.starts_with('{')) {
    sink_.arguments(std::string_view(text_).substr(size));
    text_.resize(1);
  }
  if (value_->is_new()) {
    text_.clear();  // Blanks before the value.
  }
  switch (read) {
    case ValueReader::Reading::kMore:
      return Reading::kMore;
    case ValueReader::Reading::kBad:
      return Reading::kFailed;
    case ValueReader::Reading::kDone:
      return take_value();
    case ValueReader::Reading::kDoneBefore:
      return take_value() == Reading::kFailed ? Reading::kFailed : member(byte);
  }
  return Reading::kFailed;
}

CallReader::Reading ObjectsReader::take_value() {
  state_ = State::kMember;
  if (member_ == Member::kArguments) {
    return take_arguments(text_) ? Reading::kMore : Reading::kFailed;
  }
  if (member_ == Member::kOther) {
    return Reading::kMore;
  }
  const Json value = Json::parse(text_, nullptr, false);
  if (member_ == Member::kId) {
    id_ = value.is_string() ? value.get<std::string>() : std::string();
    return Reading::kMore;
  }
  const bool is_name = value.is_string() && !is_open_;
  return is_name && open_call(value.get<std::string>()) ? Reading::kMore : Reading::kFailed;
}

bool ObjectsReader::open_call(const std::string& name) {
  if (sink_.tool(name) == nullptr) {
    return false;
  }
  sink_.open(name, id_);
  is_open_ = true;
  if (has_arguments_) {
    sink_.arguments(std::exchange(arguments_, {}));
  }
  return true;
}

// An object, the text of one, or null.
bool ObjectsReader::take_arguments(std::string_view text) {
  if (has_arguments_) {
    return false;
  }
  has_arguments_ = true;
  if (text.starts_with('{')) {
    if (!is_open_) {
      arguments_ = text;
    }
    return true;
  }
  std::string object = "{}";
  if (text.starts_with('"')) {
    const Json inner = Json::parse(text, nullptr, false);
    const std::string written = inner.is_string() ? inner.get<std::string>() : std::string();
    if (!trimmed(written).empty()) {
      const ArgumentTypes only_object{.object = true};
      object = typed_argument(written, only_object);
    }
  } else if (text != "null") {
    return false;
  }
  if (!object.starts_with('{')) {
    return false;
  }
  if (is_open_) {
    sink_.arguments(object);
  } else {
    arguments_ = std::move(object);
  }
  return true;
}

CallReader::Reading ObjectsReader::member(char byte) {
  if (is_blank(byte)) {
    return Reading::kMore;
  }
  if (byte == ',') {
    state_ = State::kKey;
    return Reading::kMore;
  }
  if (byte == '}') {
    return end_object();
  }
  if (!is_open_ || !has_arguments_) {
    return Reading::kFailed;
  }
  // The object's bracket is missing.
  end_object();
  return feed(byte);
}

CallReader::Reading ObjectsReader::end_object() {
  if (!is_open_) {
    return Reading::kFailed;
  }
  if (!has_arguments_) {
    sink_.arguments("{}");
  }
  return end_call();
}

CallReader::Reading ObjectsReader::end_call() {
  sink_.close();
  is_open_ = false;
  has_call_ = true;
  state_ = is_list_ ? State::kItem : State::kAfter;
  return Reading::kMore;
}

CallReader::Reading ObjectsReader::function(char byte) {
  if (is_of_name(byte)) {
    text_ += byte;
    return text_.size() > kMaxName ? Reading::kFailed : Reading::kMore;
  }
  constexpr std::string_view kCall = ".call";
  std::string name = std::exchange(text_, {});
  if (sink_.tool(name) == nullptr && name.ends_with(kCall)) {
    name.resize(name.size() - kCall.size());
  }
  id_.clear();
  has_arguments_ = false;
  if (byte != '(' || !open_call(name)) {
    return Reading::kFailed;
  }
  sink_.arguments("{");
  is_function_ = true;
  has_parameters_ = false;
  state_ = State::kParameter;
  return Reading::kMore;
}

CallReader::Reading ObjectsReader::parameter(char byte) {
  if (is_blank(byte)) {
    return Reading::kMore;
  }
  if (byte == ')' && text_.empty()) {
    sink_.arguments("}");
    return end_call();
  }
  if (byte == '=' && !text_.empty()) {
    const std::string key = std::exchange(text_, {});
    sink_.arguments((has_parameters_ ? ", " : "") + json_string(key) + ": ");
    has_parameters_ = true;
    value_.emplace(notation_);
    state_ = State::kParameterValue;
    return Reading::kMore;
  }
  text_ += byte;
  return is_of_name(byte) && text_.size() <= kMaxName ? Reading::kMore : Reading::kFailed;
}

CallReader::Reading ObjectsReader::parameter_value(char byte) {
  if (value_->is_new() && is_blank(byte)) {
    return Reading::kMore;
  }
  std::string out;
  const auto read = value_->feed(byte, out);
  sink_.arguments(out);
  if (read == ValueReader::Reading::kBad) {
    return Reading::kFailed;
  }
  if (read == ValueReader::Reading::kMore) {
    return Reading::kMore;
  }
  state_ = State::kParameterEnd;
  return read == ValueReader::Reading::kDone ? Reading::kMore : parameter_end(byte);
}

CallReader::Reading ObjectsReader::parameter_end(char byte) {
  if (is_blank(byte)) {
    return Reading::kMore;
  }
  if (byte == ',') {
    state_ = State::kParameter;
    return Reading::kMore;
  }
  if (byte != ')') {
    return Reading::kFailed;
  }
  sink_.arguments("}");
  return end_call();
}

CallReader::Reading ObjectsReader::after(char byte) {
  if (!closer_.has_begun()) {
    if (is_blank(byte)) {
      return Reading::kMore;
    }
    if (!list_has_ended_ && (byte == ';' || byte == ',')) {
      return Reading::kMore;
    }
    if (!list_has_ended_ && byte == '{') {
      return begin_object();
    }
    if (!list_has_ended_ && is_function_ && !closer_.is_empty() && begins_name(byte)) {
      text_ = byte;
      state_ = State::kFunction;
      return Reading::kMore;
    }
    if (!closer_.is_empty() && (byte == '}' || byte == ']')) {
      return Reading::kMore;  // One too many.
    }
  }
  if (closer_.is_empty()) {
    return Reading::kEndBefore;
  }
  switch (closer_.feed(byte)) {
    case MarkerChoice::Match::kMore:
      return Reading::kMore;
    case MarkerChoice::Match::kWhole:
      return Reading::kEnd;
    case MarkerChoice::Match::kNone:
      return Reading::kEndBefore;
  }
  return Reading::kEndBefore;
}

}  // namespace

std::unique_ptr<CallReader> make_objects_reader(const CallFormat& format, CallSink& sink) {
  return std::make_unique<ObjectsReader>(format, sink);
}

}  // namespace saker::text
