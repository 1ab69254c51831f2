// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/word_wrap.h"

#include "saker/base/characters/utf8_character.h"

#include <algorithm>
#include <utility>

namespace saker::cli {
namespace {

// A word that is longer is shown before it ends.
constexpr std::size_t kLongestWord = 1024;
constexpr std::string_view kFence = "```";

}  // namespace

std::string wrapped(const Terminal& terminal, std::string_view text) {
  WordWrap wrap([&terminal] { return terminal.width(); });
  std::string shown = wrap.push(text);
  return shown + wrap.flush();
}

std::string WordWrap::push(std::string_view piece) {
  std::string shown;
  while (!piece.empty()) {
    const std::size_t length = std::max<std::size_t>(first_character(piece).length, 1);
    const std::string_view character = piece.substr(0, length);
    piece.remove_prefix(length);
    if (character == "\n") {
      end_line(shown);
    } else if (character == " " || character == "\t") {
      place_word(shown);
      spaces_ += character;
    } else {
      // A line may break anywhere between wide characters, such as Chinese.
      const bool is_wide = length > 1 && text_width(character) > 1;
      if (is_wide) {
        place_word(shown);
      }
      word_ += character;
      if (is_wide || word_.size() > kLongestWord) {
        place_word(shown);
      }
    }
  }
  return shown;
}

std::string WordWrap::flush() {
  std::string shown;
  place_word(shown);
  shown += std::exchange(spaces_, {});
  return shown;
}

void WordWrap::end_line(std::string& shown) {
  place_word(shown);
  spaces_.clear();
  shown += '\n';
  column_ = 0;
  is_table_ = false;
}

void WordWrap::place_word(std::string& shown) {
  if (word_.empty()) {
    return;
  }
  if (column_ == 0) {
    is_table_ = word_.starts_with('|');
    is_code_ = is_code_ != word_.starts_with(kFence);
  }
  const std::size_t width = width_();
  const std::size_t needed = text_width(word_);
  const std::size_t between = spaces_.size();
  if (column_ > 0 && width > 0 && !is_code_ && !is_table_ && column_ + between + needed > width) {
    shown += '\n';
    column_ = needed;
  } else {
    shown += spaces_;
    column_ += between + needed;
  }
  shown += std::exchange(word_, {});
  spaces_.clear();
  if (width > 0 && column_ > width) {
    column_ %= width;  // The terminal has wrapped the line itself.
    column_ = column_ == 0 ? width : column_;
  }
}

}  // namespace saker::cli
