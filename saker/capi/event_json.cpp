// SPDX-License-Identifier: Apache-2.0
#include "saker/capi/event_json.h"

#include "saker/engine/records/result_json.h"

#include <cmath>
#include <type_traits>
#include <utility>
#include <variant>

namespace saker::capi {
namespace {

Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

// Adds what an event of each kind has beside its kind and its choice.
class Members {
 public:
  Members(const SakerEvent& event, Json& json) : event_(event), json_(json) {}

  void operator()(const engine::PromptProgress& progress) const {
    json_["done"] = progress.done;
    json_["total"] = progress.total;
  }

  void operator()(const text::ReasoningPiece& piece) const { json_["text"] = piece.text; }

  void operator()(const text::ContentPiece& piece) const { json_["text"] = piece.text; }

  void operator()(const text::CallOpened& call) const {
    json_["call"] = call.index;
    json_["id"] = call.id;
    json_["name"] = call.name;
  }

  void operator()(const text::CallArguments& more) const {
    json_["call"] = more.index;
    json_["text"] = more.text;
  }

  void operator()(const text::CallClosed& call) const { json_["call"] = call.index; }

  void operator()(const engine::TokenEvent& token) const {
    Json top = Json::array();
    for (const auto& [id, logprob] : token.top) {
      top.push_back(Json::array({id, finite(logprob)}));
    }
    json_["token"] = token.id;
    json_["text"] = token.bytes;
    json_["logprob"] = finite(token.logprob);
    json_["top"] = std::move(top);
    json_["drafted"] = token.drafted;
  }

  void operator()(const engine::End& end) const {
    json_["result"] = engine::to_json(*end.result, event_.with_logprobs);
  }

  void operator()(const engine::Failure& /*failure*/) const {
    json_["error"] = {
        {"code", saker_status_name(event_.outcome.status)}, {"message", event_.outcome.line}
    };
  }

 private:
  const SakerEvent& event_;
  Json& json_;
};

}  // namespace

const std::string& text_of(const SakerEvent& event) {
  static const std::string none;
  return std::visit(
      [&](const auto& what) -> const std::string& {
        using What = std::decay_t<decltype(what)>;
        if constexpr (requires { what.text; }) {
          return what.text;
        } else if constexpr (requires { what.bytes; }) {
          return what.bytes;
        } else if constexpr (requires { what.result; }) {
          return what.result->text;
        } else {
          return std::is_same_v<What, engine::Failure> ? event.outcome.line : none;
        }
      },
      event.event.what
  );
}

Json event_json(const SakerEvent& event) {
  Json json = {{"kind", engine::event_name(event.event)}, {"choice", event.event.choice}};
  std::visit(Members(event, json), event.event.what);
  return json;
}

}  // namespace saker::capi
