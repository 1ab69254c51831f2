// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/scoring.h"

#include "saker/base/checksum.h"
#include "saker/base/error.h"
#include "saker/engine/adapters.h"
#include "saker/engine/windows.h"
#include "saker/score/token_scores.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <stop_token>
#include <utility>

namespace saker::engine {
namespace {

// Limit for the tokens of all windows of a text, which are in memory together.
constexpr std::int64_t kMaxWindowTokens = std::int64_t{1} << 24;

using score::ScoreJob;
using score::TokenScores;

// A request while it is prepared and run.
struct Plan {
  ScorePrompt prompt;
  std::vector<ScoreJob> windows;         // Usually one.
  std::vector<int> first_tokens;         // First token of each window.
  std::vector<int> first_rows;           // First row of each window that no earlier one has.
  std::vector<View> views;               // At least one.
  std::vector<nn::AdapterUse> adapters;  // One per view.
  // Per view: its trace record, and its known scores. Empty without instruments.
  std::vector<ScoreCall> calls;
  std::vector<std::optional<ViewScores>> known;

  bool runs(std::size_t view) const { return known.empty() || !known[view]; }
};

// Everything that the scores depend on.
std::string cache_key(
    std::uint64_t engine, const Plan& plan, const ScoreRequest& request, const nn::AdapterUse& use
) {
  const auto& tokens = plan.prompt.tokens;
  std::string key = fmt::format(
      "{}|{}|{}|{}|{}|{}|",
      engine,
      nn::adapter_identity(use),
      request.kv_bits,
      request.top_k,
      request.stride,
      plan.prompt.first_scored
  );
  key.append(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(tokens[0]));
  return key;
}

std::string_view operation_name(const ScoreRequest& request) {
  return request.tokens       ? "tokens"
         : request.completion ? "logprob_of"
         : request.text       ? "rolling_logprob"
                              : "next_token_dist";
}

void look_up(
    std::uint64_t engine, Plan& plan, const ScoreRequest& request, ScoreInstruments& instruments
) {
  for (std::size_t i = 0; i < plan.views.size(); ++i) {
    plan.calls.push_back({
        .key = cache_key(engine, plan, request, plan.adapters[i]),
        .view_id = view_id(plan.views[i]),
        .op = operation_name(request),
        .top_k = request.top_k,
        .prompt_hash = checksum(std::as_bytes(std::span(plan.prompt.tokens))),
    });
    // Stored scores have no logits.
    plan.known.push_back(request.take_logits ? std::nullopt : instruments.find(plan.calls.back()));
  }
}

Error as_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(typed_error(error));
  } catch (const Error& typed) {
    return typed;
  }
}

// Passes on a window's logits that no earlier window has, up to the row that the next one has.
score::TakeLogits logits_of(
    const Plan& plan, const ScoreRequest& request, std::size_t view, std::size_t window
) {
  const int begin = plan.first_tokens[window];
  const bool last = window + 1 == plan.windows.size();
  const int end = begin + static_cast<int>(plan.windows[window].tokens.size());
  const int first = plan.first_rows[window];
  return [&request, view, begin, first, end = last ? end : end - 1](
             int row, std::span<const float> logits
         ) {
    const int at = begin + row;
    if (at >= first && at < end) {
      request.take_logits(view, static_cast<std::size_t>(at), logits);
    }
  };
}

// Adds each window of each view that is not known, view by view.
void add_jobs(const Plan& plan, const ScoreRequest& request, std::vector<ScoreJob>& jobs) {
  for (std::size_t i = 0; i < plan.views.size(); ++i) {
    for (std::size_t at = 0; at < plan.windows.size() && plan.runs(i); ++at) {
      jobs.push_back(plan.windows[at]);
      jobs.back().adapter = plan.adapters[i];
      if (request.take_logits) {
        jobs.back().take_logits = logits_of(plan, request, i, at);
      }
    }
  }
}

void add_window(Plan& plan, const ScoreRequest& request, const Window& window) {
  const auto& tokens = plan.prompt.tokens;
  const auto begin = tokens.begin();
  ScoreJob job;
  job.tokens.assign(
      begin + static_cast<std::ptrdiff_t>(window.begin),
      begin + static_cast<std::ptrdiff_t>(window.end)
  );
  job.first_scored = std::max(static_cast<int>(window.scored), plan.prompt.first_scored) -
                     static_cast<int>(window.begin);
  job.top_k = window.end == tokens.size() ? request.top_k : 0;
  plan.windows.push_back(std::move(job));
  plan.first_tokens.push_back(static_cast<int>(window.begin));
  plan.first_rows.push_back(std::max(static_cast<int>(window.scored) - 1, 0));
}

// Makes one window, or windows of the context's length that move by `stride`.
void make_windows(Plan& plan, const ScoreRequest& request, const models::ModelInfo& info) {
  const std::int64_t context = info.context_length;
  const std::vector<std::int32_t>& tokens = plan.prompt.tokens;
  const int total = static_cast<int>(tokens.size());
  const bool windowed = request.stride > 0 && total > context;
  require(
      !windowed || request.stride < context,
      ErrorCode::kInvalidArgument,
      "stride: got {}, expected less than the model's context of {} tokens",
      request.stride,
      context
  );
  if (!windowed) {
    add_window(plan, request, {0, 0, tokens.size()});
    return;
  }
  const auto size = static_cast<std::size_t>(context);
  const auto stride = static_cast<std::size_t>(request.stride);
  const std::size_t windows = window_count(tokens.size(), size, stride);
  require(
      windows <= static_cast<std::size_t>(kMaxWindowTokens / context),
      ErrorCode::kInvalidArgument,
      "stride: got {}, so that {} tokens make {} windows of {}; choose a larger stride",
      request.stride,
      total,
      windows,
      context
  );
  for (const Window& window : cut_windows(tokens.size(), size, stride)) {
    add_window(plan, request, window);
  }
}

void finish_plan(
    Plan& plan, const ScoreRequest& request, const models::Model& model, Adapters& adapters
) {
  require(
      request.stride >= 0,
      ErrorCode::kInvalidArgument,
      "stride: got {}, expected 0 or more",
      request.stride
  );
  require(
      kernels::is_kv_bits(request.kv_bits),
      ErrorCode::kInvalidArgument,
      "kv_bits: got {}, expected 32, 16, 8 or 4",
      request.kv_bits
  );
  plan.views = request.views.empty() ? std::vector<View>(1) : request.views;
  plan.adapters.reserve(plan.views.size());
  for (const View& view : plan.views) {
    plan.adapters.push_back(adapters.use(view, model));
  }
  if (plan.prompt.tokens.empty() && !request.tokens) {
    return;  // An empty text: nothing to run.
  }
  const models::ModelInfo& info = model.info();
  make_windows(plan, request, info);
  for (ScoreJob window : plan.windows) {
    if (request.take_logits) {
      window.take_logits = [](int, std::span<const float>) {};
    }
    score::check_job(info, window);
  }
}

ViewScores merge(const Plan& plan, const std::string& view, std::span<TokenScores> windows) {
  ViewScores result{.view = view};
  result.logprobs.resize(plan.prompt.tokens.size());
  result.is_greedy = true;
  int count = 0;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    result.is_greedy = result.is_greedy && windows[i].is_greedy;
    const auto first = static_cast<std::size_t>(plan.first_tokens[i]);
    for (std::size_t at = 0; at < windows[i].logprobs.size(); ++at) {
      if (const auto& logprob = windows[i].logprobs[at]) {
        result.logprobs[first + at] = logprob;
        result.sum += *logprob;
        ++count;
      }
    }
  }
  result.mean = count > 0 ? result.sum / count : 0.0;
  if (!windows.empty()) {
    result.next = std::move(windows.back().next);
  }
  return result;
}

class Batch {
 public:
  Batch(
      std::uint64_t engine,
      const Prompts& prompts,
      int prefill_step,
      std::int64_t context,
      std::span<const ScoreRequest> requests,
      ScoreInstruments* instruments
  )
      : engine_(engine),
        prefill_step_(prefill_step),
        instruments_(instruments),
        requests_(requests),
        plans_(requests.size()),
        outcomes_(requests.size()) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      try {
        // Windows may cover more than the context.
        plans_[i].prompt = prompts.encode(requests[i], requests[i].stride > 0 ? 0 : context);
        encoded_.push_back(i);
      } catch (...) {
        outcomes_[i] = as_error(std::current_exception());
      }
    }
  }

  // Runs on the engine's thread.
  std::vector<ScoreOutcome> run(const models::Model& model, Runner& runner) {
    std::stop_source stop;
    std::list<std::stop_callback<std::function<void()>>> stops;
    for (const ScoreRequest& request : requests_) {
      if (request.stop.stop_possible()) {
        stops.emplace_back(request.stop, [&stop] { stop.request_stop(); });
      }
    }
    before_pass_ = runner.before_pass(stop.get_token());
    Adapters& adapters = runner.adapters();
    std::map<int, std::vector<std::size_t>> by_bits;  // Each needs its own kind of cache.
    for (const std::size_t i : encoded_) {
      try {
        finish_plan(plans_[i], requests_[i], model, adapters);
        if (instruments_ != nullptr && !plans_[i].windows.empty()) {
          look_up(engine_, plans_[i], requests_[i], *instruments_);
        }
        by_bits[requests_[i].kv_bits].push_back(i);
      } catch (...) {
        outcomes_[i] = as_error(std::current_exception());
      }
    }
    for (const auto& [bits, indices] : by_bits) {
      if (!indices.empty()) {  // None where there was no memory for the first.
        run_or_split(model, indices);
      }
    }
    return std::move(outcomes_);
  }

 private:
  // Requests that fail together run again one by one.
  void run_or_split(const models::Model& model, std::span<const std::size_t> indices) {
    try {
      run_together(model, indices);
      return;
    } catch (...) {
      const Error error = as_error(std::current_exception());
      if (indices.size() == 1 || error.code() == ErrorCode::kCancelled) {
        std::ranges::for_each(indices, [&](std::size_t index) { outcomes_[index] = error; });
        return;
      }
    }
    for (std::size_t i = 0; i < indices.size(); ++i) {
      run_or_split(model, indices.subspan(i, 1));
    }
  }

  void run_together(const models::Model& model, std::span<const std::size_t> indices) {
    std::vector<ScoreJob> jobs;
    for (const std::size_t index : indices) {
      add_jobs(plans_[index], requests_[index], jobs);
    }
    const score::ScoreOptions options{
        .prefill_step = prefill_step_,
        .kv_bits = requests_[indices.front()].kv_bits,
        .before_pass = before_pass_,
    };
    const auto start = std::chrono::steady_clock::now();
    std::vector<TokenScores> scores =
        jobs.empty() ? std::vector<TokenScores>() : score::score_batch(model, jobs, options);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    if (instruments_ != nullptr && !jobs.empty()) {
      instruments_->count_batch(indices.size(), wall.count());
    }
    const double share = wall.count() / static_cast<double>(std::max<std::size_t>(jobs.size(), 1));
    std::span<TokenScores> left = scores;
    for (const std::size_t index : indices) {
      const Plan& plan = plans_[index];
      ScoreResult result{
          .tokens = plan.prompt.tokens,
          .boundary_merged = plan.prompt.boundary_merged,
          .first_token_unscored = plan.prompt.first_token_unscored,
      };
      for (std::size_t i = 0; i < plan.views.size(); ++i) {
        if (!plan.runs(i)) {
          result.views.push_back(*plan.known[i]);
          result.views.back().view = plan.views[i].key;
          continue;
        }
        result.views.push_back(merge(plan, plan.views[i].key, left.first(plan.windows.size())));
        left = left.subspan(plan.windows.size());
        if (!plan.calls.empty()) {
          instruments_->add(
              plan.calls[i], result.views.back(), share * static_cast<double>(plan.windows.size())
          );
        }
      }
      outcomes_[index] = std::move(result);
    }
  }

  std::uint64_t engine_;
  int prefill_step_;
  std::function<int()> before_pass_;
  ScoreInstruments* instruments_;  // May be null.
  std::span<const ScoreRequest> requests_;
  std::vector<Plan> plans_;
  std::vector<std::size_t> encoded_;  // Requests that were encoded.
  std::vector<ScoreOutcome> outcomes_;
};

}  // namespace

std::vector<ScoreOutcome> score_requests(
    Runner& runner,
    const Prompts& prompts,
    int prefill_step,
    std::span<const ScoreRequest> requests,
    ScoreInstruments* instruments
) {
  std::vector<View> views;
  for (const ScoreRequest& request : requests) {
    views.insert(views.end(), request.views.begin(), request.views.end());
  }
  runner.read_adapters(views);
  Batch batch(runner.id(), prompts, prefill_step, runner.context_length(), requests, instruments);
  auto outcomes = runner.call([&](const models::Model& model) { return batch.run(model, runner); });
  if (instruments != nullptr) {
    instruments->check_trace();
  }
  return outcomes;
}

}  // namespace saker::engine
