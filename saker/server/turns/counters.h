// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model's counts, for /metrics. Written and read by any thread without locks.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace saker::server {

// Upper ends of buckets, in seconds, as vLLM has them.
inline constexpr std::array<double, 22> kFirstTokenBuckets = {.001, .005, .01, .02, .04, .06,
                                                              .08,  .1,   .25, .5,  .75, 1,
                                                              2.5,  5,    7.5, 10,  20,  40,
                                                              80,   160,  640, 2560};
inline constexpr std::array<double, 21> kLatencyBuckets = {
    .3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680
};
inline constexpr std::array<double, 18> kTokenTimeBuckets = {
    .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 80
};
inline constexpr std::array<double, 16> kTokenCountBuckets = {
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000
};

// Numbers of values at or below each bucket's end.
template <const auto& ends>
class Histogram {
 public:
  void add(double value) {
    std::size_t i = 0;
    while (i < ends.size() && value > ends[i]) {
      ++i;
    }
    ++counts_[i];
    ++count_;
    sum_.fetch_add(value);
  }

  std::span<const double> bucket_ends() const { return ends; }

  // Values in one bucket alone; the last one has no end.
  std::uint64_t in_bucket(std::size_t i) const { return counts_[i].load(); }

  std::uint64_t count() const { return count_.load(); }

  double sum() const { return sum_.load(); }

 private:
  std::array<std::atomic<std::uint64_t>, ends.size() + 1> counts_ = {};
  std::atomic<std::uint64_t> count_ = 0;
  std::atomic<double> sum_ = 0.0;
};

struct Counters {
  std::atomic<std::int64_t> running = 0;  // Generations that have begun and not ended.
  std::atomic<std::int64_t> waiting = 0;  // Running ones without an event so far.
  std::atomic<std::uint64_t> prompt_tokens = 0;
  std::atomic<std::uint64_t> cached_tokens = 0;
  std::atomic<std::uint64_t> generation_tokens = 0;
  std::atomic<std::uint64_t> preemptions = 0;
  std::atomic<std::uint64_t> draft_rounds = 0;
  std::atomic<std::uint64_t> drafted_tokens = 0;
  std::atomic<std::uint64_t> accepted_tokens = 0;
  // Ends by reason.
  std::atomic<std::uint64_t> stopped = 0;
  std::atomic<std::uint64_t> cut = 0;  // At a limit of tokens.
  std::atomic<std::uint64_t> cancelled = 0;
  std::atomic<std::uint64_t> failed = 0;
  std::atomic<std::uint64_t> rejected = 0;  // By a full queue.
  Histogram<kFirstTokenBuckets> first_token_seconds;
  Histogram<kLatencyBuckets> request_seconds;
  Histogram<kTokenTimeBuckets> token_seconds;  // Between two tokens of an answer, on average.
  Histogram<kTokenCountBuckets> request_prompt_tokens;
  Histogram<kTokenCountBuckets> request_generation_tokens;
};

}  // namespace saker::server
