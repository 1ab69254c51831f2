// SPDX-License-Identifier: Apache-2.0
// Requests, their streams and events.
#include "saker/base/error.h"
#include "saker/capi/event_json.h"
#include "saker/capi/model.h"
#include "saker/capi/status.h"
#include "saker/engine/records/result_json.h"
#include "saker/engine/stream.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

struct SakerStream {
  std::shared_ptr<saker::capi::Model> model;  // Ends after the stream.
  saker::engine::Stream stream;
  bool with_logprobs = false;
};

namespace saker::capi {
namespace {

constexpr std::int64_t kLongestWait = std::int64_t{1} << 40;  // In milliseconds: 35 years.

std::optional<engine::Event> next_event(engine::Stream& stream, std::int64_t timeout_ms) {
  return timeout_ms < 0
             ? stream.next()
             : stream.next(std::chrono::milliseconds(std::min(timeout_ms, kLongestWait)));
}

SakerStatus next(SakerStream& stream, std::int64_t timeout_ms, SakerEvent*& out) {
  auto given =
      std::make_unique<SakerEvent>();  // Before the event: without memory it would be lost.
  std::optional<engine::Event> event = next_event(stream.stream, timeout_ms);
  if (!event) {
    return stream.stream.ended() ? SAKER_END : SAKER_TIMEOUT;
  }
  if (const auto* const failure = std::get_if<engine::Failure>(&event->what)) {
    given->outcome = outcome_of(failure->error);
  }
  given->event = std::move(*event);
  given->with_logprobs = stream.with_logprobs;
  out = given.release();
  return SAKER_OK;
}

Json generate(const Model& model, JsonFields fields) {
  engine::Request request = model.request(std::move(fields));
  require(
      request.output.n == 1,
      ErrorCode::kInvalidArgument,
      "n: got {}, expected 1: streams have several answers",
      request.output.n
  );
  const bool with_logprobs = request.output.logprobs >= 0;
  return engine::to_json(model.engine().generate(std::move(request)), with_logprobs);
}

static_assert(std::variant_size_v<engine::Event::What> == SAKER_EVENT_FAILURE + 1);
static_assert(std::is_same_v<
              std::variant_alternative_t<SAKER_EVENT_CONTENT, engine::Event::What>,
              text::ContentPiece>);
static_assert(std::is_same_v<
              std::variant_alternative_t<SAKER_EVENT_TOKEN, engine::Event::What>,
              engine::TokenEvent>);
static_assert(std::is_same_v<
              std::variant_alternative_t<SAKER_EVENT_END, engine::Event::What>,
              engine::End>);

}  // namespace
}  // namespace saker::capi

namespace capi = saker::capi;

SakerStatus saker_model_submit(
    SakerModel* model, const char* request, SakerStream** out, SakerText** message
) {
  return capi::guarded(message, [&] {
    SakerStream*& place = capi::cleared(out);
    const auto& loaded = capi::required(model, "model").model;
    saker::engine::Request wanted = loaded->request({request, "request"});
    const bool with_logprobs = wanted.output.logprobs >= 0;
    place = new SakerStream{loaded, loaded->engine().submit(std::move(wanted)), with_logprobs};
    return SAKER_OK;
  });
}

SakerStatus saker_model_generate(
    SakerModel* model, const char* request, SakerText** json, SakerText** message
) {
  return capi::guarded(message, [&] {
    SakerText*& place = capi::cleared(json);
    return capi::give(
        capi::generate(*capi::required(model, "model").model, {request, "request"}), place
    );
  });
}

SakerStatus saker_stream_next(
    SakerStream* stream, int64_t timeout_ms, SakerEvent** out, SakerText** message
) {
  return capi::guarded(message, [&] {
    SakerEvent*& place = capi::cleared(out);
    return capi::next(capi::required(stream, "stream"), timeout_ms, place);
  });
}

void saker_stream_cancel(SakerStream* stream) {
  if (stream != nullptr) {
    static_cast<void>(capi::guarded(nullptr, [&] {
      stream->stream.cancel();
      return SAKER_OK;
    }));
  }
}

SakerStatus saker_stream_on_ready(
    SakerStream* stream, void (*ready)(void* context), void* context, SakerText** message
) {
  return capi::guarded(message, [&] {
    std::function<void()> call;
    if (ready != nullptr) {
      call = [ready, context] { ready(context); };
    }
    capi::required(stream, "stream").stream.on_ready(std::move(call));
    return SAKER_OK;
  });
}

void saker_stream_free(SakerStream* stream) {
  delete stream;
}

SakerEventKind saker_event_kind(const SakerEvent* event) {
  return event == nullptr ? SAKER_EVENT_FAILURE
                          : static_cast<SakerEventKind>(event->event.what.index());
}

int32_t saker_event_choice(const SakerEvent* event) {
  return event == nullptr ? 0 : event->event.choice;
}

const char* saker_event_text(const SakerEvent* event) {
  return event == nullptr ? "" : capi::text_of(*event).c_str();
}

size_t saker_event_text_size(const SakerEvent* event) {
  return event == nullptr ? 0 : capi::text_of(*event).size();
}

SakerStatus saker_event_status(const SakerEvent* event) {
  return event == nullptr ? SAKER_INVALID_ARGUMENT : event->outcome.status;
}

SakerStatus saker_event_json(const SakerEvent* event, SakerText** json, SakerText** message) {
  return capi::guarded(message, [&] {
    SakerText*& place = capi::cleared(json);
    return capi::give(capi::event_json(capi::required(event, "event")), place);
  });
}

void saker_event_free(SakerEvent* event) {
  delete event;
}
