// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/responses/answer.h"

#include "saker/base/json/json_numbers.h"
#include "saker/server/turns/collected_answer.h"
#include "saker/server/turns/content_tokens.h"
#include "saker/server/turns/custom_tool.h"
#include "saker/server/turns/token_json.h"
#include "saker/server/turns/wire.h"

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace saker::server::responses {
namespace {

class Response : public Encoder {
 public:
  Response(
      ResponsesRequest request,
      std::shared_ptr<ResponseStore> store,
      const text::Tokenizer* tokenizer
  )
      : request_(std::move(request)), store_(std::move(store)), tokenizer_(tokenizer) {
    response_ = {
        {"id", new_id("resp_")},
        {"object", "response"},
        {"created_at", unix_time()},
        {"completed_at", nullptr},
        {"status", "in_progress"},
        {"error", nullptr},
        {"incomplete_details", nullptr},
    };
    response_.update(request_.echoed);
    response_["output"] = Json::array();
    response_["usage"] = nullptr;
  }

  std::string begin() override {
    std::string out;
    emit("response.created", {{"response", response_}}, out);
    emit("response.in_progress", {{"response", response_}}, out);
    return out;
  }

  void add(engine::Event event, std::string& out) override {
    if (auto* token = std::get_if<engine::TokenEvent>(&event.what)) {
      tokens_.add(std::move(*token));
    } else if (const auto* thought = std::get_if<text::ReasoningPiece>(&event.what)) {
      tokens_.drop();
      open(Item::kReasoning, out);
      text_ += thought->text;
      emit("response.reasoning_text.delta", place({{"delta", thought->text}}), out);
    } else if (const auto* piece = std::get_if<text::ContentPiece>(&event.what)) {
      add_content(piece->text, out);
    } else if (const auto* call = std::get_if<text::CallOpened>(&event.what)) {
      tokens_.drop();
      close("completed", out);
      open_call(*call, out);
    } else if (const auto* more = std::get_if<text::CallArguments>(&event.what)) {
      tokens_.drop();
      text_ += more->text;
      if (kind_ == Item::kCall) {
        emit_input("response.function_call_arguments.delta", {{"delta", more->text}}, out);
      }
    } else if (std::holds_alternative<text::CallClosed>(event.what)) {
      close("completed", out);
    } else if (const auto* end = std::get_if<engine::End>(&event.what)) {
      finish(*end->result, out);
    }
  }

  std::string end() override {
    return request_.streams ? std::string(kSseDone) : write_json(response_);
  }

  std::string failure(const ApiError& error) override {
    std::string out;
    emit("error", {{"code", "server_error"}, {"message", error.what()}, {"param", nullptr}}, out);
    response_["status"] = "failed";
    response_["error"] = {{"code", "server_error"}, {"message", error.what()}};
    emit("response.failed", {{"response", response_}}, out);
    return out + std::string(kSseDone);
  }

 private:
  enum class Item { kNone, kReasoning, kMessage, kCall, kCustomCall };

  void emit(std::string_view type, Json data, std::string& out) {
    if (!request_.streams) {
      return;
    }
    Json event = {{"type", type}, {"sequence_number", sequence_++}};
    event.update(data);
    out += sse(type, event);
  }

  // The place of a part of the open item.
  Json place(Json more) const {
    Json place = {{"item_id", item_["id"]}, {"output_index", index_}, {"content_index", 0}};
    place.update(more);
    return place;
  }

  // The place of a call's text.
  void emit_input(std::string_view type, Json more, std::string& out) {
    Json data = {{"item_id", item_["id"]}, {"output_index", index_}};
    data.update(more);
    emit(type, std::move(data), out);
  }

  void add_content(const std::string& delta, std::string& out) {
    open(Item::kMessage, out);
    text_ += delta;
    Json logprobs = token_logprobs(tokens_.take(delta), tokenizer_);
    logprobs_.insert(logprobs_.end(), logprobs.begin(), logprobs.end());
    Json data = place({{"delta", delta}});
    data["logprobs"] = std::move(logprobs);
    emit("response.output_text.delta", std::move(data), out);
  }

  Json part() const {
    if (kind_ == Item::kReasoning) {
      return {{"type", "reasoning_text"}, {"text", text_}};
    }
    return {
        {"type", "output_text"},
        {"text", text_},
        {"annotations", Json::array()},
        {"logprobs", logprobs_},
    };
  }

  void open(Item kind, std::string& out) {
    if (kind_ == kind) {
      return;
    }
    close("completed", out);
    kind_ = kind;
    if (kind == Item::kReasoning) {
      item_ = {
          {"id", new_id("rs_")},
          {"type", "reasoning"},
          {"status", "in_progress"},
          {"summary", Json::array()},
          {"content", Json::array()},
      };
    } else {
      item_ = {
          {"id", new_id("msg_")},
          {"type", "message"},
          {"status", "in_progress"},
          {"role", "assistant"},
          {"content", Json::array()},
      };
    }
    emit("response.output_item.added", {{"output_index", index_}, {"item", item_}}, out);
    emit("response.content_part.added", place({{"part", part()}}), out);
  }

  void open_call(const text::CallOpened& call, std::string& out) {
    const bool is_custom = request_.custom_tools.contains(call.name);
    kind_ = is_custom ? Item::kCustomCall : Item::kCall;
    item_ = {
        {"id", new_id(is_custom ? "ctc_" : "fc_")},
        {"type", is_custom ? "custom_tool_call" : "function_call"},
        {"status", "in_progress"},
        {"call_id", call.id},
        {"name", call.name},
        {is_custom ? "input" : "arguments", ""},
    };
    emit("response.output_item.added", {{"output_index", index_}, {"item", item_}}, out);
  }

  void close(std::string_view status, std::string& out) {
    if (kind_ == Item::kNone) {
      return;
    }
    switch (kind_) {
      case Item::kCall:
        item_["arguments"] = text_;
        emit_input(
            "response.function_call_arguments.done",
            {{"name", item_["name"]}, {"arguments", text_}},
            out
        );
        break;
      case Item::kCustomCall:
        close_custom_call(out);
        break;
      default:
        close_text(out);
    }
    item_["status"] = status;
    emit("response.output_item.done", {{"output_index", index_}, {"item", item_}}, out);
    response_["output"].push_back(std::exchange(item_, Json()));
    ++index_;
    kind_ = Item::kNone;
    text_.clear();
    logprobs_ = Json::array();
  }

  // The text is known when the arguments are whole.
  void close_custom_call(std::string& out) {
    const std::string input = custom_input(text_);
    item_["input"] = input;
    emit_input("response.custom_tool_call_input.delta", {{"delta", input}}, out);
    emit_input("response.custom_tool_call_input.done", {{"input", input}}, out);
  }

  void close_text(std::string& out) {
    const bool is_message = kind_ == Item::kMessage;
    Json done = place({{"text", text_}});
    if (is_message) {
      done["logprobs"] = logprobs_;
    }
    emit(
        is_message ? "response.output_text.done" : "response.reasoning_text.done",
        std::move(done),
        out
    );
    emit("response.content_part.done", place({{"part", part()}}), out);
    item_["content"] = Json::array({part()});
  }

  void finish(const engine::GenerateResult& result, std::string& out) {
    const bool is_complete = is_whole(result);
    if (kind_ == Item::kNone && index_ == 0) {
      open(Item::kMessage, out);
    }
    close(is_complete ? "completed" : "incomplete", out);
    const engine::GenerateStats& stats = result.stats;
    response_["usage"] = {
        {"input_tokens", stats.prompt_tokens},
        {"input_tokens_details", {{"cached_tokens", stats.cached_tokens}}},
        {"output_tokens", stats.generation_tokens},
        {"output_tokens_details", {{"reasoning_tokens", stats.reasoning_tokens}}},
        {"total_tokens", stats.prompt_tokens + stats.generation_tokens},
    };
    response_["status"] = is_complete ? "completed" : "incomplete";
    if (is_complete) {
      response_["completed_at"] = unix_time();
    } else {
      response_["incomplete_details"] = {{"reason", "max_output_tokens"}};
    }
    store();
    emit(
        is_complete ? "response.completed" : "response.incomplete", {{"response", response_}}, out
    );
  }

  void store() {
    if (!request_.stores) {
      return;
    }
    Json message = {{"role", "assistant"}, {"content", ""}};
    Json calls = Json::array();
    for (const Json& item : response_["output"]) {
      if (item["type"] == "reasoning") {
        message["reasoning_content"] = item["content"][0]["text"];
      } else if (item["type"] == "message") {
        message["content"] =
            message["content"].get<std::string>() + item["content"][0]["text"].get<std::string>();
      } else {
        const bool is_custom = item["type"] == "custom_tool_call";
        const Json arguments = is_custom ? Json(custom_arguments(item["input"].get<std::string>()))
                                         : item["arguments"];
        calls.push_back(
            {{"id", item["call_id"]},
             {"type", "function"},
             {"function", {{"name", item["name"]}, {"arguments", arguments}}}}
        );
      }
    }
    if (!calls.empty()) {
      message["tool_calls"] = std::move(calls);
    }
    Json messages = std::move(request_.conversation);
    messages.push_back(std::move(message));
    store_->put(
        response_["id"].get<std::string>(),
        {.response = response_, .messages = std::move(messages), .input = std::move(request_.input)}
    );
  }

  ResponsesRequest request_;
  std::shared_ptr<ResponseStore> store_;
  const text::Tokenizer* tokenizer_;
  ContentTokens tokens_;
  Json logprobs_ = Json::array();  // Of the open message.
  Json response_;
  int sequence_ = 0;
  Item kind_ = Item::kNone;  // The open item.
  Json item_;
  std::string text_;  // The open item's text or arguments.
  int index_ = 0;     // The open item's place, or the next one's.
};

}  // namespace

std::unique_ptr<Encoder> response_encoder(
    ResponsesRequest request, std::shared_ptr<ResponseStore> store, const text::Tokenizer* tokenizer
) {
  return std::make_unique<Response>(std::move(request), std::move(store), tokenizer);
}

}  // namespace saker::server::responses
