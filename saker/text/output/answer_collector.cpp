// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/answer_collector.h"

#include <variant>

namespace saker::text {
namespace {

struct Collect {
  AnswerParts& parts;
  ToolCall& open;

  void operator()(const ReasoningPiece& piece) const { parts.reasoning += piece.text; }

  void operator()(const ContentPiece& piece) const { parts.content += piece.text; }

  void operator()(const CallOpened& call) const { open = {.id = call.id, .name = call.name}; }

  void operator()(const CallArguments& piece) const { open.arguments += piece.text; }

  void operator()(const CallClosed& /*call*/) const {
    parts.tool_calls.push_back(std::exchange(open, {}));
  }
};

}  // namespace

void AnswerCollector::add(const OutputEvent& event) {
  std::visit(Collect{parts_, open_}, event);
}

}  // namespace saker::text
