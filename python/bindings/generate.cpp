// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/generate.h"

#include "saker/base/json/json_numbers.h"
#include "saker/engine/options/apply_options.h"
#include "saker/engine/options/option_values.h"
#include "saker/engine/options/request_option.h"

#include "python/bindings/text.h"
#include "python/bindings/token_ids.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace nb = nanobind;

namespace saker::python {
namespace {

using engine::GenerateResult;
using engine::GenerateStats;
using engine::Request;
using engine::TokenLogprob;

void bind_options(nb::module_& module) {
  nb::class_<engine::EngineOptions>(module, "EngineOptions", "How a model is loaded.")
      .def(nb::init<>())
      .def_rw("threads", &engine::EngineOptions::threads)
      .def_rw("device", &engine::EngineOptions::device)
      .def_rw("prefill_step", &engine::EngineOptions::prefill_step)
      .def_rw("fast_prefill", &engine::EngineOptions::fast_prefill)
      .def_rw("batch", &engine::EngineOptions::batch)
      .def_rw("prefix_cache", &engine::EngineOptions::prefix_cache)
      .def_rw("cache_memory", &engine::EngineOptions::cache_memory)
      .def_prop_rw(
          "prefix_cache_dir",
          [](const engine::EngineOptions& self) { return self.prefix_cache_dir.string(); },
          [](engine::EngineOptions& self, const std::string& dir) { self.prefix_cache_dir = dir; }
      )
      .def_rw("prefix_cache_dir_size", &engine::EngineOptions::prefix_cache_dir_size)
      .def_rw("prefix_cache_interval", &engine::EngineOptions::prefix_cache_interval)
      .def_prop_rw(
          "draft",
          [](const engine::EngineOptions& self) { return self.draft.string(); },
          [](engine::EngineOptions& self, const std::string& draft) { self.draft = draft; },
          "``auto``: what the model brings; empty: none."
      );
}

// Throws Python's TypeError for a value of another kind.
void set_option(Request& request, std::string_view name, const nb::str& json) {
  const engine::RequestOption* option = engine::find_option(name);
  require(
      option != nullptr && option->doors.keyword,
      ErrorCode::kInvalidArgument,
      "unknown option {:?}",
      name
  );
  const Json value = json_of(json, option->name);
  if (!engine::has_kind(engine::in_kind(value, option->kind), option->kind)) {
    throw nb::type_error("the value has another type");
  }
  engine::apply_option(*option, option->name, value, request);
}

void bind_request(nb::module_& module) {
  nb::class_<Request>(module, "Request", "A prompt and how to continue it.")
      .def_prop_rw(
          "prompt",
          [](const Request& self) { return self.prompt.text; },
          [](Request& self, const nb::str& text) { self.prompt.text = utf8_of(text, "prompt"); }
      )
      .def_prop_rw(
          "tokens",
          [](const Request& self) { return self.prompt.tokens; },
          [](Request& self, const TokenIds& ids) { self.prompt.tokens = token_ids(ids); }
      )
      .def(
          "set_messages",
          [](Request& self, const nb::str& json) {
            self.prompt.messages = json_of(json, "messages");
          },
          nb::arg("json")
      )
      .def(
          "set_option",
          set_option,
          nb::arg("name"),
          nb::arg("json"),
          "Sets the option of this name to a JSON value."
      );
  module.def(
      "option_table",
      [] { return write_json(engine::option_table()); },
      "The options of a request as JSON."
  );
}

nb::list calls_of(const text::AnswerParts& parts) {
  nb::list calls;
  for (const text::ToolCall& call : parts.tool_calls) {
    nb::dict entry;
    entry["id"] = as_text(call.id);
    entry["name"] = as_text(call.name);
    entry["arguments"] = as_text(call.arguments);
    calls.append(entry);
  }
  return calls;
}

void bind_result(nb::module_& module) {
  nb::class_<TokenLogprob>(module, "TokenLogprob", "A generated token's log-probability.")
      .def_ro("token", &TokenLogprob::token)
      .def_ro("logprob", &TokenLogprob::logprob, "From raw logits, in nats.")
      .def_ro("top", &TokenLogprob::top, "The best alternatives: pairs of id and log-probability.");
  nb::class_<GenerateStats>(module, "GenerateStats", "What an answer took.")
      .def_ro("prompt_tokens", &GenerateStats::prompt_tokens)
      .def_ro("cached_tokens", &GenerateStats::cached_tokens, "Of the prompt, not run.")
      .def_ro("preemptions", &GenerateStats::preemptions, "Times that it had to wait, once begun.")
      .def_ro("prompt_tps", &GenerateStats::prompt_tps)
      .def_ro("generation_tokens", &GenerateStats::generation_tokens)
      .def_ro("reasoning_tokens", &GenerateStats::reasoning_tokens, "Of these, markers included.")
      .def_ro("generation_tps", &GenerateStats::generation_tps)
      .def_ro("time_to_first_token_s", &GenerateStats::time_to_first_token_s)
      .def_ro("peak_memory_bytes", &GenerateStats::peak_memory_bytes, "Of the process.")
      .def_ro("drafter", &GenerateStats::drafter, "What drafted, by the names of ``speculate``.")
      .def_ro("rounds", &GenerateStats::rounds, "Passes that checked draft tokens.")
      .def_ro("drafted", &GenerateStats::drafted, "How many in all.")
      .def_ro("accepted", &GenerateStats::accepted, "How many of these were right.")
      .def_ro("compared", &GenerateStats::compared, "Rows that ``check_speculation`` compared.")
      .def_ro("caches", &GenerateStats::caches, "What the layers held at the end.");
  nb::class_<GenerateResult>(module, "GenerateResult", "A whole answer.")
      .def_ro("prompt_tokens", &GenerateResult::prompt_tokens)
      .def_ro("tokens", &GenerateResult::tokens, "Without the end-of-sequence token that stopped.")
      .def_prop_ro(
          "text",
          [](const GenerateResult& self) { return as_text(self.text); },
          "Without the stop string; empty without a tokenizer."
      )
      .def_prop_ro(
          "content",
          [](const GenerateResult& self) {
            return self.parts ? nb::object(as_text(self.parts->content)) : nb::none();
          },
          nb::sig("def content(self) -> str | None"),
          "Of an answer to messages: the text behind the thoughts."
      )
      .def_prop_ro(
          "reasoning",
          [](const GenerateResult& self) {
            return self.parts ? nb::object(as_text(self.parts->reasoning)) : nb::none();
          },
          nb::sig("def reasoning(self) -> str | None"),
          "Of an answer to messages: what the model thinks before it answers."
      )
      .def_prop_ro(
          "tool_calls",
          [](const GenerateResult& self) -> nb::object {
            return self.parts ? nb::object(calls_of(*self.parts)) : nb::none();
          },
          nb::sig("def tool_calls(self) -> list[dict[str, str]] | None"),
          "Of an answer to messages: its whole calls, each with ``id``, ``name`` and "
          "``arguments``, the text of a JSON object."
      )
      .def_prop_ro(
          "finish_reason",
          [](const GenerateResult& self) { return engine::finish_reason_name(self.finish_reason); },
          "``stop``, ``tool_calls``, ``length``, ``cancelled`` or ``deadline``."
      )
      .def_ro("stop_token", &GenerateResult::stop_token, "The token that stopped it.")
      .def_ro("stop_string", &GenerateResult::stop_string, "The stop string that stopped it.")
      .def_ro(
          "is_constraint_done",
          &GenerateResult::is_constraint_done,
          "The constraint let nothing follow."
      )
      .def_ro("logprobs", &GenerateResult::logprobs, "One per token, where asked for.")
      .def_ro("stats", &GenerateResult::stats)
      .def("__repr__", [](const GenerateResult& self) {
        return nb::str("GenerateResult(text={!r}, tokens={}, finish_reason={!r})")
            .format(
                as_text(self.text),
                self.tokens.size(),
                engine::finish_reason_name(self.finish_reason)
            );
      });
}

// The value of one member if the event is of that kind, else None.
template <typename Kind, auto member>
nb::object member_of(const engine::Event& event) {
  const Kind* what = std::get_if<Kind>(&event.what);
  return what == nullptr ? nb::none() : nb::cast(what->*member);
}

nb::object text_of(const engine::Event& event) {
  return std::visit(
      [](const auto& what) -> nb::object {
        if constexpr (requires { what.text; }) {
          return as_text(what.text);
        } else {
          return nb::none();
        }
      },
      event.what
  );
}

nb::object call_of(const engine::Event& event) {
  return std::visit(
      [](const auto& what) -> nb::object {
        if constexpr (requires { what.index; }) {
          return nb::cast(what.index);
        } else {
          return nb::none();
        }
      },
      event.what
  );
}

nb::object bytes_of(const engine::Event& event) {
  const auto* token = std::get_if<engine::TokenEvent>(&event.what);
  return token == nullptr ? nb::none()
                          : nb::object(nb::bytes(token->bytes.data(), token->bytes.size()));
}

void bind_event(nb::module_& module) {
  using engine::Event;
  using engine::PromptProgress;
  using engine::TokenEvent;
  nb::class_<Event>(
      module, "Event", "What happens while an answer is made. What a kind lacks is ``None``."
  )
      .def_prop_ro(
          "kind",
          [](const Event& self) { return engine::event_name(self); },
          "``prompt``, ``reasoning``, ``content``, ``call``, ``arguments``, ``call_end`` or "
          "``token``."
      )
      .def_prop_ro(
          "text",
          text_of,
          nb::sig("def text(self) -> str | None"),
          "A piece of reasoning, of content or of a call's arguments."
      )
      .def_prop_ro(
          "call",
          call_of,
          nb::sig("def call(self) -> int | None"),
          "The number of the call, from 0."
      )
      .def_prop_ro(
          "call_id",
          member_of<text::CallOpened, &text::CallOpened::id>,
          nb::sig("def call_id(self) -> str | None")
      )
      .def_prop_ro(
          "name",
          member_of<text::CallOpened, &text::CallOpened::name>,
          nb::sig("def name(self) -> str | None"),
          "The tool that is called."
      )
      .def_prop_ro(
          "done",
          member_of<PromptProgress, &PromptProgress::done>,
          nb::sig("def done(self) -> int | None"),
          "Tokens of the prompt that have run."
      )
      .def_prop_ro(
          "total",
          member_of<PromptProgress, &PromptProgress::total>,
          nb::sig("def total(self) -> int | None")
      )
      .def_prop_ro(
          "token",
          member_of<TokenEvent, &TokenEvent::id>,
          nb::sig("def token(self) -> int | None"),
          "Its id. Tokens come with ``token_events``."
      )
      .def_prop_ro("bytes", bytes_of, nb::sig("def bytes(self) -> bytes | None"))
      .def_prop_ro(
          "logprob",
          member_of<TokenEvent, &TokenEvent::logprob>,
          nb::sig("def logprob(self) -> float | None"),
          "From raw logits, in nats, where ``logprobs`` were asked for."
      )
      .def_prop_ro(
          "top",
          member_of<TokenEvent, &TokenEvent::top>,
          nb::sig("def top(self) -> list[tuple[int, float]] | None")
      )
      .def_prop_ro(
          "drafted",
          member_of<TokenEvent, &TokenEvent::drafted>,
          nb::sig("def drafted(self) -> bool | None")
      );
}

void bind_stream(nb::module_& module) {
  nb::class_<Stream>(module, "Stream", "An answer on its way.")
      .def("next", &Stream::next, "The next event, ``None`` at the end.")
      .def("wait", &Stream::wait)
      .def("cancel", &Stream::cancel);
}

}  // namespace

Stream::Stream(std::shared_ptr<engine::Engine> engine, Request request)
    : engine_(std::move(engine)), stream_(engine_->submit(std::move(request))) {}

Stream::~Stream() {
  if (!process_.is_here()) {
    static_cast<void>(new engine::Stream(std::move(*stream_)));  // Its locks are another process's.
  }
}

template <typename Attempt>
void Stream::repeat(Attempt attempt) {
  constexpr auto kBetweenSignals = std::chrono::milliseconds(50);
  process_.check();
  while (true) {
    bool is_done = false;
    {
      const nb::gil_scoped_release release;
      is_done = attempt(kBetweenSignals);
    }
    if (is_done) {
      return;
    }
    if (PyErr_CheckSignals() != 0) {
      cancel();
      throw nb::python_error();
    }
  }
}

std::optional<engine::Event> Stream::next() {
  std::optional<engine::Event> event;
  repeat([&](auto timeout) {
    event = stream_->next(timeout);
    return event || stream_->ended();
  });
  if (!event || event->is_end()) {
    static_cast<void>(stream_->result());  // Throws what the request failed with.
    return std::nullopt;
  }
  return event;
}

GenerateResult Stream::wait() {
  repeat([this](auto timeout) { return stream_->wait(timeout); });
  return stream_->result();
}

void Stream::cancel() {
  if (process_.is_here()) {
    stream_->cancel();
  }
}

Request request_for(const Model& model, std::string_view view) {
  const engine::View parsed = model.view(view);
  Request request;
  request.placement.adapter = parsed.adapter;
  request.placement.adapter_scale = parsed.strength;
  request.placement.adapter_null = parsed.null;
  return request;
}

std::unique_ptr<Stream> submit(const Model& model, Request request) {
  // It is put through the template and encoded at once.
  const nb::gil_scoped_release release;
  return std::make_unique<Stream>(model.engine(), std::move(request));
}

void bind_generate(nb::module_& module) {
  bind_options(module);
  bind_request(module);
  bind_result(module);
  bind_event(module);
  bind_stream(module);
}

}  // namespace saker::python
