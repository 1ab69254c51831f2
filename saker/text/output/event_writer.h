// SPDX-License-Identifier: Apache-2.0
#pragma once

// Builds the events of an answer, and joins pieces of the same kind.

#include "saker/text/output/call_reader.h"
#include "saker/text/output/output_parser.h"
#include "saker/text/output/tool.h"
#include "saker/text/output_event.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::text {

class EventWriter final : public CallSink {
 public:
  EventWriter(std::vector<Tool> tools, OutputPolicy policy)
      : tools_(std::move(tools)), policy_(policy) {}

  // True if there may be calls at all.
  bool reads_calls() const { return !tools_.empty() && policy_.calls != CallsRead::kNone; }

  void say(std::string_view text);
  // White space around the reasoning is dropped.
  void think(char byte);

  // Reasoning of an earlier answer is continued: white space goes on as well.
  void continue_thoughts() { has_thoughts_ = true; }

  // The reasoning ends. Later reasoning begins a new line.
  void end_thoughts();

  bool has_thoughts() const { return has_thoughts_; }

  const Tool* tool(std::string_view name) const override;
  void open(const std::string& name, const std::string& id) override;
  void arguments(std::string_view text) override;
  void close() override;

  bool is_open() const { return is_open_; }

  int closed() const { return closed_; }

  // Gives up the open call: it stays unclosed.
  void abandon() { is_open_ = false; }

  bool is_complete() const { return policy_.calls == CallsRead::kOne && closed_ > 0; }

  std::vector<OutputEvent> take() { return std::exchange(events_, {}); }

 private:
  std::string id_of(const std::string& written);

  std::vector<Tool> tools_;
  OutputPolicy policy_;
  std::vector<OutputEvent> events_;
  std::string blanks_;  // White space in the reasoning that may end it or continue it.
  bool has_thoughts_ = false;
  bool is_open_ = false;
  int opened_ = 0;
  int closed_ = 0;
  std::vector<std::string> ids_;
};

}  // namespace saker::text
