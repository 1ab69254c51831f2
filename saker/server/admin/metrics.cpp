// SPDX-License-Identifier: Apache-2.0
#include "saker/server/admin/metrics.h"

#include "saker/base/memory.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

namespace saker::server {
namespace {

// A label's value: quotes, backslashes and line ends are escaped.
std::string label(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') {
      escaped += '\\';
    }
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

class Page {
 public:
  explicit Page(const std::string& model)
      : labels_(fmt::format("model_name=\"{}\",engine=\"0\"", label(model))) {}

  void value(std::string_view name, std::string_view kind, std::string_view help, double value) {
    head(name, kind, help);
    text_ += fmt::format("{}{{{}}} {}\n", name, labels_, value);
  }

  // Under a name of Saker's and under vLLM's.
  void both(
      std::string_view own,
      std::string_view theirs,
      std::string_view kind,
      std::string_view help,
      double number
  ) {
    value(own, kind, help, number);
    value(theirs, kind, help, number);
  }

  template <typename Values>
  void histogram(std::string_view name, std::string_view help, const Values& values) {
    head(name, "histogram", help);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < values.bucket_ends().size(); ++i) {
      below += values.in_bucket(i);
      text_ += fmt::format(
          "{}_bucket{{{},le=\"{}\"}} {}\n", name, labels_, values.bucket_ends()[i], below
      );
    }
    below += values.in_bucket(values.bucket_ends().size());
    text_ += fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n", name, labels_, below);
    text_ += fmt::format("{}_sum{{{}}} {}\n", name, labels_, values.sum());
    text_ += fmt::format("{}_count{{{}}} {}\n", name, labels_, below);
  }

  void reasons(std::string_view name, std::string_view help, const Counters& counters) {
    head(name, "counter", help);
    const auto line = [&](std::string_view reason, std::uint64_t count) {
      text_ += fmt::format("{}{{{},finished_reason=\"{}\"}} {}\n", name, labels_, reason, count);
    };
    line("stop", counters.stopped);
    line("length", counters.cut);
    line("abort", counters.cancelled);
    line("error", counters.failed);
  }

  std::string take() { return std::move(text_); }

 private:
  void head(std::string_view name, std::string_view kind, std::string_view help) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, kind);
  }

  std::string labels_;
  std::string text_;
};

void add_tokens(Page& page, const Counters& counters) {
  page.both(
      "saker:prompt_tokens_total",
      "vllm:prompt_tokens_total",
      "counter",
      "Tokens of prompts.",
      static_cast<double>(counters.prompt_tokens)
  );
  page.both(
      "saker:prompt_tokens_cached_total",
      "vllm:prompt_tokens_cached_total",
      "counter",
      "Tokens of prompts whose rows were known.",
      static_cast<double>(counters.cached_tokens)
  );
  page.both(
      "saker:generation_tokens_total",
      "vllm:generation_tokens_total",
      "counter",
      "Tokens of answers.",
      static_cast<double>(counters.generation_tokens)
  );
  page.value(
      "vllm:spec_decode_num_drafts_total",
      "counter",
      "Passes that checked draft tokens.",
      static_cast<double>(counters.draft_rounds)
  );
  page.value(
      "vllm:spec_decode_num_draft_tokens_total",
      "counter",
      "Draft tokens.",
      static_cast<double>(counters.drafted_tokens)
  );
  page.value(
      "vllm:spec_decode_num_accepted_tokens_total",
      "counter",
      "Draft tokens that were right.",
      static_cast<double>(counters.accepted_tokens)
  );
}

}  // namespace

std::string metrics_text(const ServedModel& model) {
  const Counters& counters = model.counters();
  Page page(model.name());
  const auto waiting = counters.waiting.load();
  page.both(
      "saker:num_requests_running",
      "vllm:num_requests_running",
      "gauge",
      "Generations that run.",
      static_cast<double>(counters.running.load() - waiting)
  );
  page.both(
      "saker:num_requests_waiting",
      "vllm:num_requests_waiting",
      "gauge",
      "Generations that wait for their first event.",
      static_cast<double>(waiting)
  );
  page.value(
      "saker:peak_memory_bytes",
      "gauge",
      "The most memory that the process had.",
      static_cast<double>(peak_memory_bytes())
  );
  page.value(
      "saker:usable_memory_bytes",
      "gauge",
      "Memory that the process may have.",
      static_cast<double>(usable_memory_bytes())
  );
  page.value(
      "saker:http_requests_total",
      "counter",
      "Requests of HTTP.",
      static_cast<double>(counters.http_requests)
  );
  page.both(
      "saker:prefix_cache_queries_total",
      "vllm:prefix_cache_queries_total",
      "counter",
      "Tokens of prompts that were looked up in the prefix cache.",
      static_cast<double>(counters.prompt_tokens)
  );
  page.both(
      "saker:prefix_cache_hits_total",
      "vllm:prefix_cache_hits_total",
      "counter",
      "Tokens of prompts that the prefix cache had.",
      static_cast<double>(counters.cached_tokens)
  );
  add_tokens(page, counters);
  page.reasons("saker:request_success_total", "Ends of generations by reason.", counters);
  page.reasons("vllm:request_success_total", "Ends of generations by reason.", counters);
  page.both(
      "saker:admission_rejections_total",
      "vllm:admission_rejections_total",
      "counter",
      "Requests that found the queue full.",
      static_cast<double>(counters.rejected)
  );
  page.histogram(
      "vllm:time_to_first_token_seconds", "Time to the first token.", counters.first_token_seconds
  );
  page.histogram(
      "vllm:e2e_request_latency_seconds", "Time of whole generations.", counters.request_seconds
  );
  page.histogram(
      "vllm:request_time_per_output_token_seconds",
      "Time per token of answers.",
      counters.token_seconds
  );
  page.histogram(
      "vllm:request_prompt_tokens", "Tokens of each prompt.", counters.request_prompt_tokens
  );
  page.histogram(
      "vllm:request_generation_tokens", "Tokens of each answer.", counters.request_generation_tokens
  );
  return page.take();
}

}  // namespace saker::server
