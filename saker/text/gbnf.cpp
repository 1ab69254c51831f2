// SPDX-License-Identifier: Apache-2.0
#include "saker/text/gbnf.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>

namespace saker::text {
namespace {

constexpr std::string_view kDefines = "::=";

bool is_of_name(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
}

// One pass over the text. Rules begin where a name and ::= follow each other.
class Reader {
 public:
  Reader(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  std::string read() {
    while (skip_blanks()) {
      const std::string name = read_name();
      skip_blanks();
      if (!text_.substr(at_).starts_with(kDefines)) {
        fail("::=");
      }
      at_ += kDefines.size();
      lark_ += name + ":";
      read_body();
      lark_ += "\n";
    }
    return lark_;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    const auto line = std::ranges::count(text_.substr(0, at_), '\n') + 1;
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "{}: line {}: got {:?}, expected {}", what_, line, text_.substr(at_, 20), expected
        )
    );
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // White space and comments. False at the end.
  bool skip_blanks() {
    while (at_ < text_.size()) {
      if (peek() == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') {
        ++at_;
      } else {
        return true;
      }
    }
    return false;
  }

  // Lark's rules have lower-case letters, digits and _.
  std::string read_name() {
    std::string name;
    for (; is_of_name(peek()); ++at_) {
      const char byte = peek();
      name += byte == '-' ? '_' : byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
    }
    if (name.empty()) {
      fail("the name of a rule");
    }
    return name == "root" ? "start" : "g_" + name;
  }

  bool begins_rule() {
    const std::size_t begin = at_;
    while (is_of_name(peek())) {
      ++at_;
    }
    const bool has_name = at_ > begin;
    skip_blanks();
    const bool begins = has_name && text_.substr(at_).starts_with(kDefines);
    at_ = begin;
    return begins;
  }

  void read_body() {
    int depth = 0;
    while (skip_blanks() && !begins_rule()) {
      lark_ += " ";
      switch (peek()) {
        case '"':
          read_literal();
          break;
        case '[':
          read_class();
          break;
        case '.':
          ++at_;
          lark_ += "/(?s:.)/";
          break;
        case '(':
          ++at_;
          ++depth;
          lark_ += "(";
          continue;
        case ')':
          ++at_;
          if (--depth < 0) {
            fail("a rule");
          }
          lark_ += ")";
          break;
        case '|':
          ++at_;
          lark_ += "|";
          continue;
        default:
          if (!is_of_name(peek())) {
            fail("a literal, a class, a rule or a group");
          }
          lark_ += read_name();
      }
      read_times();
    }
    if (depth != 0) {
      fail(")");
    }
  }

  // ?, *, +, {m}, {m,} and {m,n}, which Lark has too.
  void read_times() {
    if (peek() == '?' || peek() == '*' || peek() == '+') {
      lark_ += text_[at_++];
    } else if (peek() == '{') {
      const std::size_t end = text_.find('}', at_);
      if (end == std::string_view::npos) {
        fail("}");
      }
      lark_ += text_.substr(at_, end + 1 - at_);
      at_ = end + 1;
    }
  }

  // A character of a literal or class, as UTF-8.
  std::string read_character() {
    if (at_ >= text_.size()) {
      fail("an end");
    }
    if (peek() != '\\') {
      std::string character(1, text_[at_++]);
      while ((static_cast<unsigned char>(peek()) & 0xC0U) == 0x80U) {
        character += text_[at_++];
      }
      return character;
    }
    ++at_;
    const char kind = peek();
    const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits > 0) {
      return read_code(digits);
    }
    ++at_;
    switch (kind) {
      case 'n':
        return "\n";
      case 'r':
        return "\r";
      case 't':
        return "\t";
      case '"':
      case '\\':
      case '[':
      case ']':
        return std::string(1, kind);
      default:
        --at_;
        fail("an escape such as \\n or \\x41");
    }
  }

  std::string read_code(std::size_t digits) {
    const std::string_view text = text_.substr(at_ + 1, digits);
    std::uint32_t code = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), code, 16);
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    if (text.size() != digits || parsed.ptr != text.data() + digits || is_surrogate ||
        code > 0x10FFFF) {
      fail("a code point");
    }
    at_ += digits + 1;
    std::string character;
    const auto add = [&character](std::uint32_t byte) {
      character += static_cast<char>(static_cast<unsigned char>(byte));
    };
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xC0U | code >> 6U);
      add(0x80U | (code & 0x3FU));
    } else if (code < 0x10000) {
      add(0xE0U | code >> 12U);
      add(0x80U | (code >> 6U & 0x3FU));
      add(0x80U | (code & 0x3FU));
    } else {
      add(0xF0U | code >> 18U);
      add(0x80U | (code >> 12U & 0x3FU));
      add(0x80U | (code >> 6U & 0x3FU));
      add(0x80U | (code & 0x3FU));
    }
    return character;
  }

  void read_literal() {
    ++at_;
    std::string literal;
    while (peek() != '"') {
      literal += read_character();
    }
    ++at_;
    lark_ += Json(literal).dump();
  }

  void read_class() {
    lark_ += "/[";
    ++at_;
    if (peek() == '^') {
      lark_ += text_[at_++];
    }
    while (peek() != ']') {
      add_of_class(read_character());
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        lark_ += "-";
        add_of_class(read_character());
      }
    }
    ++at_;
    lark_ += "]/";
  }

  void add_of_class(const std::string& character) {
    if (character == "\n") {
      lark_ += "\\n";
    } else if (character == "\r") {
      lark_ += "\\r";
    } else if (character == "\t") {
      lark_ += "\\t";
    } else {
      const bool is_sign =
          std::string_view("\\^$.|?*+()[]{}/-&~\"").find(character) != std::string_view::npos;
      lark_ += (is_sign ? "\\" : "") + character;
    }
  }

  std::string_view text_;
  std::string_view what_;
  std::size_t at_ = 0;
  std::string lark_;
};

}  // namespace

bool is_gbnf(std::string_view grammar) {
  // Lark's rules have a single colon.
  for (auto at = grammar.find(kDefines); at != std::string_view::npos;
       at = grammar.find(kDefines, at + 1)) {
    std::string_view before = grammar.substr(0, at);
    while (!before.empty() && (before.back() == ' ' || before.back() == '\t')) {
      before.remove_suffix(1);
    }
    const std::size_t line = before.rfind('\n') + 1;
    const std::string_view name = before.substr(line);
    if (!name.empty() && std::ranges::all_of(name, is_of_name)) {
      return true;
    }
  }
  return false;
}

std::string lark_of_gbnf(std::string_view grammar, std::string_view what) {
  return Reader(grammar, what).read();
}

}  // namespace saker::text
