// SPDX-License-Identifier: Apache-2.0

// Calls whose arguments stand between tags: <function=f><parameter=k>v</parameter></function>. The
// JSON of the arguments is written as they come; texts stream, other values wait for their end.

#include "saker/text/output/argument_types.h"
#include "saker/text/output/call_reader.h"
#include "saker/text/output/nested_tags.h"
#include "saker/text/output/value_reader.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace saker::text {
namespace {

class TaggedReader final : public CallReader {
 public:
  TaggedReader(const CallFormat& format, CallSink& sink, bool is_call)
      : format_(format),
        sink_(sink),
        between_({format.call_open, format.close}),
        parameters_({format.key_open, format.call_close}),
        value_open_({format.value_open}),
        state_(is_call ? State::kName : State::kBetween) {}

  Reading feed(char byte) override;
  bool finish() override;

 private:
  enum class State : std::uint8_t {
    kBetween,
    kName,
    kNameAttributes,
    kParameters,  // Before an argument, or the end of the call.
    kKey,
    kKeyAttributes,
    kValueOpen,
    kText,   // Within a text, which streams.
    kValue,  // Within another value.
  };

  Reading between(char byte);
  Reading name(char byte);
  Reading parameters(char byte);
  Reading text_until(char byte, std::string_view end);
  Reading open_call();
  Reading open_argument();
  Reading begin_value();
  Reading text(char byte);
  Reading value(char byte);
  Reading end_value();
  Reading end_call();

  const CallFormat& format_;
  CallSink& sink_;
  MarkerChoice between_;
  MarkerChoice parameters_;
  MarkerChoice value_open_;
  State state_;
  bool has_call_ = false;
  bool has_arguments_ = false;
  bool is_at_begin_ = false;  // Of a text.
  const Tool* tool_ = nullptr;
  ArgumentTypes types_;
  std::string text_;  // A name, key, attributes or value.
  std::string name_;
  std::string value_close_;  // Of this argument.
};

CallReader::Reading TaggedReader::feed(char byte) {
  switch (state_) {
    case State::kBetween:
      return between(byte);
    case State::kName:
      return name(byte);
    case State::kNameAttributes:
      return text_until(byte, trimmed(format_.attributes_close)) == Reading::kEnd ? open_call()
             : text_.size() > kMaxName                                            ? Reading::kFailed
                                                                                  : Reading::kMore;
    case State::kParameters:
      return parameters(byte);
    case State::kKey:
      if (text_until(byte, trimmed(format_.key_close)) == Reading::kEnd) {
        return open_argument();
      }
      return text_.size() > kMaxName ? Reading::kFailed : Reading::kMore;
    case State::kKeyAttributes:
      if (text_until(byte, trimmed(format_.attributes_close)) == Reading::kEnd) {
        return begin_value();
      }
      return text_.size() > kMaxName ? Reading::kFailed : Reading::kMore;
    case State::kValueOpen:
      switch (value_open_.feed(byte)) {
        case MarkerChoice::Match::kMore:
          return Reading::kMore;
        case MarkerChoice::Match::kNone:
          return Reading::kFailed;
        case MarkerChoice::Match::kWhole:
          value_open_.take();
          return begin_value();
      }
      return Reading::kFailed;
    case State::kText:
      return text(byte);
    case State::kValue:
      return value(byte);
  }
  return Reading::kFailed;
}

// All arguments so far are whole, and there is one.
bool TaggedReader::finish() {
  if (state_ == State::kParameters && has_arguments_ && !parameters_.has_begun()) {
    end_call();
    return true;
  }
  return state_ == State::kBetween && has_call_ && !between_.has_begun();
}

CallReader::Reading TaggedReader::between(char byte) {
  const Reading no_marker = has_call_ ? Reading::kEndBefore : Reading::kFailed;
  switch (between_.feed(byte)) {
    case MarkerChoice::Match::kMore:
      return Reading::kMore;
    case MarkerChoice::Match::kNone:
      return no_marker;
    case MarkerChoice::Match::kWhole:
      break;
  }
  if (between_.take() == 0) {
    text_.clear();
    state_ = State::kName;
    return Reading::kMore;
  }
  return has_call_ ? Reading::kEnd : Reading::kFailed;
}

// Collects bytes up to `end`, which is dropped: kEnd.
CallReader::Reading TaggedReader::text_until(char byte, std::string_view end) {
  text_ += byte;
  if (!text_.ends_with(end)) {
    return Reading::kMore;
  }
  text_.resize(text_.size() - end.size());
  return Reading::kEnd;
}

CallReader::Reading TaggedReader::name(char byte) {
  const std::string_view end = trimmed(format_.name_close);
  if (end.empty()) {
    // Ends where a tag or line begins.
    if (byte != '<' && (byte != '\n' || trimmed(text_).empty())) {
      text_ += byte;
      return text_.size() > kMaxName ? Reading::kFailed : Reading::kMore;
    }
    name_ = std::exchange(text_, {});
    const Reading opened = open_call();
    return opened == Reading::kMore ? parameters(byte) : opened;
  }
  if (text_until(byte, end) != Reading::kEnd) {
    return text_.size() > kMaxName ? Reading::kFailed : Reading::kMore;
  }
  name_ = std::exchange(text_, {});
  if (format_.attributes_close.empty()) {
    return open_call();
  }
  state_ = State::kNameAttributes;
  return Reading::kMore;
}

CallReader::Reading TaggedReader::open_call() {
  text_.clear();
  const WrittenName written = read_name(name_, format_);
  tool_ = sink_.tool(written.name);
  if (tool_ == nullptr) {
    return Reading::kFailed;
  }
  sink_.open(written.name, written.id);
  sink_.arguments("{");
  has_arguments_ = false;
  state_ = State::kParameters;
  return Reading::kMore;
}

CallReader::Reading TaggedReader::parameters(char byte) {
  switch (parameters_.feed(byte)) {
    case MarkerChoice::Match::kMore:
      return Reading::kMore;
    case MarkerChoice::Match::kNone:
      return Reading::kFailed;
    case MarkerChoice::Match::kWhole:
      break;
  }
  if (parameters_.take() == 0) {
    text_.clear();
    state_ = State::kKey;
    return Reading::kMore;
  }
  return end_call();
}

CallReader::Reading TaggedReader::end_call() {
  sink_.arguments("}");
  sink_.close();
  has_call_ = true;
  state_ = State::kBetween;
  return format_.close.empty() ? Reading::kEnd : Reading::kMore;
}

CallReader::Reading TaggedReader::open_argument() {
  const std::string written = std::exchange(text_, {});
  if (format_.key_open + written + format_.key_close == format_.call_close) {
    return end_call();  // Any tag may be a key.
  }
  const std::string key(trimmed(written));
  sink_.arguments((has_arguments_ ? ", " : "") + json_string(key) + ": ");
  has_arguments_ = true;
  types_ = types_of_argument(*tool_, key);
  constexpr std::string_view kKeyMark = "{key}";
  value_close_ = trimmed(format_.value_close);
  if (const auto at = value_close_.find(kKeyMark); at != std::string::npos) {
    value_close_.replace(at, kKeyMark.size(), key);
  }
  if (!format_.attributes_close.empty()) {
    state_ = State::kKeyAttributes;
    return Reading::kMore;
  }
  if (!format_.value_open.empty()) {
    state_ = State::kValueOpen;
    return Reading::kMore;
  }
  return begin_value();
}

CallReader::Reading TaggedReader::begin_value() {
  const std::string attributes = std::exchange(text_, {});
  const auto says = [&](std::string_view part) {
    return attributes.find(part) != std::string::npos;
  };
  if (says("string=\"true\"") || says("type=\"string\"")) {
    types_ = {.text = true};
  } else if (says("string=\"false\"") || says("type=\"")) {
    types_ = any_type();
  }
  if (types_.is_text_alone()) {
    sink_.arguments("\"");
    is_at_begin_ = true;
    state_ = State::kText;
  } else {
    state_ = State::kValue;
  }
  return Reading::kMore;
}

CallReader::Reading TaggedReader::text(char byte) {
  if (std::exchange(is_at_begin_, false) && format_.has_line_values && byte == '\n') {
    return Reading::kMore;
  }
  text_ += byte;
  const auto may_end = [&] {
    std::string_view held = text_;
    if (format_.has_line_values && held.starts_with('\n')) {
      held.remove_prefix(1);
    }
    return value_close_.starts_with(held);
  };
  std::string out;
  while (!text_.empty() && !may_end()) {
    append_escaped(out, text_.front());
    text_.erase(0, 1);
  }
  if (!text_.ends_with(value_close_)) {
    if (!out.empty()) {
      sink_.arguments(out);
    }
    return Reading::kMore;
  }
  text_.clear();
  sink_.arguments(out + "\"");
  state_ = State::kParameters;
  return Reading::kMore;
}

CallReader::Reading TaggedReader::value(char byte) {
  if (text_until(byte, value_close_) != Reading::kEnd) {
    return Reading::kMore;
  }
  std::string written = std::exchange(text_, {});
  std::string_view value = written;
  if (format_.has_line_values) {
    value.remove_prefix(value.starts_with('\n') ? 1 : 0);
    value.remove_suffix(value.ends_with('\n') ? 1 : 0);
  }
  const std::string_view prefix =
      std::string_view(format_.key_open).substr(0, format_.key_open.size() - 1);
  sink_.arguments(
      format_.has_nested_values ? read_nested_tags(value, prefix, types_)
                                : typed_argument(value, types_)
  );
  state_ = State::kParameters;
  return Reading::kMore;
}

}  // namespace

std::unique_ptr<CallReader> make_tagged_reader(
    const CallFormat& format, CallSink& sink, bool is_call
) {
  return std::make_unique<TaggedReader>(format, sink, is_call);
}

}  // namespace saker::text
