// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/score_instruments.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <list>
#include <map>
#include <mutex>
#include <utility>

namespace saker::engine {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

}  // namespace

double ScoreStats::hit_rate() const {
  return share(cache_hits, cache_hits + cache_misses);
}

double ScoreStats::avg_batch_size() const {
  return share(batched_prompts, batches_sent);
}

class ScoreInstruments::State {
 public:
  explicit State(const ScoreInstrumentsOptions& options)
      : most_(options.cache_entries), trace_path_(options.trace) {
    if (!options.trace.empty()) {
      trace_.open(options.trace, std::ios::app);
      require(
          trace_.is_open(),
          ErrorCode::kNotFound,
          "{}: the trace can't be written",
          options.trace.string()
      );
    }
  }

  void set_probe(std::string name) {
    const std::lock_guard lock(mutex_);
    probe_ = std::move(name);
  }

  ScoreStats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void check_trace() const {
    const std::lock_guard lock(mutex_);
    require(
        trace_error_ == 0,
        ErrorCode::kInternal,
        "{}: the trace takes no more: {}",
        trace_path_.string(),
        system_reason(trace_error_)
    );
  }

  void close() {
    const std::lock_guard lock(mutex_);
    trace_.close();
    trace_error_ = 0;
    index_.clear();
    entries_.clear();
    most_ = 0;
  }

  std::optional<ViewScores> find(const ScoreCall& call) {
    const std::lock_guard lock(mutex_);
    const auto found = index_.find(call.key);
    if (found == index_.end()) {
      return std::nullopt;
    }
    entries_.splice(entries_.begin(), entries_, found->second);
    ++stats_.cache_hits;
    write_trace(call, 0.0, true);
    return found->second->scores;
  }

  void add(const ScoreCall& call, const ViewScores& scores, double wall_s) {
    const std::lock_guard lock(mutex_);
    ++stats_.cache_misses;
    write_trace(call, wall_s, false);
    if (most_ == 0 || index_.contains(call.key)) {
      return;
    }
    entries_.push_front({call.key, scores});
    index_.emplace(call.key, entries_.begin());
    if (entries_.size() > most_) {
      index_.erase(entries_.back().key);
      entries_.pop_back();
    }
  }

  void count_batch(std::size_t requests, double wall_s) {
    const std::lock_guard lock(mutex_);
    const auto size = static_cast<std::int64_t>(requests);
    ++stats_.forward_passes;
    stats_.scoring_wall_s += wall_s;
    if (size > 1) {
      ++stats_.batches_sent;
      stats_.batched_prompts += size;
      stats_.max_batch_size = std::max(stats_.max_batch_size, size);
    }
  }

 private:
  struct Entry {
    std::string key;
    ViewScores scores;
  };

  // Writes one line and flushes it, so a run that dies leaves a complete trace.
  void write_trace(const ScoreCall& call, double wall_s, bool hit) {
    if (!trace_.is_open()) {
      return;
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const Json line{
        {"ts", std::chrono::duration<double>(now).count()},
        {"probe", probe_.empty() ? Json() : Json(probe_)},
        {"view_id", call.view_id},
        {"prompt_hash", fmt::format("{:016x}", call.prompt_hash)},
        {"top_k", call.top_k},
        {"op", call.op},
        {"wall_ms", wall_s * 1e3},
        {"hit", hit},
    };
    errno = 0;
    trace_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
    if (!trace_) {
      trace_error_ = errno != 0 ? errno : EIO;
      trace_.close();
    }
  }

  mutable std::mutex mutex_;
  std::size_t most_;
  std::list<Entry> entries_;  // Most recently used first.
  std::map<std::string, std::list<Entry>::iterator, std::less<>> index_;
  std::string probe_;
  std::filesystem::path trace_path_;
  std::ofstream trace_;
  int trace_error_ = 0;  // The errno of a line that could not be written.
  ScoreStats stats_;
};

ScoreInstruments::ScoreInstruments(const ScoreInstrumentsOptions& options)
    : state_(std::make_unique<State>(options)) {}

ScoreInstruments::~ScoreInstruments() = default;

void ScoreInstruments::set_current_probe(std::string name) {
  state_->set_probe(std::move(name));
}

ScoreStats ScoreInstruments::stats() const {
  return state_->stats();
}

void ScoreInstruments::check_trace() const {
  state_->check_trace();
}

void ScoreInstruments::close() {
  state_->close();
}

std::optional<ViewScores> ScoreInstruments::find(const ScoreCall& call) {
  return state_->find(call);
}

void ScoreInstruments::add(const ScoreCall& call, const ViewScores& scores, double wall_s) {
  state_->add(call, scores, wall_s);
}

void ScoreInstruments::count_batch(std::size_t requests, double wall_s) {
  state_->count_batch(requests, wall_s);
}

}  // namespace saker::engine
