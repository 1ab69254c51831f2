// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads one value as models write it, byte by byte, and writes it as JSON. It takes JSON, literals
// of Python, and notations with bare keys and quotes of their own (Gemma). JSON passes through
// unchanged. Slips that have one meaning are mended: line ends within a string, unknown escapes, a
// comma before a closing bracket, half a surrogate pair, True and None. Nesting and the sizes of
// what is held back are bounded. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {

// Notation of values beside JSON and Python.
struct ValueNotation {
  std::string quote = {};  // Both ends of a string without escapes, such as <escape>.
  bool has_bare_keys = false;
};

class ValueReader {
 public:
  enum class Reading : std::uint8_t {
    kMore,
    kDone,        // This byte ended the value.
    kDoneBefore,  // The value ended before this byte, which was not taken.
    kBad,         // Not a value.
  };

  // REQUIRES: `notation` outlives *this.
  explicit ValueReader(const ValueNotation& notation) : notation_(&notation) {}

  // Takes a byte and appends what is final to `out`. REQUIRES: no end so far.
  Reading feed(char byte, std::string& out);

  // True if the value may end here: a number or a word.
  bool may_end() const { return state_ == State::kWord && levels_.empty() && is_word_whole(); }

  // Writes a value that ends here. REQUIRES: may_end().
  void end(std::string& out);

  // True before the value's first byte.
  bool is_new() const { return state_ == State::kValue && levels_.empty(); }

 private:
  enum class State : std::uint8_t {
    kValue,     // Before a value.
    kWord,      // Within a number or a name.
    kString,    // Within quotes.
    kEscape,    // Behind a backslash.
    kDigits,    // Within the digits of an escape.
    kQuote,     // Within the opening quote of the notation.
    kRaw,       // Within a string of the notation.
    kKey,       // Before a key.
    kBareKey,   // Within a key without quotes.
    kAfterKey,  // Before a colon.
    kAfter,     // Behind a value that lies in another one.
  };

  Reading value(char byte, std::string& out);
  Reading word(char byte, std::string& out);
  Reading string(char byte, std::string& out);
  Reading escape(char byte, std::string& out);
  Reading digits(char byte, std::string& out);
  Reading quote(char byte, std::string& out);
  Reading raw(char byte, std::string& out);
  Reading key(char byte, std::string& out);
  Reading bare_key(char byte, std::string& out);
  Reading after(char byte, std::string& out);
  Reading open(char bracket, std::string& out);
  Reading close(std::string& out);
  Reading ended();

  bool is_word_whole() const;
  void write_code_point(std::uint32_t code, std::string& out);
  void drop_half_pair(std::string& out);
  void flush_comma(std::string& out);

  const ValueNotation* notation_;
  State state_ = State::kValue;
  std::vector<char> levels_;  // Open brackets: '{' or '['.
  bool is_key_ = false;       // The string is a key.
  char quote_ = '"';
  std::string held_;             // A word, digits of an escape, or what may be a quote.
  std::string comma_;            // A comma and blanks behind it, until a value follows.
  std::size_t digits_ = 0;       // Digits of the escape.
  std::uint32_t half_pair_ = 0;  // A high surrogate that waits for the low one.
};

// Writes a byte as part of a JSON string.
void append_escaped(std::string& out, char byte);

// White space of JSON.
inline bool is_blank(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

}  // namespace saker::text
