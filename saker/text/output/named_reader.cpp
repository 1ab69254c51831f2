// SPDX-License-Identifier: Apache-2.0

// Calls as a name and one value with the arguments: [TOOL_CALLS]f[ARGS]{…}. A call is whole where
// its value ends.

#include "saker/text/output/call_reader.h"
#include "saker/text/output/value_reader.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace saker::text {
namespace {

class NamedReader final : public CallReader {
 public:
  NamedReader(const CallFormat& format, CallSink& sink, bool is_call)
      : format_(format),
        sink_(sink),
        notation_{.quote = format.quote, .has_bare_keys = !format.quote.empty()},
        between_({format.call_open, format.call_close, format.close}),
        state_(is_call ? State::kName : State::kBetween) {}

  Reading feed(char byte) override;

  bool finish() override { return state_ == State::kBetween && !between_.has_begun() && has_call_; }

 private:
  enum class State : std::uint8_t { kBetween, kName, kValue };

  Reading between(char byte);
  Reading name(char byte);
  Reading open_call();
  Reading value(char byte);

  const CallFormat& format_;
  CallSink& sink_;
  ValueNotation notation_;
  MarkerChoice between_;
  State state_;
  bool has_call_ = false;
  std::string name_;
  std::optional<ValueReader> value_;
};

CallReader::Reading NamedReader::feed(char byte) {
  switch (state_) {
    case State::kBetween:
      return between(byte);
    case State::kName:
      return name(byte);
    case State::kValue:
      return value(byte);
  }
  return Reading::kFailed;
}

CallReader::Reading NamedReader::between(char byte) {
  const Reading no_marker = has_call_ ? Reading::kEndBefore : Reading::kFailed;
  switch (between_.feed(byte)) {
    case MarkerChoice::Match::kMore:
      return Reading::kMore;
    case MarkerChoice::Match::kNone:
      return no_marker;
    case MarkerChoice::Match::kWhole:
      break;
  }
  switch (between_.take()) {
    case 0:
      name_.clear();
      state_ = State::kName;
      return Reading::kMore;
    case 1:
      return format_.close.empty() ? Reading::kEnd : Reading::kMore;
    default:
      return has_call_ ? Reading::kEnd : Reading::kFailed;
  }
}

CallReader::Reading NamedReader::name(char byte) {
  const std::string_view end = trimmed(format_.name_close);
  if (end.empty() && byte == '{') {
    const Reading opened = open_call();
    return opened == Reading::kMore ? value(byte) : opened;
  }
  name_ += byte;
  if (!end.empty() && name_.ends_with(end)) {
    name_.resize(name_.size() - end.size());
    return open_call();
  }
  return name_.size() > kMaxName + end.size() ? Reading::kFailed : Reading::kMore;
}

CallReader::Reading NamedReader::open_call() {
  const WrittenName written = read_name(name_, format_);
  if (sink_.tool(written.name) == nullptr) {
    return Reading::kFailed;
  }
  sink_.open(written.name, written.id);
  value_.emplace(notation_);
  state_ = State::kValue;
  return Reading::kMore;
}

CallReader::Reading NamedReader::value(char byte) {
  if (value_->is_new() && byte != '{') {
    return is_blank(byte) ? Reading::kMore : Reading::kFailed;
  }
  std::string out;
  const auto read = value_->feed(byte, out);
  sink_.arguments(out);
  if (read == ValueReader::Reading::kMore) {
    return Reading::kMore;
  }
  if (read != ValueReader::Reading::kDone) {
    return Reading::kFailed;
  }
  sink_.close();
  has_call_ = true;
  state_ = State::kBetween;
  return format_.call_close.empty() && format_.close.empty() ? Reading::kEnd : Reading::kMore;
}

}  // namespace

std::unique_ptr<CallReader> make_named_reader(
    const CallFormat& format, CallSink& sink, bool is_call
) {
  return std::make_unique<NamedReader>(format, sink, is_call);
}

}  // namespace saker::text
