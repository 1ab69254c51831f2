// SPDX-License-Identifier: Apache-2.0
#include "saker/server/admin/metrics.h"

#include "saker/base/memory.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  using Value = double (*)(const ModelCard& card);

  explicit Page(std::vector<ModelCard> cards) : cards_(std::move(cards)) {
    for (const ModelCard& card : cards_) {
      labels_.push_back(fmt::format("model_name=\"{}\",engine=\"0\"", label(card.name())));
    }
  }

  void head(std::string_view name, std::string_view kind, std::string_view help) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, kind);
  }

  void number(std::string_view name, std::string_view kind, std::string_view help, double amount) {
    head(name, kind, help);
    text_ += fmt::format("{} {}\n", name, amount);
  }

  void value(std::string_view name, std::string_view kind, std::string_view help, Value read) {
    head(name, kind, help);
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      text_ += fmt::format("{}{{{}}} {}\n", name, labels_[i], read(cards_[i]));
    }
  }

  // Under a name of Saker's and under vLLM's.
  void both(std::string_view name, std::string_view kind, std::string_view help, Value read) {
    value(fmt::format("saker_{}", name), kind, help, read);
    value(fmt::format("vllm:{}", name), kind, help, read);
  }

  template <auto member>
  void histogram(std::string_view name, std::string_view help) {
    head(name, "histogram", help);
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      add_buckets(name, labels_[i], (*cards_[i].counters).*member);
    }
  }

  void reasons(std::string_view name, std::string_view help) {
    head(name, "counter", help);
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      const Counters& counters = *cards_[i].counters;
      const auto line = [&](std::string_view reason, std::uint64_t count) {
        text_ +=
            fmt::format("{}{{{},finished_reason=\"{}\"}} {}\n", name, labels_[i], reason, count);
      };
      line("stop", counters.stopped);
      line("length", counters.cut);
      line("abort", counters.cancelled);
      line("error", counters.failed);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  template <typename Values>
  void add_buckets(std::string_view name, std::string_view labels, const Values& values) {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < values.bucket_ends().size(); ++i) {
      below += values.in_bucket(i);
      text_ += fmt::format(
          "{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, values.bucket_ends()[i], below
      );
    }
    below += values.in_bucket(values.bucket_ends().size());
    text_ += fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n", name, labels, below);
    text_ += fmt::format("{}_sum{{{}}} {}\n", name, labels, values.sum());
    text_ += fmt::format("{}_count{{{}}} {}\n", name, labels, below);
  }

  std::vector<ModelCard> cards_;
  std::vector<std::string> labels_;
  std::string text_;
};

// A member of a model's counts.
template <auto member>
double count_of(const ModelCard& card) {
  return static_cast<double>(((*card.counters).*member).load());
}

void add_models(Page& page) {
  page.value(
      "saker_model_loaded",
      "gauge",
      "1 for a model that is loaded.",
      [](const ModelCard& card) {
        return card.state.state == engine::PoolState::kReady ||
                       card.state.state == engine::PoolState::kLeaving
                   ? 1.0
                   : 0.0;
      }
  );
  page.value(
      "saker_model_waiting",
      "gauge",
      "Requests that wait for a model to be loaded.",
      [](const ModelCard& card) { return static_cast<double>(card.state.waiting); }
  );
}

void add_tokens(Page& page) {
  page.both("prompt_tokens_total", "counter", "Tokens of prompts.", count_of<&Counters::prompt_tokens>);
  page.both("prompt_tokens_cached_total", "counter", "Tokens of prompts whose rows were known.", count_of<&Counters::cached_tokens>);
  page.both("generation_tokens_total", "counter", "Tokens of answers.", count_of<&Counters::generation_tokens>);
  page.value("vllm:spec_decode_num_drafts_total", "counter", "Passes that checked draft tokens.", count_of<&Counters::draft_rounds>);
  page.value("vllm:spec_decode_num_draft_tokens_total", "counter", "Draft tokens.", count_of<&Counters::drafted_tokens>);
  page.value(
      "vllm:spec_decode_num_accepted_tokens_total",
      "counter",
      "Draft tokens that were right.",
      count_of<&Counters::accepted_tokens>
  );
}

}  // namespace

std::string metrics_text(
    const ModelCatalog& catalog, std::uint64_t http_requests, const spans::SpanQueue* spans
) {
  Page page(catalog.cards());
  page.both("num_requests_running", "gauge", "Generations that run.", [](const ModelCard& card) {
    return static_cast<double>(card.counters->running.load() - card.counters->waiting.load());
  });
  page.both("num_requests_waiting", "gauge", "Generations that wait for their first event.", count_of<&Counters::waiting>);
  page.number(
      "saker_peak_memory_bytes",
      "gauge",
      "The most memory that the process had.",
      static_cast<double>(peak_memory_bytes())
  );
  page.number(
      "saker_usable_memory_bytes",
      "gauge",
      "Memory that the process may have.",
      static_cast<double>(usable_memory_bytes())
  );
  page.number(
      "saker_http_requests_total",
      "counter",
      "Requests of HTTP.",
      static_cast<double>(http_requests)
  );
  if (spans != nullptr) {
    const auto number = [&](const char* name, const char* what, std::uint64_t value) {
      page.number(name, "counter", what, static_cast<double>(value));
    };
    number("saker_spans_sent_total", "Spans that the collector took.", spans->sent());
    number("saker_spans_dropped_total", "Spans that it did not take in time.", spans->dropped());
  }
  add_models(page);
  page.both(
      "prefix_cache_queries_total",
      "counter",
      "Tokens of prompts that were looked up in the prefix cache.",
      count_of<&Counters::prompt_tokens>
  );
  page.both("prefix_cache_hits_total", "counter", "Tokens of prompts that the prefix cache had.", count_of<&Counters::cached_tokens>);
  add_tokens(page);
  page.both(
      "num_preemptions_total",
      "counter",
      "Times that a running generation had to wait, for one of higher priority or for memory.",
      count_of<&Counters::preemptions>
  );
  page.reasons("saker_request_success_total", "Ends of generations by reason.");
  page.reasons("vllm:request_success_total", "Ends of generations by reason.");
  page.both("admission_rejections_total", "counter", "Requests that found the queue full.", count_of<&Counters::rejected>);
  page.histogram<&Counters::first_token_seconds>(
      "vllm:time_to_first_token_seconds", "Time to the first token."
  );
  page.histogram<&Counters::request_seconds>(
      "vllm:e2e_request_latency_seconds", "Time of whole generations."
  );
  page.histogram<&Counters::token_seconds>(
      "vllm:request_time_per_output_token_seconds", "Time per token of answers."
  );
  page.histogram<&Counters::request_prompt_tokens>(
      "vllm:request_prompt_tokens", "Tokens of each prompt."
  );
  page.histogram<&Counters::request_generation_tokens>(
      "vllm:request_generation_tokens", "Tokens of each answer."
  );
  return page.take();
}

}  // namespace saker::server
