// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/answer_view.h"

#include "saker/base/characters/printable.h"
#include "saker/cli/io/output.h"

#include <fmt/format.h>

#include <array>

namespace saker::cli {
namespace {

constexpr std::array<std::string_view, 10> kFrames{
    "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"
};
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";
// Answers that begin sooner show no spinner; longer prompts show their progress.
constexpr auto kQuiet = std::chrono::milliseconds(400);
constexpr auto kFrameTime = std::chrono::milliseconds(100);
constexpr auto kLongPrompt = std::chrono::seconds(1);

}  // namespace

void print_note(const Terminal& terminal, std::string_view text) {
  print_styled(terminal.dim(wrapped(terminal, printable_line(text))) + "\n");
}

AnswerView::AnswerView(const Terminal& terminal, ViewOptions options)
    : terminal_(terminal),
      options_(options),
      wrap_([&terminal, options] { return options.wraps ? terminal.width() : 0; }) {}

void AnswerView::wait(int done, int total) {
  const auto waited = Clock::now() - begin_;
  if (!options_.has_spinner || !terminal_.moves() || waited < kQuiet) {
    return;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waited).count();
  if (thinks_ && options_.thoughts == ThoughtView::kFolded) {
    spin(fmt::format("thinking, {} s", seconds));
  } else if (!thinks_ && !has_answer_) {
    const bool reads = waited > kLongPrompt && total > 0 && done < total;
    spin(reads ? fmt::format("reading the prompt, {} of {} tokens", done, total) : "");
  }
}

void AnswerView::think(std::string_view piece) {
  if (!terminal_.is_terminal()) {
    return;
  }
  if (!thinks_) {
    thinks_ = true;
    begin_ = Clock::now();
    clear_line();
    if (options_.thoughts == ThoughtView::kShown) {
      print_note(terminal_, "[thinking]");
    }
  }
  if (options_.thoughts == ThoughtView::kShown) {
    show(wrap_.push(printable_text(piece)));
  } else {
    wait(0, 0);
  }
}

void AnswerView::say(std::string_view piece) {
  if (!terminal_.is_terminal()) {
    has_answer_ = true;
    ends_line_ = piece.ends_with('\n');
    print(piece);
    return;
  }
  clear_line();
  end_thoughts();
  has_answer_ = true;
  show(wrap_.push(printable_text(piece)));
}

void AnswerView::end() {
  clear_line();
  end_thoughts();
  show(wrap_.flush());
  if (!ends_line_) {
    print("\n");
  }
  ends_line_ = true;
}

void AnswerView::spin(const std::string& text) {
  if (has_line_ && Clock::now() - last_frame_ < kFrameTime) {
    return;
  }
  last_frame_ = Clock::now();
  const std::string_view frame = kFrames[frame_++ % kFrames.size()];
  print_styled(fmt::format("\r\x1b[K{}\r", terminal_.dim(fmt::format("{} {}", frame, text))));
  has_line_ = true;
}

void AnswerView::clear_line() {
  if (has_line_) {
    print_styled("\r\x1b[K");
    has_line_ = false;
  }
}

void AnswerView::end_thoughts() {
  if (!thinks_) {
    return;
  }
  show(wrap_.flush());
  thinks_ = false;
  const std::chrono::duration<double> thought = Clock::now() - begin_;
  const std::string line = fmt::format("[thought for {:.1f} s]", thought.count());
  print_styled(fmt::format("{}{}\n\n", ends_line_ ? "" : "\n", terminal_.dim(line)));
  wrap_ = WordWrap([&terminal = terminal_, options = options_] {
    return options.wraps ? terminal.width() : 0;
  });
  ends_line_ = true;
}

void AnswerView::show(const std::string& text) {
  if (text.empty()) {
    return;
  }
  const bool is_dim = thinks_ && terminal_.has_colors();
  print_styled(is_dim ? fmt::format("{}{}{}", kDim, text, kPlain) : text);
  ends_line_ = text.ends_with('\n');
}

}  // namespace saker::cli
