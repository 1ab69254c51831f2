// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/output_parser.h"

#include "saker/text/output/call_reader.h"
#include "saker/text/output/channel_reader.h"
#include "saker/text/output/event_writer.h"
#include "saker/text/output/value_reader.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace saker::text {
namespace {

// After more white space than this, a marker of reasoning is content.
constexpr std::size_t kMaxBlanks = 64;
// A longer beginning of a call is not read again when it turns out to be none.
constexpr std::size_t kMaxReread = 4096;
// The reasoning of a model with channels.
constexpr std::string_view kAnalysis = "<|channel|>analysis<|message|>";

enum class Action : std::uint8_t {
  kThink,
  kEndThoughts,
  kRepeat,
  kOpen,
  kClose,
  kCalls,
  kChannels
};

struct Marker {
  std::string_view text;
  Action action = Action::kThink;
  std::size_t index = 0;
};

}  // namespace

// Bytes come one at a time, so that pieces cannot matter. A byte that a machine gives back goes in
// front of the queue.
class OutputParser::Machine {
 public:
  Machine(
      OutputFormat format, std::string_view prompt_end, std::vector<Tool> tools, OutputPolicy policy
  )
      : format_(std::move(format)), writer_(std::move(tools), policy) {
    if (policy.begun != Begun::kNothing) {
      continue_answer(policy.begun);
      return;
    }
    if (format_.channels == ChannelUse::kHarmony) {
      mode_ = Mode::kChannels;
      channels_.emplace(writer_);
    }
    const std::string_view end = trimmed(prompt_end);
    for (std::size_t i = 0; i < format_.reasoning.size() && mode_ == Mode::kText; ++i) {
      if (end.ends_with(format_.reasoning[i].open)) {
        reasoning_ = i;
        mode_ = Mode::kThinking;
      }
    }
    if (!format_.content_open.empty() && end.ends_with(trimmed(format_.content_open))) {
      is_opened_ = true;
      is_beginning_ = false;
    }
    find_markers();
    for (const CallFormat& call : format_.calls) {
      // The prompt may have opened a call.
      const std::string_view trigger = trimmed(call.open.empty() ? call.call_open : call.open);
      if (mode_ == Mode::kText && !trigger.empty() && end.ends_with(trigger)) {
        give_back(trigger);
        break;
      }
    }
  }

  void push(char byte) {
    queue_.push_back(byte);
    run();
  }

  void finish(AnswerEnd end);

  std::string_view reasoning_close() const {
    constexpr std::string_view kFinal = "<|end|><|start|>assistant<|channel|>final<|message|>";
    return mode_ == Mode::kThinking ? std::string_view(format_.reasoning[reasoning_].close)
           : is_thinking()          ? kFinal
                                    : std::string_view();
  }

  EventWriter& writer() { return writer_; }

  const EventWriter& writer() const { return writer_; }

  bool is_thinking() const {
    return mode_ == Mode::kChannels ? channels_->is_thinking() : mode_ == Mode::kThinking;
  }

  bool is_before_content() const {
    if (mode_ == Mode::kChannels) {
      return channels_->is_before_content();
    }
    return mode_ == Mode::kThinking;
  }

 private:
  enum class Mode : std::uint8_t { kText, kThinking, kCalls, kChannels };

  void continue_answer(Begun part);
  void run();
  void scan(char byte);
  void give_back(std::string_view text);
  void find_markers();
  void act(const Marker& marker);
  void emit(char byte);
  void emit_text(std::string_view text);
  void flush_blanks();
  void begin_calls(std::size_t index, std::string_view trigger);
  void read_calls(char byte);
  void end_calls();
  void fail_calls();

  OutputFormat format_;
  EventWriter writer_;
  Mode mode_ = Mode::kText;
  std::deque<char> queue_;
  std::vector<Marker> markers_;  // Of this mode.
  std::string held_;             // May become a marker.
  std::string blanks_;           // White space that may touch a call, or a marker.
  bool is_beginning_ = true;     // Reasoning may begin.
  bool has_content_ = false;
  bool is_opened_ = false;     // The content's opening marker has come.
  bool drops_blanks_ = false;  // Until the next other character.
  std::size_t reasoning_ = 0;  // The markers around the reasoning.
  // Of the calls that are read.
  std::unique_ptr<CallReader> calls_;
  Mode outer_ = Mode::kText;
  std::string trigger_;
  std::string raw_;  // Since the last whole call.
  bool is_bare_ = false;
  std::optional<ChannelReader> channels_;
};

void OutputParser::Machine::continue_answer(Begun part) {
  if (part == Begun::kReasoning) {
    writer_.continue_thoughts();
  }
  if (format_.channels == ChannelUse::kHarmony) {
    mode_ = Mode::kChannels;
    channels_.emplace(writer_).continue_message(part);
    return;
  }
  // Without markers reasoning can't be told from content.
  mode_ = part == Begun::kReasoning && !format_.reasoning.empty() ? Mode::kThinking : Mode::kText;
  is_beginning_ = false;
  has_content_ = part == Begun::kContent;
  is_opened_ = has_content_ && !format_.content_open.empty();
  find_markers();
}

void OutputParser::Machine::run() {
  while (!queue_.empty()) {
    const char byte = queue_.front();
    queue_.pop_front();
    switch (mode_) {
      case Mode::kText:
      case Mode::kThinking:
        scan(byte);
        break;
      case Mode::kCalls:
        read_calls(byte);
        break;
      case Mode::kChannels:
        channels_->feed(byte);
        break;
    }
  }
}

void OutputParser::Machine::give_back(std::string_view text) {
  queue_.insert(queue_.begin(), text.begin(), text.end());
}

void OutputParser::Machine::find_markers() {
  markers_.clear();
  if (mode_ == Mode::kThinking) {
    markers_.push_back({format_.reasoning[reasoning_].close, Action::kEndThoughts});
    if (!writer_.has_thoughts()) {
      // Some models repeat the opening marker of the prompt.
      markers_.push_back({format_.reasoning[reasoning_].open, Action::kRepeat});
    }
  } else {
    for (std::size_t i = 0; i < format_.reasoning.size() && is_beginning_; ++i) {
      markers_.push_back({format_.reasoning[i].open, Action::kThink, i});
    }
    if (is_beginning_) {
      markers_.push_back({kAnalysis, Action::kChannels});
    }
    if (!format_.content_open.empty() && !is_opened_ && !has_content_) {
      markers_.push_back({trimmed(format_.content_open), Action::kOpen});
    }
    if (!format_.content_close.empty() && is_opened_) {
      markers_.push_back({trimmed(format_.content_close), Action::kClose});
    }
  }
  for (std::size_t i = 0; i < format_.calls.size() && writer_.reads_calls(); ++i) {
    const CallFormat& call = format_.calls[i];
    const std::string_view trigger = trimmed(call.open.empty() ? call.call_open : call.open);
    if (!trigger.empty()) {
      markers_.push_back({trigger, Action::kCalls, i});
    }
  }
}

void OutputParser::Machine::scan(char byte) {
  if (held_.empty() && mode_ == Mode::kText) {
    if (is_blank(byte)) {
      blanks_ += drops_blanks_ ? "" : std::string_view(&byte, 1);
      if (blanks_.size() > kMaxBlanks) {
        flush_blanks();
      }
      return;
    }
    const bool may_be_bare = !has_content_ && (byte == '{' || byte == '[');
    for (std::size_t i = 0; may_be_bare && i < format_.calls.size(); ++i) {
      const CallFormat& call = format_.calls[i];
      if (writer_.reads_calls() && call.open.empty() && call.call_open.empty()) {
        begin_calls(i, "");
        give_back({&byte, 1});
        return;
      }
    }
  }
  held_ += byte;
  Marker found;  // The longest one that has come.
  for (const Marker& marker : markers_) {
    if (marker.text.size() > held_.size() && marker.text.starts_with(held_)) {
      return;
    }
    if (marker.text.size() > found.text.size() && held_.starts_with(marker.text)) {
      found = marker;
    }
  }
  const std::string text = std::exchange(held_, {});
  const std::size_t taken = std::max<std::size_t>(found.text.size(), 1);
  give_back(std::string_view(text).substr(taken));
  if (found.text.empty()) {
    emit(text.front());
  } else {
    act(found);
  }
}

void OutputParser::Machine::act(const Marker& marker) {
  switch (marker.action) {
    case Action::kThink:
      blanks_.clear();
      reasoning_ = marker.index;
      mode_ = Mode::kThinking;
      is_beginning_ = false;
      break;
    case Action::kRepeat:
      break;
    case Action::kEndThoughts:
      writer_.end_thoughts();
      is_beginning_ = false;
      drops_blanks_ = true;
      mode_ = Mode::kText;
      break;
    case Action::kOpen:
      blanks_.clear();
      is_opened_ = true;
      is_beginning_ = false;
      drops_blanks_ = true;
      break;
    case Action::kClose:
      blanks_.clear();
      is_opened_ = false;
      drops_blanks_ = true;
      has_content_ = true;
      break;
    case Action::kCalls:
      begin_calls(marker.index, marker.text);
      return;
    case Action::kChannels:
      blanks_.clear();
      mode_ = Mode::kChannels;
      channels_.emplace(writer_);
      for (const char byte : kAnalysis) {
        channels_->feed(byte);
      }
      return;
  }
  find_markers();
}

void OutputParser::Machine::flush_blanks() {
  const std::string blanks = std::exchange(blanks_, {});
  if (blanks.empty()) {
    return;
  }
  writer_.say(blanks);
  is_beginning_ = false;
  find_markers();
}

// A byte that belongs to no marker.
void OutputParser::Machine::emit(char byte) {
  if (mode_ == Mode::kThinking) {
    const bool had_thoughts = writer_.has_thoughts();
    writer_.think(byte);
    if (!had_thoughts && writer_.has_thoughts()) {
      find_markers();
    }
    return;
  }
  flush_blanks();
  writer_.say({&byte, 1});
  drops_blanks_ = false;
  if (is_beginning_ || !has_content_) {
    is_beginning_ = false;
    has_content_ = true;
    find_markers();
  }
}

void OutputParser::Machine::emit_text(std::string_view text) {
  for (const char byte : text) {
    emit(byte);
  }
}

void OutputParser::Machine::begin_calls(std::size_t index, std::string_view trigger) {
  const CallFormat& call = format_.calls[index];
  outer_ = mode_;
  mode_ = Mode::kCalls;
  trigger_ = trigger;
  raw_ = trigger;
  is_bare_ = trigger.empty();
  calls_ = make_call_reader(call, writer_, call.open.empty() && !call.call_open.empty());
}

void OutputParser::Machine::read_calls(char byte) {
  raw_ += byte;
  const bool was_open = writer_.is_open();
  const int closed = writer_.closed();
  const CallReader::Reading reading = calls_->feed(byte);
  if (writer_.is_open() && !was_open) {
    blanks_.clear();
  }
  if (writer_.closed() > closed) {
    blanks_.clear();
    raw_.clear();
    trigger_.clear();
    is_bare_ = false;
  }
  switch (reading) {
    case CallReader::Reading::kMore:
      return;
    case CallReader::Reading::kEnd:
      raw_.clear();
      end_calls();
      return;
    case CallReader::Reading::kEndBefore: {
      const std::string rest = std::exchange(raw_, {});
      end_calls();
      give_back(rest.empty() ? std::string_view(&byte, 1) : std::string_view(rest));
      return;
    }
    case CallReader::Reading::kFailed:
      fail_calls();
      return;
  }
}

// Behind calls: white space that touches them is dropped.
void OutputParser::Machine::end_calls() {
  calls_.reset();
  mode_ = outer_;
  if (mode_ == Mode::kText) {
    is_beginning_ = false;
    has_content_ = true;
    drops_blanks_ = true;
  }
  find_markers();
}

// Since the last whole call there is no call: that text belongs to what is around it.
void OutputParser::Machine::fail_calls() {
  const std::string raw = std::exchange(raw_, {});
  const bool was_open = writer_.is_open();
  const bool follows_call = trigger_.empty() && !is_bare_;
  writer_.abandon();
  calls_.reset();
  mode_ = outer_;
  if (follows_call && mode_ == Mode::kText) {
    is_beginning_ = false;
    has_content_ = true;
  }
  find_markers();
  const std::size_t emitted =
      was_open || raw.size() > kMaxReread ? raw.size() : std::max<std::size_t>(trigger_.size(), 1);
  give_back(std::string_view(raw).substr(emitted));
  emit_text(std::string_view(raw).substr(0, emitted));
}

void OutputParser::Machine::finish(AnswerEnd end) {
  if (mode_ == Mode::kChannels) {
    channels_->finish(end);
    return;
  }
  if (mode_ == Mode::kCalls) {
    const bool is_cut = end == AnswerEnd::kCut;
    const bool is_whole = !is_cut && calls_->finish();
    const bool has_begun = writer_.is_open() || !is_bare_;
    if (is_whole || (is_cut && has_begun)) {
      return;
    }
    writer_.abandon();
    mode_ = outer_;
    const std::string raw = std::exchange(raw_, {});
    emit_text(trimmed(raw).empty() ? std::string_view() : std::string_view(raw));
  }
  if (mode_ == Mode::kText) {
    flush_blanks();
  }
  emit_text(std::exchange(held_, {}));
}

OutputParser::OutputParser(
    const OutputFormat& format,
    std::string_view prompt_end,
    std::vector<Tool> tools,
    OutputPolicy policy
)
    : machine_(std::make_unique<Machine>(format, prompt_end, std::move(tools), policy)) {}

OutputParser::OutputParser(OutputParser&&) noexcept = default;
OutputParser& OutputParser::operator=(OutputParser&&) noexcept = default;
OutputParser::~OutputParser() = default;

std::vector<OutputEvent> OutputParser::push(std::string_view piece) {
  for (const char byte : piece) {
    machine_->push(byte);
  }
  return machine_->writer().take();
}

std::vector<OutputEvent> OutputParser::finish(AnswerEnd end) {
  machine_->finish(end);
  return machine_->writer().take();
}

bool OutputParser::is_thinking() const {
  return machine_->is_thinking();
}

bool OutputParser::is_before_content() const {
  return machine_->is_before_content();
}

std::string_view OutputParser::reasoning_close() const {
  return machine_->reasoning_close();
}

bool OutputParser::is_complete() const {
  return machine_->writer().is_complete();
}

std::vector<std::string_view> opening_markers(const OutputFormat& format) {
  std::vector<std::string_view> markers;
  for (const ReasoningMarkers& reasoning : format.reasoning) {
    markers.emplace_back(reasoning.open);
  }
  markers.push_back(kAnalysis);
  if (!format.content_open.empty()) {
    markers.push_back(trimmed(format.content_open));
  }
  return markers;
}

}  // namespace saker::text
