// SPDX-License-Identifier: Apache-2.0
#pragma once

// Takes a chat model's answer piece by piece and tells its parts as events.
//
// Reasoning stands between two markers. An opening marker counts only at the beginning of an
// answer, and only if the prompt does not already end with one. White space around reasoning is
// dropped, and so is white space that touches a call. A call counts only if it names a declared
// tool; its arguments stream. All that is no call is content: an answer without markers stays the
// same byte for byte. Within reasoning a call of a declared tool counts too.
//
// The joined events do not depend on how the answer was cut into pieces. Nothing throws but
// std::bad_alloc. Time is linear in the answer's length. One thread at a time.

#include "saker/text/begun.h"
#include "saker/text/output/output_format.h"
#include "saker/text/output/tool.h"
#include "saker/text/output_event.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace saker::text {

// The last tokens of a prompt decide if its answer begins with reasoning. Longer than any marker.
inline constexpr std::size_t kPromptEndTokens = 32;

// Which calls count.
enum class CallsRead : std::uint8_t { kNone, kOne, kAll };

struct OutputPolicy {
  CallsRead calls = CallsRead::kAll;
  // Ids of calls follow from it, so it differs between the answers of a conversation.
  std::uint64_t id_seed = 0;
  Begun begun = Begun::kNothing;  // The prompt ends in this part: no marker opens it.
};

// Why an answer has no more pieces.
enum class AnswerEnd : std::uint8_t {
  kWhole,  // The model ended it, or a stop string.
  kCut,    // A limit or a person ended it.
};

class OutputParser {
 public:
  // `prompt_end` is the end of the rendered prompt. If it ends with an opening marker, the answer
  // begins with reasoning. Without `tools` there are no calls.
  OutputParser(
      const OutputFormat& format,
      std::string_view prompt_end,
      std::vector<Tool> tools = {},
      OutputPolicy policy = {}
  );
  OutputParser(OutputParser&&) noexcept;
  OutputParser& operator=(OutputParser&&) noexcept;
  ~OutputParser();

  // Returns the events that a piece of whole characters makes final.
  std::vector<OutputEvent> push(std::string_view piece);
  // Returns the events of the text still held back. A call that was cut is not closed. Otherwise an open call is closed if
  // its arguments are whole; if not, its text is content. REQUIRES: no push() afterwards.
  std::vector<OutputEvent> finish(AnswerEnd end);

  // True if the reasoning has begun and not ended.
  bool is_thinking() const;
  // True if reasoning runs, or the message with the content is still to come in its channel.
  bool is_before_content() const;
  // The marker that would end the reasoning that runs; empty if none does.
  std::string_view reasoning_close() const;
  // True if the policy allows no more calls: the answer may end here.
  bool is_complete() const;

 private:
  class Machine;

  std::unique_ptr<Machine> machine_;
};

// The markers that open reasoning, or the content, at the beginning of an answer.
std::vector<std::string_view> opening_markers(const OutputFormat& format);

}  // namespace saker::text
