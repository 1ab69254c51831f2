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
#include <utility>

namespace nb = nanobind;

namespace saker::python {
namespace {

using engine::GenerateRequest;
using engine::GenerateResult;
using engine::GenerateStats;
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
void set_option(GenerateRequest& request, std::string_view name, const nb::str& json) {
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
  nb::class_<GenerateRequest>(module, "GenerateRequest", "A prompt and how to continue it.")
      .def_prop_rw(
          "prompt",
          [](const GenerateRequest& self) { return self.prompt; },
          [](GenerateRequest& self, const nb::str& text) { self.prompt = utf8_of(text, "prompt"); }
      )
      .def_prop_rw(
          "tokens",
          [](const GenerateRequest& self) { return self.tokens; },
          [](GenerateRequest& self, const TokenIds& ids) { self.tokens = token_ids(ids); }
      )
      .def(
          "set_messages",
          [](GenerateRequest& self, const nb::str& json) {
            self.messages = json_of(json, "messages");
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

void bind_result(nb::module_& module) {
  nb::class_<TokenLogprob>(module, "TokenLogprob", "A generated token's log-probability.")
      .def_ro("token", &TokenLogprob::token)
      .def_ro("logprob", &TokenLogprob::logprob, "From raw logits, in nats.")
      .def_ro("top", &TokenLogprob::top, "The best alternatives: pairs of id and log-probability.");
  nb::class_<GenerateStats>(module, "GenerateStats", "What an answer took.")
      .def_ro("prompt_tokens", &GenerateStats::prompt_tokens)
      .def_ro("cached_tokens", &GenerateStats::cached_tokens, "Of the prompt, not run.")
      .def_ro("prompt_tps", &GenerateStats::prompt_tps)
      .def_ro("generation_tokens", &GenerateStats::generation_tokens)
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
          "finish_reason",
          [](const GenerateResult& self) { return engine::finish_reason_name(self.finish_reason); },
          "``stop``, ``length``, ``cancelled`` or ``deadline``."
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

void bind_stream(nb::module_& module) {
  nb::class_<Stream>(module, "Stream", "An answer on its way.")
      .def(
          "next",
          [](Stream& self) -> nb::object {
            const std::optional<std::string> piece = self.next();
            return piece ? nb::object(as_text(*piece)) : nb::none();
          },
          nb::sig("def next(self) -> str | None")
      )
      .def("wait", &Stream::wait, nb::rv_policy::copy)
      .def("cancel", &Stream::cancel);
}

}  // namespace

Stream::Stream(std::shared_ptr<engine::Engine> engine, GenerateRequest request)
    : engine_(std::move(engine)), id_(engine_->submit(std::move(request), handler(shared_))) {}

Stream::~Stream() {
  cancel();
}

engine::EventHandler Stream::handler(const std::shared_ptr<Shared>& shared) {
  engine::EventHandler handler;
  handler.on_text = [shared](std::string_view piece) {
    {
      const std::lock_guard lock(shared->mutex);
      shared->pieces.emplace_back(piece);
    }
    shared->changed.notify_all();
  };
  handler.on_done = [shared](GenerateResult result) {
    {
      const std::lock_guard lock(shared->mutex);
      shared->result = std::move(result);
    }
    shared->changed.notify_all();
  };
  handler.on_error = [shared](std::exception_ptr error) {
    {
      const std::lock_guard lock(shared->mutex);
      shared->error = std::move(error);
    }
    shared->changed.notify_all();
  };
  return handler;
}

template <typename Ready>
void Stream::wait_for(Ready ready) {
  constexpr auto kBetweenSignals = std::chrono::milliseconds(50);
  process_.check();
  while (true) {
    bool is_ready = false;
    {
      const nb::gil_scoped_release release;
      std::unique_lock lock(shared_->mutex);
      is_ready = shared_->changed.wait_for(lock, kBetweenSignals, ready);
    }
    if (is_ready) {
      return;
    }
    if (PyErr_CheckSignals() != 0) {
      cancel();
      throw nb::python_error();
    }
  }
}

std::optional<std::string> Stream::next() {
  std::optional<std::string> piece;
  // Taken as soon as it is seen, before another reader does.
  wait_for([&] {
    if (shared_->pieces.empty()) {
      return shared_->ended();
    }
    piece = std::move(shared_->pieces.front());
    shared_->pieces.pop_front();
    return true;
  });
  if (!piece && shared_->error != nullptr) {
    std::rethrow_exception(shared_->error);
  }
  return piece;
}

const GenerateResult& Stream::wait() {
  wait_for([this] { return shared_->ended(); });
  if (shared_->error != nullptr) {
    std::rethrow_exception(shared_->error);
  }
  return *shared_->result;
}

void Stream::cancel() {
  if (process_.is_here()) {
    engine_->cancel(id_);
  }
}

GenerateRequest request_for(const Model& model, std::string_view view) {
  const engine::View parsed = model.view(view);
  GenerateRequest request;
  request.adapter = parsed.adapter;
  request.adapter_scale = parsed.strength;
  request.adapter_null = parsed.null;
  return request;
}

std::unique_ptr<Stream> submit(const Model& model, GenerateRequest request) {
  // It is put through the template and encoded at once.
  const nb::gil_scoped_release release;
  return std::make_unique<Stream>(model.engine(), std::move(request));
}

void bind_generate(nb::module_& module) {
  bind_options(module);
  bind_request(module);
  bind_result(module);
  bind_stream(module);
}

}  // namespace saker::python
