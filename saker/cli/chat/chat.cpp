// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/chat/chat.h"

#include "saker/base/error.h"
#include "saker/engine/options/apply_options.h"

#include <algorithm>
#include <utility>

namespace saker::cli {
namespace {

// Maximum tokens of the context to reserve for an answer.
constexpr std::int64_t kMaxRoom = 1024;
constexpr int kSummaryTokens = 512;

constexpr std::string_view kSumUp =
    "Summarize our conversation so far in a few sentences. Keep all facts, names, numbers and "
    "decisions that matter for going on with it.";
constexpr std::string_view kSummaryOf = "What have we talked about so far?";

}  // namespace

Chat::Chat(ChatModel model)
    : model_(std::move(model)),
      session_(model_.engine->open_session()),
      conversation_(model_.opening) {}

Chat::~Chat() {
  model_.engine->close_session(session_);
}

void Chat::change_model(ChatModel model) {
  const std::uint64_t session = model.engine->open_session();
  model_ = std::move(model);  // Destroys the old engine and its session.
  session_ = session;
  last_.reset();
}

engine::Request Chat::options() const {
  engine::Request request = model_.defaults;
  engine::apply_record(settings_, request);
  if (!model_.has_seed && !settings_.contains("seed")) {
    request.sampling.seed += again_;
  }
  return request;
}

void Chat::set_settings(Json settings) {
  engine::Request request = model_.defaults;
  engine::apply_record(settings, request);
  sample::check_options(request.sampling, model_.engine->facts().vocab_size);
  settings_ = std::move(settings);
}

void Chat::set_conversation(Conversation conversation) {
  conversation_ = std::move(conversation);
}

void Chat::reset() {
  model_.engine->close_session(session_);
  session_ = model_.engine->open_session();
  conversation_ = Conversation(model_.opening);
  last_.reset();
}

int Chat::make_room(std::string_view question) {
  const std::int64_t context = model_.engine->facts().context_length;
  if (context <= 0 || !has_template()) {
    return 0;
  }
  engine::Request request = options();
  std::int64_t room = std::min(kMaxRoom, context / 4);
  if (request.output.max_tokens > 0) {
    room = std::min<std::int64_t>(room, request.output.max_tokens);
  }
  const auto tokens = [&](const Conversation& conversation) {
    request.prompt.messages = conversation.asking(question);
    return static_cast<std::int64_t>(model_.engine->prompt_tokens(request).size());
  };
  if (tokens(conversation_) <= context - room) {
    return 0;
  }
  // Down to half of the context, so that not every further turn runs the prompt anew.
  Conversation shorter = conversation_;
  int left = 0;
  while (tokens(shorter) > context / 2 && shorter.drop_oldest()) {
    ++left;
  }
  conversation_ = std::move(shorter);
  return left;
}

engine::GenerateResult Chat::ask(std::string_view question, const StreamHooks& hooks) {
  engine::Request request = options();
  if (has_template()) {
    request.prompt.session = session_;
    request.prompt.messages = conversation_.asking(question);
  } else {
    request.prompt.text = std::string(question);
  }
  engine::GenerateResult result = stream_request(*model_.engine, std::move(request), hooks);
  conversation_.add_turn(
      question, result.parts.value_or(text::AnswerParts{.content = result.text})
  );
  last_ = result;
  return result;
}

engine::GenerateResult Chat::answer_calls(
    const std::vector<std::string>& results, const StreamHooks& hooks
) {
  const std::vector<text::ToolCall> calls = open_calls();
  require(
      !calls.empty() && calls.size() == results.size(),
      ErrorCode::kInvalidArgument,
      "got {} results, expected {}",
      results.size(),
      calls.size()
  );
  Conversation with_results = conversation_;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    with_results.add_result(calls[i], results[i]);
  }
  engine::Request request = options();
  if (request.output.tool_choice.use != engine::ToolUse::kNone) {
    request.output.tool_choice.use = engine::ToolUse::kAuto;  // One forced call is enough.
  }
  request.prompt.session = session_;
  request.prompt.messages = with_results.messages();
  engine::GenerateResult result = stream_request(*model_.engine, std::move(request), hooks);
  with_results.add_answer(result.parts.value_or(text::AnswerParts{.content = result.text}));
  conversation_ = std::move(with_results);
  last_ = result;
  return result;
}

std::vector<text::ToolCall> Chat::open_calls() const {
  const bool has_calls =
      last_ && last_->parts && last_->finish_reason == engine::FinishReason::kToolCalls;
  return has_calls ? last_->parts->tool_calls : std::vector<text::ToolCall>();
}

engine::GenerateResult Chat::ask_again(const StreamHooks& hooks) {
  Conversation before = conversation_;
  const auto question = conversation_.undo();
  require(question.has_value(), ErrorCode::kInvalidArgument, "there is no question to ask again");
  try {
    ++again_;
    return ask(*question, hooks);
  } catch (...) {
    conversation_ = std::move(before);
    throw;
  }
}

engine::GenerateResult Chat::compact(const StreamHooks& hooks) {
  require(
      has_template() && conversation_.turns() > 0,
      ErrorCode::kInvalidArgument,
      "there is nothing to sum up"
  );
  engine::Request request = options();
  request.prompt.session = session_;
  request.prompt.think = false;
  request.sampling.temperature = 0.0;  // Facts, however the chat's answers are sampled.
  const std::int64_t context = model_.engine->facts().context_length;
  request.output.max_tokens = kSummaryTokens;
  if (context > 0) {
    request.output.max_tokens =
        static_cast<int>(std::clamp<std::int64_t>(context / 4, 1, kSummaryTokens));
  }
  request.prompt.messages = conversation_.asking(kSumUp);
  engine::GenerateResult result = stream_request(*model_.engine, std::move(request), hooks);
  const bool is_summary = result.finish_reason != engine::FinishReason::kCancelled &&
                          result.parts && !result.parts->content.empty();
  if (is_summary) {
    conversation_.clear();
    conversation_.add_turn(kSummaryOf, {.content = result.parts->content});
    last_ = result;
  }
  return result;
}

}  // namespace saker::cli
