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
#include <optional>
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
  EXPECT_EQ(scheduler.admit(waiting, {}, 6).admitted, (Ids{4, 3, 1, 5}));
  const std::vector<Job> running{{.id = 9, .user = "b"}, {.id = 8, .user = "b"}};
  EXPECT_EQ(scheduler.admit(waiting, running, 6).admitted, (Ids{4, 1}));
  EXPECT_EQ(scheduler.admit({}, running, 6).admitted, Ids{});
  const std::vector<Job> full(5);
  EXPECT_EQ(scheduler.admit(waiting, full, 6).admitted, Ids{});
}

TEST(Scheduler, WaitingRaisesAPriority) {
  const Scheduler scheduler({.max_running = 1});
  const auto first = [&](double now) {
    const std::vector<Job> waiting{
        {.id = 1, .priority = 0, .added = 0}, {.id = 2, .priority = 2, .added = 5}
    };
    return scheduler.admit(waiting, {}, now).admitted.front();
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

TEST(Scheduler, AJobWithoutMemoryHoldsUpThoseBehindIt) {
  const Scheduler scheduler({.max_running = 4});
  const std::vector<Job> waiting{
      {.id = 1, .added = 1, .bytes = 100},
      {.id = 2, .added = 2, .bytes = 500},
      {.id = 3, .added = 3, .bytes = 10},
  };
  const std::vector<Job> running{{.id = 9, .bytes = 50}};
  const Admission some = scheduler.admit(waiting, running, 4, 200);
  EXPECT_EQ(some.admitted, Ids{1});
  EXPECT_EQ(some.blocked, 2U);
  const Admission all = scheduler.admit(waiting, running, 4, 660);
  EXPECT_EQ(all.admitted, (Ids{1, 2, 3}));
  EXPECT_EQ(all.blocked, std::nullopt);
  // What the running job still takes counts.
  EXPECT_EQ(scheduler.admit(waiting, running, 4, 100).blocked, 1U);
  // Alone, a job begins whatever it takes.
  EXPECT_EQ(scheduler.admit(waiting, {}, 4, 1).admitted, Ids{1});
}

TEST(Scheduler, AHigherPriorityTakesTheWeakestOnesPlace) {
  const std::vector<Job> running{
      {.id = 1, .priority = 0, .added = 1},
      {.id = 2, .priority = 0, .added = 2},
      {.id = 3, .priority = 0, .added = 3, .can_wait = false},
      {.id = 4, .priority = 1, .added = 4},
  };
  const auto victim = [&](const Job& first, double now) {
    return Scheduler::preempt({&first, 1}, running, now);
  };
  EXPECT_EQ(victim({.id = 9, .priority = 1, .added = 5}, 5), 2U);
  EXPECT_EQ(victim({.id = 9, .priority = 0, .added = 5}, 5), std::nullopt);
  EXPECT_EQ(victim({.id = 9, .priority = 1, .added = 11.5}, 11.9), 2U);
  // The running one's age makes up for its priority.
  EXPECT_EQ(victim({.id = 9, .priority = 1, .added = 5}, 12), std::nullopt);
  EXPECT_EQ(victim({.id = 9, .priority = 3, .added = 5}, 12), 4U);
  EXPECT_EQ(Scheduler::preempt({}, running, 5), std::nullopt);
  // An old one begins next, but takes no place of its equals.
  const std::vector<Job> waiting{
      {.id = 9, .priority = 0, .added = 0}, {.id = 10, .priority = 2, .added = 19.9}
  };
  const std::vector<Job> young{{.id = 1, .priority = 0, .added = 15}};
  EXPECT_EQ(Scheduler::preempt(waiting, young, 20), std::nullopt);
}

TEST(Scheduler, TheStrongestKeepsItsMemory) {
  std::vector<Job> running{
      {.id = 1, .priority = 0, .added = 1}, {.id = 2, .priority = 1, .added = 2}
  };
  EXPECT_EQ(Scheduler::weakest(running, 5), 1U);
  running[0].can_wait = false;
  EXPECT_EQ(Scheduler::weakest(running, 5), std::nullopt);
  running[0] = {.id = 1, .priority = 1, .added = 2};
  EXPECT_EQ(Scheduler::weakest(running, 5), 2U);
  running.pop_back();
  EXPECT_EQ(Scheduler::weakest(running, 5), std::nullopt);
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
  int rows = 0;  // In memory, a byte each.
  bool has_begun = false;
};

// What a trace showed.
struct Outcome {
  std::vector<double> waits;  // Seconds from arrival to the first place.
  std::vector<double> gaps;   // Seconds of steps that somebody waited for.
  double excess = 0.0;        // Most seconds by which a prompt's part exceeded its target.
  std::map<std::pair<std::string_view, int>, std::uint64_t> last;  // By user and priority.
  bool in_order = true;
  double most_waited = 0.0;    // Seconds between two steps of a job.
  std::size_t most_bytes = 0;  // At any time.
  int preemptions = 0;
};

class Trace {
 public:
  // `budget`: bytes for the rows of running jobs; each job fits alone.
  Trace(std::uint64_t seed, const SchedulerLimits& limits, std::size_t budget = Scheduler::kAnyRoom)
      : random_(seed), limits_(limits), budget_(budget), scheduler_(limits) {
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
      preempt_for_priority();
      fit();
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
      jobs.back().bytes = static_cast<std::size_t>(arrival.prompt_left + 1);
    }
    return jobs;
  }

  std::size_t held() const {
    int rows = 0;
    for (const Arrival& each : running_) {
      rows += each.rows;
    }
    return static_cast<std::size_t>(rows);
  }

  void admit() {
    const std::size_t room = budget_ == Scheduler::kAnyRoom ? budget_ : budget_ - held();
    const Admission admission = scheduler_.admit(jobs_of(waiting_), jobs_of(running_), now_, room);
    for (const std::uint64_t id : admission.admitted) {
      const auto found =
          std::ranges::find(waiting_, id, [](const Arrival& each) { return each.job.id; });
      ASSERT_NE(found, waiting_.end());
      if (!std::exchange(found->has_begun, true)) {
        std::uint64_t& last = outcome_.last[{found->job.user, found->job.priority}];
        outcome_.in_order = outcome_.in_order && last < id;
        last = id;
        outcome_.waits.push_back(now_ - found->job.added);
      }
      running_.push_back(*found);
      waiting_.erase(found);
    }
    ASSERT_LE(running_.size(), static_cast<std::size_t>(limits_.max_running));
  }

  void preempt(std::uint64_t id) {
    const auto found =
        std::ranges::find(running_, id, [](const Arrival& each) { return each.job.id; });
    found->prompt_left += std::exchange(found->rows, 0);
    waiting_.push_back(*found);
    running_.erase(found);
    ++outcome_.preemptions;
  }

  void preempt_for_priority() {
    while (running_.size() == static_cast<std::size_t>(limits_.max_running)) {
      const auto id = Scheduler::preempt(jobs_of(waiting_), jobs_of(running_), now_);
      if (!id) {
        return;
      }
      preempt(*id);
      admit();
    }
  }

  // Memory may end while the answers grow.
  void fit() {
    while (budget_ != Scheduler::kAnyRoom && held() + running_.size() > budget_) {
      const auto id = Scheduler::weakest(jobs_of(running_), now_);
      ASSERT_TRUE(id.has_value());
      preempt(*id);
    }
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
      each.rows += each.prompt_left == 0 ? 1 : 0;
    }
    // What is free once each answer has its row.
    if (budget_ != Scheduler::kAnyRoom) {
      budget = std::min(budget, static_cast<int>(budget_ - held()));
    }
    int tokens = 0;
    for (const std::size_t index : Scheduler::order(prompts, now_)) {
      Arrival& each = running_[places[index]];
      const int count = std::min(each.prompt_left, budget - tokens);
      each.prompt_left -= count;
      each.rows += count;
      tokens += count;
    }
    outcome_.most_bytes = std::max(outcome_.most_bytes, held());
    note_waiting();
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

  void note_waiting() {
    for (const Arrival& each : waiting_) {
      outcome_.most_waited = std::max(outcome_.most_waited, now_ - each.job.added);
    }
  }

  std::mt19937_64 random_;
  SchedulerLimits limits_;
  std::size_t budget_;
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

// Memory for one to three large jobs: it is never exceeded, everybody ends, and in order of arrival for
// a user and priority.
TEST(Scheduler, TenThousandTracesWithLittleMemory) {
  std::vector<double> waits;
  std::vector<double> fullest;
  std::vector<double> preemptions;
  double most_waited = 0.0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    const SchedulerLimits limits{
        .max_running = 1 + static_cast<int>(seed % 8), .prefill_step = 512, .target_itl = 0.25
    };
    const std::size_t budget = 4100 + seed * 7919 % 8'000;
    const Outcome outcome = Trace(seed, limits, budget).run();
    ASSERT_TRUE(outcome.in_order) << seed;
    ASSERT_LE(outcome.most_bytes, budget) << seed;
    waits.insert(waits.end(), outcome.waits.begin(), outcome.waits.end());
    fullest.push_back(static_cast<double>(outcome.most_bytes) / static_cast<double>(budget));
    preemptions.push_back(outcome.preemptions);
    most_waited = std::max(most_waited, outcome.most_waited);
  }
  fmt::print(
      "wait s: median {:.2f}, p99 {:.2f}, most {:.2f}, for the last step {:.2f}; memory used: "
      "median "
      "{:.2f}, p99 {:.2f}, most {:.2f}; preemptions of a trace: median {}, p99 {}, most {}\n",
      percentile(waits, 0.5),
      percentile(waits, 0.99),
      percentile(waits, 1.0),
      most_waited,
      percentile(fullest, 0.5),
      percentile(fullest, 0.99),
      percentile(fullest, 1.0),
      percentile(preemptions, 0.5),
      percentile(preemptions, 0.99),
      percentile(preemptions, 1.0)
  );
  EXPECT_GT(percentile(preemptions, 0.99), 0.0);
}

// A low priority that has to wait again and again still ends.
TEST(Scheduler, NobodyHasToWaitForEver) {
  std::vector<Job> running{{.id = 1, .priority = 0, .user = "patient", .added = 0}};
  double lost = 0.0;
  std::uint64_t id = 1;
  for (double now = 0; now < 200; now += 1) {
    const Job urgent{.id = ++id, .priority = 3, .user = "urgent", .added = now};
    lost = Scheduler::preempt({&urgent, 1}, running, now) ? now : lost;
  }
  EXPECT_LT(lost, 3 * Scheduler::kAgeing);
  EXPECT_GT(lost, 0.0);
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
    for (const std::uint64_t admitted : scheduler.admit(waiting, running, now).admitted) {
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
