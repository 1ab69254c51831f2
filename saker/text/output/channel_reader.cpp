// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/channel_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace saker::text {
namespace {

constexpr std::string_view kChannel = "<|channel|>";
constexpr std::string_view kStartToken = "<|start|>";
constexpr std::string_view kMessage = "<|message|>";
constexpr std::string_view kRecipient = " to=";
// Markers that begin a header.
constexpr std::array<std::string_view, 4> kHeaders{kChannel, kStartToken, kRecipient, kMessage};
// Markers that end a message; the last two begin the next one.
constexpr std::array<std::string_view, 5> kEnds{
    "<|end|>", "<|return|>", "<|call|>", kStartToken, kChannel
};
constexpr std::size_t kMaxHeader = 512;

bool begins(std::string_view held, const auto& markers) {
  return std::ranges::any_of(markers, [held](std::string_view marker) {
    return marker.starts_with(held);
  });
}

bool is_any(std::string_view held, const auto& markers) {
  return std::ranges::find(markers, held) != markers.end();
}

// The word behind a key, up to white space or a marker.
std::string_view word_after(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string_view::npos) {
    return {};
  }
  text.remove_prefix(at + key.size());
  const auto begin = text.find_first_not_of(' ');
  text.remove_prefix(begin == std::string_view::npos ? text.size() : begin);
  return text.substr(0, text.find_first_of(" \n\t<"));
}

}  // namespace

void ChannelReader::feed(char byte) {
  switch (state_) {
    case State::kStart:
      return start(byte);
    case State::kHeader:
      return header(byte);
    case State::kBody:
      return body(byte);
    case State::kCall:
      return call(byte);
    case State::kBetween:
      return between(byte);
  }
}

void ChannelReader::continue_message(Begun part) {
  is_analysis_ = part == Begun::kReasoning;
  has_content_ = part == Begun::kContent;
  state_ = part == Begun::kNothing ? state_ : State::kBody;
}

void ChannelReader::begin_text() {
  is_analysis_ = false;
  has_content_ = true;
  state_ = State::kBody;
  held_.clear();
}

void ChannelReader::show(std::string_view text) {
  if (!is_analysis_) {
    writer_.say(text);
    return;
  }
  for (const char byte : text) {
    writer_.think(byte);
  }
}

void ChannelReader::start(char byte) {
  held_ += byte;
  if (is_any(held_, kHeaders)) {
    state_ = State::kHeader;
    if (held_ == kMessage) {
      take_header();
    }
  } else if (!begins(held_, kHeaders)) {
    const std::string text = std::exchange(held_, {});
    begin_text();
    for (const char part : text) {
      body(part);
    }
  }
}

void ChannelReader::header(char byte) {
  held_ += byte;
  if (held_.ends_with(kMessage)) {
    take_header();
  } else if (held_.size() > kMaxHeader) {
    const std::string text = std::exchange(held_, {});
    begin_text();
    show(text);
  }
}

void ChannelReader::take_header() {
  constexpr std::string_view kScope = "functions.";
  const std::string written = std::exchange(held_, {});
  std::string_view recipient = word_after(written, kRecipient.substr(1));
  recipient.remove_prefix(recipient.starts_with(kScope) ? kScope.size() : 0);
  if (writer_.tool(recipient) != nullptr) {
    raw_ = written;
    writer_.open(std::string(recipient), "");
    value_.emplace(notation_);
    state_ = State::kCall;
    return;
  }
  if (word_after(written, kChannel) == "analysis") {
    if (writer_.has_thoughts()) {
      writer_.end_thoughts();
    }
    is_analysis_ = true;
    state_ = State::kBody;
    return;
  }
  begin_text();
  if (!recipient.empty()) {
    show(written);  // A call of something else.
  }
}

void ChannelReader::body(char byte) {
  held_ += byte;
  while (!held_.empty() && !begins(held_, kEnds)) {
    show(std::string_view(held_).substr(0, 1));
    held_.erase(0, 1);
  }
  if (!is_any(held_, kEnds)) {
    return;
  }
  const bool begins_header = held_ == kStartToken || held_ == kChannel;
  state_ = begins_header ? State::kHeader : State::kBetween;
  if (!begins_header) {
    held_.clear();
  }
}

void ChannelReader::call(char byte) {
  raw_ += byte;
  std::string out;
  const bool is_bad_begin = value_->is_new() && byte != '{' && !is_blank(byte);
  const auto read = is_bad_begin ? ValueReader::Reading::kBad : value_->feed(byte, out);
  if (!value_->is_new()) {
    writer_.arguments(out);
  }
  if (read == ValueReader::Reading::kDone) {
    writer_.close();
    raw_.clear();
    state_ = State::kBetween;
  } else if (read != ValueReader::Reading::kMore) {
    writer_.abandon();
    begin_text();
    writer_.say(std::exchange(raw_, {}));
  }
}

void ChannelReader::between(char byte) {
  if (held_.empty() && is_blank(byte)) {
    return;
  }
  held_ += byte;
  if (held_ == kStartToken || held_ == kChannel) {
    state_ = State::kHeader;
  } else if (is_any(held_, kEnds)) {
    held_.clear();
  } else if (!begins(held_, kEnds)) {
    const std::string text = std::exchange(held_, {});
    begin_text();
    for (const char part : text) {
      feed(part);
    }
  }
}

void ChannelReader::finish(AnswerEnd end) {
  if (state_ == State::kCall) {
    if (end == AnswerEnd::kWhole) {
      writer_.abandon();
      writer_.say(raw_);
    }
    return;
  }
  if (state_ == State::kHeader && end == AnswerEnd::kCut) {
    return;  // The beginning of a message.
  }
  if (state_ != State::kBody) {
    is_analysis_ = false;
  }
  show(std::exchange(held_, {}));
}

}  // namespace saker::text
