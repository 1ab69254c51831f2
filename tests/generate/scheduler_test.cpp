// SPDX-License-Identifier: Apache-2.0
// The scheduler by itself: single decisions, and random traces of arrivals that run against a model
// of a machine's time.
#include "saker/generate/scheduler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

using Ids = std::vector<std::uint64_t>;

TEST(Scheduler, PriorityThenUsersThenArrival) {
  const Scheduler scheduler({.max_running = 4});
  const std::vector<Job> waiting{
      {.id = 1, .user = "a", .added = 1},
      {.id = 2, .user = "a", .added = 2},
      {.id = 3, .user = "b", .added = 3},
      {.id = 4, .priority = 1, .user = "a", .added = 4},
      {.id = 5, .user = "b", .added = 5},
  };
  // Job 4 counts for user a, so b comes next.
  EXPECT_EQ(scheduler.admit(waiting, {}, 6), (Ids{4, 3, 1, 5}));
  const std::vector<Job> running{{.id = 9, .user = "b"}, {.id = 8, .user = "b"}};
  EXPECT_EQ(scheduler.admit(waiting, running, 6), (Ids{4, 1}));
  EXPECT_EQ(scheduler.admit({}, running, 6), Ids{});
  const std::vector<Job> full(5);
  EXPECT_EQ(scheduler.admit(waiting, full, 6), Ids{});
}

TEST(Scheduler, WaitingRaisesAPriority) {
  const Scheduler scheduler({.max_running = 1});
  const auto first = [&](double now) {
    const std::vector<Job> waiting{
        {.id = 1, .priority = 0, .added = 0}, {.id = 2, .priority = 2, .added = 5}
    };
    return scheduler.admit(waiting, {}, now).front();
  };
  EXPECT_EQ(first(6), 2U);
  EXPECT_EQ(first(19.9), 2U);
  EXPECT_EQ(first(20), 1U);
}

TEST(Scheduler, PromptsRunByPriorityAndArrival) {
  const std::vector<Job> jobs{
      {.id = 3, .added = 1}, {.id = 1, .priority = 1, .added = 2}, {.id = 2, .added = 1}
  };
  EXPECT_EQ(Scheduler::order(jobs, 3), (std::vector<std::size_t>{1, 2, 0}));
}

TEST(Scheduler, StepsBesideAnswersAreShort) {
  Scheduler scheduler({.prefill_step = 512, .target_itl = 0.1});
  EXPECT_EQ(scheduler.prefill_tokens(true), 512);  // Nothing is known yet.
  scheduler.observe(500, 1.0);
  EXPECT_EQ(scheduler.prefill_tokens(false), 512);
  EXPECT_EQ(scheduler.prefill_tokens(true), 50);
  for (int i = 0; i < 50; ++i) {
    scheduler.observe(100, 10.0);
  }
  EXPECT_EQ(scheduler.prefill_tokens(true), Scheduler::kLeastTokens);
  scheduler.observe(1, 100.0);  // Too few to tell.
  EXPECT_EQ(scheduler.prefill_tokens(true), Scheduler::kLeastTokens);
  Scheduler narrow({.prefill_step = 8, .target_itl = 0.1});
  narrow.observe(100, 10.0);
  EXPECT_EQ(narrow.prefill_tokens(true), 8);
}

// A machine that runs `prompt_tokens_s` prompt tokens a second, and each step at least 20 ms.
struct Machine {
  double prompt_tokens_s = 400.0;

  double seconds(int prompt_tokens) const { return 0.02 + prompt_tokens / prompt_tokens_s; }
};

struct Arrival {
  Job job;
  int prompt_left = 0;
  int answer_left = 0;
};

// What a trace showed.
struct Outcome {
  std::vector<double> waits;  // Seconds from arrival to the first place.
  std::vector<double> gaps;   // Seconds of steps that somebody waited for.
  double excess = 0.0;        // Most seconds by which a prompt's part exceeded its target.
  std::map<std::pair<std::string_view, int>, std::uint64_t> last;  // By user and priority.
  bool in_order = true;
};

class Trace {
 public:
  Trace(std::uint64_t seed, const SchedulerLimits& limits)
      : random_(seed), limits_(limits), scheduler_(limits) {
    constexpr std::array<std::string_view, 4> kUsers{"a", "b", "c", "d"};
    const int count = draw(5, 60);
    double at = 0.0;
    for (int i = 0; i < count; ++i) {
      at += draw(0, 1000) / 1000.0;
      coming_.push_back({
          .job =
              {.id = static_cast<std::uint64_t>(i) + 1,
               .priority = draw(0, 2),
               .user = kUsers.at(static_cast<std::size_t>(draw(0, 3))),
               .added = at},
          .prompt_left = draw(0, 9) == 0 ? draw(500, 4000) : draw(1, 200),
          .answer_left = draw(1, 80),
      });
    }
  }

  Outcome run() {
    while (!coming_.empty() || !waiting_.empty() || !running_.empty()) {
      if (waiting_.empty() && running_.empty()) {
        now_ = std::max(now_, coming_.front().job.added);
      }
      while (!coming_.empty() && coming_.front().job.added <= now_) {
        waiting_.push_back(coming_.front());
        coming_.pop_front();
      }
      admit();
      step();
    }
    return outcome_;
  }

 private:
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  static std::vector<Job> jobs_of(const std::vector<Arrival>& arrivals) {
    std::vector<Job> jobs;
    for (const Arrival& arrival : arrivals) {
      jobs.push_back(arrival.job);
    }
    return jobs;
  }

  void admit() {
    for (const std::uint64_t id : scheduler_.admit(jobs_of(waiting_), jobs_of(running_), now_)) {
      const auto found =
          std::ranges::find(waiting_, id, [](const Arrival& each) { return each.job.id; });
      ASSERT_NE(found, waiting_.end());
      std::uint64_t& last = outcome_.last[{found->job.user, found->job.priority}];
      outcome_.in_order = outcome_.in_order && last < id;
      last = id;
      outcome_.waits.push_back(now_ - found->job.added);
      running_.push_back(*found);
      waiting_.erase(found);
    }
    ASSERT_LE(running_.size(), static_cast<std::size_t>(limits_.max_running));
  }

  void step() {
    std::vector<Job> prompts;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (running_[i].prompt_left > 0) {
        prompts.push_back(running_[i].job);
        places.push_back(i);
      }
    }
    const bool beside = prompts.size() < running_.size();
    int budget = scheduler_.prefill_tokens(beside);
    for (Arrival& each : running_) {
      each.answer_left -= each.prompt_left == 0 ? 1 : 0;
    }
    int tokens = 0;
    for (const std::size_t index : Scheduler::order(prompts, now_)) {
      Arrival& each = running_[places[index]];
      const int count = std::min(each.prompt_left, budget - tokens);
      each.prompt_left -= count;
      tokens += count;
    }
    const double seconds = machine_.seconds(tokens);
    if (beside) {
      outcome_.gaps.push_back(seconds);
    }
    if (beside && measured_ && tokens > Scheduler::kLeastTokens) {
      outcome_.excess = std::max(outcome_.excess, seconds - 0.02 - limits_.target_itl);
    }
    scheduler_.observe(tokens, seconds);
    measured_ = measured_ || tokens >= Scheduler::kLeastTokens;
    now_ += seconds;
    std::erase_if(running_, [](const Arrival& each) { return each.answer_left <= 0; });
  }

  std::mt19937_64 random_;
  SchedulerLimits limits_;
  Scheduler scheduler_;
  Machine machine_;
  double now_ = 0.0;
  bool measured_ = false;
  std::deque<Arrival> coming_;
  std::vector<Arrival> waiting_;
  std::vector<Arrival> running_;
  Outcome outcome_;
};

double percentile(std::vector<double>& values, double part) {
  std::ranges::sort(values);
  return values.at(static_cast<std::size_t>(part * static_cast<double>(values.size() - 1)));
}

// All jobs run, in order of arrival for a user and priority, and nobody's next token waits longer
// for others' prompts than the target.
TEST(Scheduler, TenThousandTraces) {
  std::vector<double> waits;
  std::vector<double> gaps;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    const SchedulerLimits limits{
        .max_running = 1 + static_cast<int>(seed % 8), .prefill_step = 512, .target_itl = 0.25
    };
    const Outcome outcome = Trace(seed, limits).run();
    ASSERT_TRUE(outcome.in_order) << seed;
    ASSERT_LE(outcome.excess, 1e-9) << seed;
    waits.insert(waits.end(), outcome.waits.begin(), outcome.waits.end());
    gaps.insert(gaps.end(), outcome.gaps.begin(), outcome.gaps.end());
  }
  fmt::print(
      "wait s: median {:.2f}, p99 {:.2f}, most {:.2f}; step beside answers s: median {:.3f}, p99 "
      "{:.3f}, most {:.3f}\n",
      percentile(waits, 0.5),
      percentile(waits, 0.99),
      percentile(waits, 1.0),
      percentile(gaps, 0.5),
      percentile(gaps, 0.99),
      percentile(gaps, 1.0)
  );
}

// A user who asks without end, and at the highest priority, keeps nobody out for ever.
TEST(Scheduler, NobodyStarves) {
  const Scheduler scheduler({.max_running = 2});
  std::vector<Job> waiting{{.id = 1, .priority = 0, .user = "patient", .added = 0}};
  std::vector<Job> running;
  std::uint64_t id = 1;
  for (double now = 0; now < 200; now += 1) {
    for (int i = 0; i < 3; ++i) {
      waiting.push_back({.id = ++id, .priority = 5, .user = i == 0 ? "x" : "y", .added = now});
    }
    for (const std::uint64_t admitted : scheduler.admit(waiting, running, now)) {
      if (admitted == 1) {
        EXPECT_LE(now, 5 * Scheduler::kAgeing);
        return;
      }
      std::erase_if(waiting, [&](const Job& job) { return job.id == admitted; });
    }
  }
  FAIL() << "the patient user never had a turn";
}

}  // namespace
}  // namespace saker::generate
