// SPDX-License-Identifier: Apache-2.0
#include "saker/text/reasoning.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace saker::text {
namespace {

struct Format {
  std::string_view open;
  std::string_view close;
  std::string_view header = {};  // Precedes the content, behind the reasoning.
};

constexpr std::array<Format, 11> kFormats{{
    {"<think>", "</think>"},              // Qwen 3, DeepSeek, GLM and most others.
    {"[THINK]", "[/THINK]"},              // Mistral.
    {"<|channel>thought", "<channel|>"},  // Gemma 4.
    {"<|channel|>analysis<|message|>", "<|end|>", "<|start|>assistant<|channel|>final<|message|>"
    },  // gpt-oss.
    {"<seed:think>", "</seed:think>"},
    {"<mm:think>", "</mm:think>"},
    {"<thought>", "</thought>"},
    {"<thinking>", "</thinking>"},
    {"◁think▷", "◁/think▷"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<|inner_prefix|>", "<|inner_suffix|>"},
}};

// After more white space than this, a marker is content.
constexpr std::size_t kMaxBlanks = 64;

bool is_blank(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

}  // namespace

ReasoningSplitter::ReasoningSplitter(std::string_view prompt_end) {
  while (!prompt_end.empty() && is_blank(prompt_end.back())) {
    prompt_end.remove_suffix(1);
  }
  const auto* const opened = std::ranges::find_if(kFormats, [&](const Format& format) {
    return prompt_end.ends_with(format.open);
  });
  if (opened != kFormats.end()) {
    format_ = static_cast<std::size_t>(std::distance(kFormats.begin(), opened));
    state_ = State::kThinking;
  }
}

bool ReasoningSplitter::is_before_content() const {
  return state_ == State::kThinking ||
         (state_ == State::kAfter && !kFormats[format_].header.empty());
}

std::vector<std::string_view> ReasoningSplitter::opening_markers() {
  std::vector<std::string_view> markers;
  for (const Format& format : kFormats) {
    markers.push_back(format.open);
  }
  return markers;
}

AnswerParts ReasoningSplitter::push(std::string_view piece) {
  AnswerParts parts;
  for (std::size_t i = 0; i < piece.size(); ++i) {
    switch (state_) {
      case State::kBeginning:
        begin(piece[i], parts);
        break;
      case State::kThinking:
        think(piece[i], parts);
        break;
      case State::kAfter:
        skip(piece[i], parts);
        break;
      case State::kContent:
        parts.content += piece.substr(i);
        return parts;
    }
  }
  return parts;
}

AnswerParts ReasoningSplitter::finish() {
  AnswerParts parts;
  const std::string held = std::exchange(held_, {});
  if (state_ == State::kThinking) {
    for (const char byte : held) {
      add_thought(byte, parts);
    }
  } else {
    parts.content = held;
  }
  return parts;
}

void ReasoningSplitter::begin(char byte, AnswerParts& parts) {
  held_ += byte;
  if (held_.size() == blanks_before_ + 1 && is_blank(byte)) {
    ++blanks_before_;
  }
  const std::string_view marker = std::string_view(held_).substr(blanks_before_);
  const auto* const begun = std::ranges::find_if(kFormats, [&](const Format& format) {
    return format.open.starts_with(marker);
  });
  if (begun == kFormats.end() || blanks_before_ > kMaxBlanks) {
    parts.content += std::exchange(held_, {});
    state_ = State::kContent;
  } else if (begun->open == marker) {
    held_.clear();
    format_ = static_cast<std::size_t>(std::distance(kFormats.begin(), begun));
    state_ = State::kThinking;
  }
}

void ReasoningSplitter::think(char byte, AnswerParts& parts) {
  const Format& format = kFormats[format_];
  held_ += byte;
  // Some models repeat the opening marker of the prompt.
  const auto may_be_marker = [&] {
    return format.close.starts_with(held_) || (!has_thoughts_ && format.open.starts_with(held_));
  };
  while (!held_.empty() && !may_be_marker()) {
    add_thought(held_.front(), parts);
    held_.erase(0, 1);
  }
  if (held_ == format.close) {
    state_ = State::kAfter;
    held_.clear();
    blanks_.clear();
  } else if (held_ == format.open) {
    held_.clear();
  }
}

void ReasoningSplitter::add_thought(char byte, AnswerParts& parts) {
  if (is_blank(byte)) {
    blanks_ += byte;
    return;
  }
  const std::string blanks = std::exchange(blanks_, {});
  if (has_thoughts_) {
    parts.reasoning += blanks;
  }
  parts.reasoning += byte;
  has_thoughts_ = true;
}

void ReasoningSplitter::skip(char byte, AnswerParts& parts) {
  if (held_.empty() && is_blank(byte)) {
    return;
  }
  held_ += byte;
  const std::string_view header = kFormats[format_].header;
  if (held_ == header) {
    held_.clear();
  } else if (header.starts_with(held_)) {
    return;
  }
  parts.content += std::exchange(held_, {});
  state_ = State::kContent;
}

}  // namespace saker::text
