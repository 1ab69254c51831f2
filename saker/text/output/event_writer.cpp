// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/event_writer.h"

#include "saker/text/output/value_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>

namespace saker::text {
namespace {

// Models write ids such as "0", which every answer repeats. Longer ones are their own.
constexpr std::size_t kMinId = 9;
constexpr std::size_t kMaxId = 128;
constexpr std::size_t kIdCharacters = 24;

template <typename Piece>
void append(std::vector<OutputEvent>& events, std::string_view text) {
  if (text.empty()) {
    return;
  }
  if (!events.empty()) {
    if (auto* last = std::get_if<Piece>(&events.back())) {
      last->text += text;
      return;
    }
  }
  Piece piece;
  piece.text = text;
  events.emplace_back(std::move(piece));
}

// SplitMix64 (Steele, Lea and Flood, 2014).
std::uint64_t mixed(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

}  // namespace

void EventWriter::say(std::string_view text) {
  append<ContentPiece>(events_, text);
}

void EventWriter::think(char byte) {
  if (is_blank(byte)) {
    blanks_ += byte;
    return;
  }
  const std::string blanks = std::exchange(blanks_, {});
  if (has_thoughts_) {
    append<ReasoningPiece>(events_, blanks);
  }
  append<ReasoningPiece>(events_, std::string_view(&byte, 1));
  has_thoughts_ = true;
}

void EventWriter::end_thoughts() {
  blanks_ = "\n";
}

const Tool* EventWriter::tool(std::string_view name) const {
  return reads_calls() && !is_complete() ? find_tool(tools_, name) : nullptr;
}

std::string EventWriter::id_of(const std::string& written) {
  const bool is_own = written.size() >= kMinId && written.size() <= kMaxId &&
                      std::ranges::find(ids_, written) == ids_.end();
  if (is_own) {
    return written;
  }
  constexpr std::string_view kCharacters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::uint64_t state = policy_.id_seed + static_cast<std::uint64_t>(opened_);
  std::string id = "call_";
  for (std::size_t i = 0; i < kIdCharacters; ++i) {
    id += kCharacters[mixed(state) % kCharacters.size()];
  }
  return id;
}

void EventWriter::open(const std::string& name, const std::string& id) {
  ids_.push_back(id_of(id));
  events_.emplace_back(CallOpened{.index = opened_, .id = ids_.back(), .name = name});
  ++opened_;
  is_open_ = true;
}

void EventWriter::arguments(std::string_view text) {
  if (text.empty()) {
    return;
  }
  if (auto* last = events_.empty() ? nullptr : std::get_if<CallArguments>(&events_.back())) {
    last->text += text;
  } else {
    events_.emplace_back(CallArguments{.index = opened_ - 1, .text = std::string(text)});
  }
}

void EventWriter::close() {
  events_.emplace_back(CallClosed{.index = opened_ - 1});
  is_open_ = false;
  ++closed_;
}

}  // namespace saker::text
