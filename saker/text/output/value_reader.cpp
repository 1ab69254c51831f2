// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/value_reader.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <iterator>
#include <utility>

namespace saker::text {
namespace {

constexpr std::size_t kMaxLevels = 100;
constexpr std::size_t kMaxWord = 512;
constexpr std::size_t kMaxKey = 256;
constexpr std::uint32_t kReplacement = 0xFFFD;

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

bool is_letter(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

// The grammar of JSON's numbers.
bool is_number(std::string_view text) {
  const auto digits = [&text] {
    std::size_t count = 0;
    while (!text.empty() && is_digit(text.front())) {
      text.remove_prefix(1);
      ++count;
    }
    return count;
  };
  const auto skip = [&text](std::string_view any) {
    const bool found = !text.empty() && any.find(text.front()) != std::string_view::npos;
    text.remove_prefix(found ? 1 : 0);
    return found;
  };
  skip("-");
  const bool is_zero = text.starts_with('0');
  const std::size_t whole = digits();
  if (whole == 0 || (is_zero && whole > 1)) {
    return false;
  }
  if (skip(".") && digits() == 0) {
    return false;
  }
  if (skip("eE")) {
    skip("+-");
    if (digits() == 0) {
      return false;
    }
  }
  return text.empty();
}

// The JSON of a number or name; empty if it has none.
std::string_view as_json(std::string_view word) {
  if (word == "true" || word == "True") {
    return "true";
  }
  if (word == "false" || word == "False") {
    return "false";
  }
  if (word == "null" || word == "None") {
    return "null";
  }
  return is_number(word) ? word : std::string_view();
}

}  // namespace

void append_escaped(std::string& out, char byte) {
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      if (static_cast<unsigned char>(byte) < 0x20) {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(byte));
      } else {
        out += byte;
      }
  }
}

ValueReader::Reading ValueReader::feed(char byte, std::string& out) {
  switch (state_) {
    case State::kValue:
      return value(byte, out);
    case State::kWord:
      return word(byte, out);
    case State::kString:
      return string(byte, out);
    case State::kEscape:
      return escape(byte, out);
    case State::kDigits:
      return digits(byte, out);
    case State::kQuote:
      return quote(byte, out);
    case State::kRaw:
      return raw(byte, out);
    case State::kKey:
      return key(byte, out);
    case State::kBareKey:
      return bare_key(byte, out);
    case State::kAfterKey:
      if (byte != ':' && !is_blank(byte)) {
        return Reading::kBad;
      }
      out += byte;
      state_ = byte == ':' ? State::kValue : state_;
      return Reading::kMore;
    case State::kAfter:
      return after(byte, out);
  }
  return Reading::kBad;
}

void ValueReader::flush_comma(std::string& out) {
  out += std::exchange(comma_, {});
}

ValueReader::Reading ValueReader::value(char byte, std::string& out) {
  if (is_blank(byte)) {
    (comma_.empty() ? out : comma_) += byte;
    return Reading::kMore;
  }
  const bool may_close = !levels_.empty() && levels_.back() == '[';
  if ((byte == ']' || byte == ')') && may_close) {
    // An empty list, or a comma before the bracket.
    return close(out);
  }
  flush_comma(out);
  if (byte == '{' || byte == '[') {
    return open(byte, out);
  }
  if (byte == '(') {
    return open('[', out);
  }
  if (byte == '"' || byte == '\'') {
    quote_ = byte;
    is_key_ = false;
    out += '"';
    state_ = State::kString;
    return Reading::kMore;
  }
  held_ = byte;
  if (notation_->quote.starts_with(byte)) {
    is_key_ = false;
    state_ = State::kQuote;
    return Reading::kMore;
  }
  state_ = State::kWord;
  return is_digit(byte) || is_letter(byte) || byte == '-' ? Reading::kMore : Reading::kBad;
}

ValueReader::Reading ValueReader::open(char bracket, std::string& out) {
  if (levels_.size() == kMaxLevels) {
    return Reading::kBad;
  }
  levels_.push_back(bracket);
  out += bracket;
  state_ = bracket == '{' ? State::kKey : State::kValue;
  return Reading::kMore;
}

// A comma before the bracket is dropped.
ValueReader::Reading ValueReader::close(std::string& out) {
  if (!comma_.empty()) {
    out += comma_.substr(1);
    comma_.clear();
  }
  out += levels_.back() == '{' ? '}' : ']';
  levels_.pop_back();
  return ended();
}

ValueReader::Reading ValueReader::ended() {
  state_ = is_key_ ? State::kAfterKey : State::kAfter;
  const bool is_last = !is_key_ && levels_.empty();
  is_key_ = false;
  return is_last ? Reading::kDone : Reading::kMore;
}

bool ValueReader::is_word_whole() const {
  return !as_json(held_).empty();
}

void ValueReader::end(std::string& out) {
  out += as_json(held_);
  held_.clear();
  state_ = State::kAfter;
}

ValueReader::Reading ValueReader::word(char byte, std::string& out) {
  if (is_digit(byte) || is_letter(byte) || byte == '-' || byte == '+' || byte == '.') {
    held_ += byte;
    return held_.size() > kMaxWord ? Reading::kBad : Reading::kMore;
  }
  if (!is_word_whole()) {
    return Reading::kBad;
  }
  end(out);
  return levels_.empty() ? Reading::kDoneBefore : after(byte, out);
}

void ValueReader::drop_half_pair(std::string& out) {
  if (half_pair_ != 0) {
    half_pair_ = 0;
    write_code_point(kReplacement, out);
  }
}

ValueReader::Reading ValueReader::string(char byte, std::string& out) {
  if (byte == '\\') {
    state_ = State::kEscape;
    return Reading::kMore;
  }
  drop_half_pair(out);
  if (byte == quote_) {
    out += '"';
    return ended();
  }
  append_escaped(out, byte);
  return Reading::kMore;
}

ValueReader::Reading ValueReader::escape(char byte, std::string& out) {
  state_ = State::kString;
  held_.clear();
  if (byte == 'u' || byte == 'x' || byte == 'U') {
    held_ = byte;
    digits_ = byte == 'u' ? 4 : byte == 'x' ? 2 : 8;
    state_ = State::kDigits;
    return Reading::kMore;
  }
  drop_half_pair(out);
  switch (byte) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
      out += '\\';
      out += byte;
      return Reading::kMore;
    case '\'':
      out += '\'';
      return Reading::kMore;
    default:  // Such as a pattern's \d.
      out += "\\\\";
      append_escaped(out, byte);
      return Reading::kMore;
  }
}

ValueReader::Reading ValueReader::digits(char byte, std::string& out) {
  const bool is_hex =
      is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
  if (!is_hex) {
    // No code: the text as it is.
    drop_half_pair(out);
    out += "\\\\" + std::exchange(held_, {});
    state_ = State::kString;
    return string(byte, out);
  }
  held_ += byte;
  if (held_.size() <= digits_) {
    return Reading::kMore;
  }
  std::uint32_t code = 0;
  std::from_chars(held_.data() + 1, held_.data() + held_.size(), code, 16);
  held_.clear();
  state_ = State::kString;
  const bool is_low = code >= 0xDC00 && code < 0xE000;
  if (half_pair_ != 0 && is_low) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}\\u{:04x}", half_pair_, code);
    half_pair_ = 0;
    return Reading::kMore;
  }
  drop_half_pair(out);
  if (code >= 0xD800 && code < 0xDC00) {
    half_pair_ = code;
  } else {
    write_code_point(is_low || code > 0x10FFFF ? kReplacement : code, out);
  }
  return Reading::kMore;
}

void ValueReader::write_code_point(std::uint32_t code, std::string& out) {
  if (code > 0xFFFF) {
    const std::uint32_t rest = code - 0x10000;
    fmt::format_to(
        std::back_inserter(out),
        "\\u{:04x}\\u{:04x}",
        0xD800 + (rest >> 10U),
        0xDC00 + (rest & 0x3FFU)
    );
  } else {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", code);
  }
}

ValueReader::Reading ValueReader::quote(char byte, std::string& out) {
  held_ += byte;
  if (held_ == notation_->quote) {
    held_.clear();
    out += '"';
    state_ = State::kRaw;
    return Reading::kMore;
  }
  return notation_->quote.starts_with(held_) ? Reading::kMore : Reading::kBad;
}

ValueReader::Reading ValueReader::raw(char byte, std::string& out) {
  held_ += byte;
  while (!held_.empty() && !notation_->quote.starts_with(held_)) {
    append_escaped(out, held_.front());
    held_.erase(0, 1);
  }
  if (held_ != notation_->quote) {
    return Reading::kMore;
  }
  held_.clear();
  out += '"';
  return ended();
}

ValueReader::Reading ValueReader::key(char byte, std::string& out) {
  if (is_blank(byte)) {
    (comma_.empty() ? out : comma_) += byte;
    return Reading::kMore;
  }
  if (byte == '}') {
    return close(out);
  }
  flush_comma(out);
  is_key_ = true;
  if (byte == '"' || byte == '\'') {
    quote_ = byte;
    out += '"';
    state_ = State::kString;
    return Reading::kMore;
  }
  held_ = byte;
  if (notation_->quote.starts_with(byte)) {
    state_ = State::kQuote;
    return Reading::kMore;
  }
  state_ = State::kBareKey;
  return notation_->has_bare_keys && byte != ',' && byte != ':' ? Reading::kMore : Reading::kBad;
}

ValueReader::Reading ValueReader::bare_key(char byte, std::string& out) {
  if (byte != ':') {
    held_ += byte;
    const bool is_bad = byte == ',' || byte == '{' || byte == '}' || held_.size() > kMaxKey;
    return is_bad ? Reading::kBad : Reading::kMore;
  }
  while (is_blank(held_.back())) {
    held_.pop_back();
  }
  out += '"';
  for (const char part : std::exchange(held_, {})) {
    append_escaped(out, part);
  }
  out += "\":";
  is_key_ = false;
  state_ = State::kValue;
  return Reading::kMore;
}

ValueReader::Reading ValueReader::after(char byte, std::string& out) {
  if (is_blank(byte)) {
    out += byte;
    return Reading::kMore;
  }
  const bool is_object = levels_.back() == '{';
  if (byte == ',') {
    comma_ = byte;
    state_ = is_object ? State::kKey : State::kValue;
    return Reading::kMore;
  }
  const bool closes = is_object ? byte == '}' : byte == ']' || byte == ')';
  return closes ? close(out) : Reading::kBad;
}

}  // namespace saker::text
