// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/records/result_json.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace saker::engine {
namespace {

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json stats_json(const GenerateStats& stats) {
  Json result = {
      {"prompt_tokens", stats.prompt_tokens},
      {"prompt_tps", number(stats.prompt_tps)},
      {"generation_tokens", stats.generation_tokens},
      {"generation_tps", number(stats.generation_tps)},
      {"time_to_first_token_s", number(stats.time_to_first_token_s)},
      {"peak_memory_bytes", stats.peak_memory_bytes},
      {"drafter", stats.drafter},
      {"rounds", stats.rounds},
      {"drafted", stats.drafted},
      {"accepted", stats.accepted},
      {"cached_tokens", stats.cached_tokens},
  };
  if (stats.preemptions > 0) {
    result["preemptions"] = stats.preemptions;
  }
  if (stats.compared > 0) {
    result["compared"] = stats.compared;
  }
  return result;
}

Json calls_json(const std::vector<text::ToolCall>& calls) {
  Json list = Json::array();
  for (const text::ToolCall& call : calls) {
    list.push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  }
  return list;
}

Json next_json(const score::NextDistribution& next) {
  Json logprobs = Json::array();
  for (const double value : next.logprobs) {
    logprobs.push_back(number(value));
  }
  return {
      {"token_ids", next.token_ids},
      {"logprobs", std::move(logprobs)},
      {"tail_logprob", next.tail_logprob ? number(*next.tail_logprob) : Json(nullptr)},
      {"tail_underflow", next.tail_underflow},
      {"vocab_size", next.vocab_size},
  };
}

Json view_json(const ScoreResult& result, const ViewScores& scores) {
  Json logprobs = Json::array();
  for (const auto& value : scores.logprobs) {
    logprobs.push_back(value ? number(*value) : Json(nullptr));
  }
  Json view = {
      {"logprobs", std::move(logprobs)},
      {"sum", number(scores.sum)},
      {"mean", number(scores.mean)},
      {"is_greedy", scores.is_greedy},
      {"boundary_merged", result.boundary_merged},
      {"first_token_unscored", result.first_token_unscored},
  };
  if (scores.next) {
    view["next"] = next_json(*scores.next);
  }
  return view;
}

}  // namespace

Json to_json(const GenerateResult& result, bool with_logprobs) {
  Json json = {
      {"prompt_tokens", result.prompt_tokens},
      {"tokens", result.tokens},
      {"text", result.text},
      {"finish_reason", finish_reason_name(result.finish_reason)},
  };
  if (result.parts) {
    json["content"] = result.parts->content;
    json["reasoning"] = result.parts->reasoning;
    json["tool_calls"] = calls_json(result.parts->tool_calls);
  }
  if (with_logprobs) {
    Json rows = Json::array();
    for (const auto& token : result.logprobs) {
      Json top = Json::array();
      for (const auto& [id, logprob] : token.top) {
        top.push_back(Json::array({id, number(logprob)}));
      }
      rows.push_back(
          {{"token", token.token}, {"logprob", number(token.logprob)}, {"top", std::move(top)}}
      );
    }
    json["logprobs"] = std::move(rows);
  }
  json["stats"] = stats_json(result.stats);
  return json;
}

Json to_json(const ScoreResult& result) {
  Json views = Json::object();
  for (const ViewScores& scores : result.views) {
    views[scores.view] = view_json(result, scores);
  }
  return {{"tokens", result.tokens}, {"views", std::move(views)}};
}

Json to_json(const Differences& differences) {
  Json views = Json::object();
  for (const auto& view : differences.views) {
    Json deltas = Json::array();
    for (const auto& delta : view.deltas) {
      deltas.push_back(delta ? number(*delta) : Json(nullptr));
    }
    views[view.view] = {
        {"deltas", std::move(deltas)},
        {"left_out", view.total.left_out},
        {"sum", number(view.total.sum)},
        {"mean", number(view.total.mean)},
        {"mean_interval", {number(view.mean_interval.low), number(view.mean_interval.high)}},
        {"mean_change", number(view.mean_change)},
        {"kl", view.next ? number(view.next->kl) : Json(nullptr)},
        {"js", view.next ? number(view.next->js) : Json(nullptr)},
        {"z", view.z ? number(*view.z) : Json(nullptr)},
    };
  }
  Json ablation;
  if (differences.ablation) {
    const auto& saturation = differences.ablation->saturation;
    ablation = {
        {"linearity", number(differences.ablation->linearity)},
        {"saturation", saturation ? number(*saturation) : Json(nullptr)},
        {"overshoot", number(differences.ablation->overshoot)},
    };
  }
  return {
      {"reference", differences.reference},
      {"views", std::move(views)},
      {"ablation", std::move(ablation)},
  };
}

}  // namespace saker::engine
