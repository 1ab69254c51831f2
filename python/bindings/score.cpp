// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/score.h"

#include "saker/engine/measures/preflight.h"

#include "python/bindings/errors.h"
#include "python/bindings/text.h"
#include "python/bindings/token_ids.h"
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>

namespace nb = nanobind;

namespace saker::python {
namespace {

using engine::ScoreRequest;
using engine::ScoreResult;
using engine::ViewScores;
using score::NextDistribution;

template <typename T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

template <typename T>
Array<T> to_array(std::vector<T> values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  std::vector<T>* const data = owned.get();
  const nb::capsule owner(owned.release(), [](void* at) noexcept {
    delete static_cast<std::vector<T>*>(at);
  });
  return Array<T>(data->data(), {data->size()}, owner);
}

Array<std::int64_t> ids(const std::vector<std::int32_t>& tokens) {
  return to_array(std::vector<std::int64_t>(tokens.begin(), tokens.end()));
}

// NaN where there is none.
Array<double> numbers(const std::vector<std::optional<double>>& values) {
  std::vector<double> result;
  result.reserve(values.size());
  for (const std::optional<double>& value : values) {
    result.push_back(value.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  return to_array(std::move(result));
}

std::optional<std::string> utf8_or_none(const std::optional<nb::str>& text, std::string_view what) {
  return text ? std::optional(utf8_of(*text, what)) : std::nullopt;
}

void bind_request(nb::module_& module) {
  nb::class_<ScoreRequest>(
      module,
      "ScoreRequest",
      "What to score: a text, a prompt with a completion, a prompt alone (its next token), or "
      "tokens, with\n``prompt_tokens`` before them that are only seen. ``top_k`` > 0 asks for the "
      "next-token distribution, ``stride`` > 0\nfor windows over what is longer than the model's "
      "context."
  )
      .def(
          "__init__",
          [](ScoreRequest* self,
             const std::optional<nb::str>& text,
             const std::optional<nb::str>& prompt,
             const std::optional<nb::str>& completion,
             const std::optional<TokenIds>& tokens,
             const TokenIds& prompt_tokens,
             int top_k,
             int stride,
             int kv_bits) {
            new (self) ScoreRequest{
                .text = utf8_or_none(text, "text"),
                .prompt = utf8_or_none(prompt, "prompt"),
                .completion = utf8_or_none(completion, "completion"),
                .tokens = tokens ? std::optional(token_ids(*tokens)) : std::nullopt,
                .prompt_tokens = token_ids(prompt_tokens),
                .kv_bits = kv_bits,
                .top_k = top_k,
                .stride = stride,
            };
          },
          nb::kw_only(),
          nb::arg("text") = nb::none(),
          nb::arg("prompt") = nb::none(),
          nb::arg("completion") = nb::none(),
          nb::arg("tokens") = nb::none(),
          nb::arg("prompt_tokens") = std::vector<std::int32_t>(),
          nb::arg("top_k") = 0,
          nb::arg("stride") = 0,
          nb::arg("kv_bits") = 16
      );
}

void bind_results(nb::module_& module) {
  nb::class_<NextDistribution>(
      module, "NextDistribution", "The best candidates for the next token, and all others together."
  )
      .def_prop_ro(
          "token_ids",
          [](const NextDistribution& self) { return ids(self.token_ids); },
          nb::rv_policy::move,
          "Best first; ties: the lower id first."
      )
      .def_prop_ro(
          "logprobs",
          [](const NextDistribution& self) { return to_array(self.logprobs); },
          nb::rv_policy::move
      )
      .def_ro(
          "tail_logprob",
          &NextDistribution::tail_logprob,
          "Of all others; None when there are none, 0.0 when they have at most 1e-12 together, NaN "
          "when logits are broken."
      )
      .def_ro("tail_underflow", &NextDistribution::tail_underflow)
      .def_ro("vocab_size", &NextDistribution::vocab_size);
  nb::class_<ViewScores>(module, "ViewScores", "What one view of the model gives to the tokens.")
      .def_ro("view", &ViewScores::view, "Its key.")
      .def_prop_ro(
          "logprobs",
          [](const ViewScores& self) { return numbers(self.logprobs); },
          nb::rv_policy::move,
          "Of each token; NaN where it is not scored."
      )
      .def_ro("sum", &ViewScores::sum, "Over the scored tokens, in nats.")
      .def_ro("mean", &ViewScores::mean)
      .def_ro(
          "is_greedy",
          &ViewScores::is_greedy,
          "Whether each scored token was the most probable one."
      )
      .def_ro("next", &ViewScores::next, "The next-token distribution, where it was asked for.");
  nb::class_<ScoreResult>(module, "ScoreResult", "A scored request.")
      .def_prop_ro(
          "tokens",
          [](const ScoreResult& self) { return ids(self.tokens); },
          nb::rv_policy::move,
          "All, prompt first."
      )
      .def_ro(
          "boundary_merged",
          &ScoreResult::boundary_merged,
          "A token spans the border of prompt and completion."
      )
      .def_ro(
          "first_token_unscored",
          &ScoreResult::first_token_unscored,
          "The completion's first token has nothing before it."
      )
      .def_ro("views", &ScoreResult::views, "In the order they were asked for.");
}

void bind_differences(nb::module_& module) {
  using engine::Differences;
  using engine::ViewDifference;
  nb::class_<ViewDifference>(module, "ViewDifference", "What one view differs by from the first.")
      .def_ro("view", &ViewDifference::view, "Its key.")
      .def_prop_ro(
          "deltas",
          [](const ViewDifference& self) { return numbers(self.deltas); },
          nb::rv_policy::move,
          "Of each token's log-probability, in nats; NaN where it is not scored."
      )
      .def_prop_ro("sum", [](const ViewDifference& self) { return self.total.sum; })
      .def_prop_ro("mean", [](const ViewDifference& self) { return self.total.mean; })
      .def_prop_ro("count", [](const ViewDifference& self) { return self.total.count; })
      .def_prop_ro(
          "left_out",
          [](const ViewDifference& self) { return self.total.left_out; },
          "Deltas that are not finite: the numbers are of the others, NaN where there are none."
      )
      .def_ro("mean_change", &ViewDifference::mean_change, "The mean of the deltas' sizes.")
      .def_prop_ro(
          "mean_interval",
          [](const ViewDifference& self) {
            return std::pair(self.mean_interval.low, self.mean_interval.high);
          },
          "95 % of the mean, by bootstrap over the tokens."
      )
      .def_prop_ro(
          "kl",
          [](const ViewDifference& self) {
            return self.next ? std::optional(self.next->kl) : std::nullopt;
          },
          "Of the next-token distributions, where ``top_k`` asked for them."
      )
      .def_prop_ro(
          "js",
          [](const ViewDifference& self) {
            return self.next ? std::optional(self.next->js) : std::nullopt;
          }
      )
      .def_ro(
          "z",
          &ViewDifference::z,
          "mean_change beside that of two or more null views, of those where it is finite."
      );
  nb::class_<score::AblationCurve>(
      module, "AblationCurve", "How the next-token divergence grows with the strength."
  )
      .def_ro("linearity", &score::AblationCurve::linearity)
      .def_ro("saturation", &score::AblationCurve::saturation)
      .def_ro("overshoot", &score::AblationCurve::overshoot);
  nb::class_<Differences>(module, "Differences", "What views of one scored text differ by.")
      .def_ro("reference", &Differences::reference, "The first view.")
      .def_ro("views", &Differences::views, "The others.")
      .def_ro(
          "ablation",
          &Differences::ablation,
          "With three different strengths, 0 of the base included."
      );
}

void bind_stats(nb::module_& module) {
  using engine::ScoreStats;
  nb::class_<ScoreStats>(module, "ScoreStats", "What scoring ran, and what it knew.")
      .def_ro("cache_hits", &ScoreStats::cache_hits, "Views of requests, as are misses.")
      .def_ro("cache_misses", &ScoreStats::cache_misses)
      .def_ro("forward_passes", &ScoreStats::forward_passes, "Batches that reached the model.")
      .def_ro("scoring_wall_s", &ScoreStats::scoring_wall_s)
      .def_ro("batches_sent", &ScoreStats::batches_sent, "Of two requests or more.")
      .def_ro("batched_prompts", &ScoreStats::batched_prompts)
      .def_ro("max_batch_size", &ScoreStats::max_batch_size)
      .def_prop_ro("hit_rate", &ScoreStats::hit_rate)
      .def_prop_ro("avg_batch_size", &ScoreStats::avg_batch_size);
}

std::vector<engine::View> parse_views(const Model& model, const std::vector<std::string>& keys) {
  std::vector<engine::View> parsed;
  parsed.reserve(keys.size());
  for (const std::string& key : keys) {
    parsed.push_back(model.view(key));
  }
  return parsed;
}

}  // namespace

engine::Differences differences(
    Model& model, ScoreRequest request, const std::vector<std::string>& views
) {
  request.views = parse_views(model, views);
  const nb::gil_scoped_release release;
  const auto outcomes = model.engine()->score({&request, 1}, model.instruments());
  if (const Error* const error = std::get_if<Error>(&outcomes.front())) {
    throw Error(*error);
  }
  return engine::differences(std::get<ScoreResult>(outcomes.front()), request.views);
}

std::pair<bool, std::string> preflight(Model& model, const std::vector<std::string>& views) {
  const auto parsed = parse_views(model, views);
  const nb::gil_scoped_release release;
  engine::Preflight found = engine::preflight_finite_check(*model.engine(), parsed);
  return {found.ok, std::move(found.reason)};
}

nb::object logits(Model& model, ScoreRequest request, const std::string& view) {
  using Matrix = nb::ndarray<nb::numpy, float, nb::ndim<2>, nb::c_contig>;
  request.views = parse_views(model, {view});
  std::unique_ptr<float[]> values;
  std::size_t rows = 0;
  std::size_t columns = 0;
  {
    const nb::gil_scoped_release release;
    const auto engine = model.engine();
    rows = engine->score_prompt(request).tokens.size();
    columns = static_cast<std::size_t>(engine->facts().vocab_size);
    // Checked by the engine before it runs, but memory is taken here.
    const auto context = engine->facts().context_length;
    require(
        context <= 0 || static_cast<std::int64_t>(rows) <= context,
        ErrorCode::kInvalidArgument,
        "the sequence has {} tokens, expected at most {}: the model's context",
        rows,
        context
    );
    values = std::make_unique_for_overwrite<float[]>(rows * columns);
    request.take_logits = [&](std::size_t, std::size_t row, std::span<const float> given) {
      std::ranges::copy(given, values.get() + row * columns);
    };
    const auto outcomes = engine->score({&request, 1});
    if (const Error* const error = std::get_if<Error>(&outcomes.front())) {
      throw Error(*error);
    }
  }
  float* const data = values.release();
  const nb::capsule owner(data, [](void* at) noexcept { delete[] static_cast<float*>(at); });
  return nb::cast(Matrix(data, {rows, columns}, owner));
}

nb::list score(
    Model& model, std::vector<ScoreRequest> requests, const std::vector<std::string>& views
) {
  const std::vector<engine::View> parsed = parse_views(model, views);
  for (ScoreRequest& request : requests) {
    request.views = parsed;
  }
  std::vector<engine::ScoreOutcome> outcomes;
  {
    const nb::gil_scoped_release release;
    outcomes = model.engine()->score(requests, model.instruments());
  }
  nb::list results;
  for (engine::ScoreOutcome& outcome : outcomes) {
    if (const Error* const error = std::get_if<Error>(&outcome)) {
      results.append(exception_of(*error));
    } else {
      results.append(std::get<ScoreResult>(std::move(outcome)));
    }
  }
  return results;
}

void bind_scores(nb::module_& module) {
  bind_request(module);
  bind_results(module);
  bind_differences(module);
  bind_stats(module);
}

}  // namespace saker::python
