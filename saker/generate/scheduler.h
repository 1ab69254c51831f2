// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which waiting jobs begin, which running ones make room, in what order prompts run, and how many of
// their tokens run in a step. Arithmetic over values: no model, no clock. Jobs of higher priority
// come first. Among equals, the user with the fewest running jobs comes first, then the job that came
// first. Waiting raises a priority up to the highest that waits, and makes up for a user's running
// jobs. So every job begins at some time. A job that lacks memory holds up those behind it. So small
// jobs keep no large one out. Threading: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace saker::generate {

// Times are in seconds since any fixed moment.
struct Job {
  std::uint64_t id = 0;
  int priority = 0;  // Higher first.
  std::string_view user = {};
  double added = 0.0;
  std::size_t bytes = 0;  // Memory that it still takes until its prompt has run, and a little more.
  bool can_wait = true;   // It can give its rows up and go on later.
};

struct Admission {
  std::vector<std::uint64_t> admitted;   // Ids of the jobs that begin now, in order.
  std::optional<std::uint64_t> blocked;  // The next one, if it lacks memory.
};

struct SchedulerLimits {
  int max_running = 8;
  int prefill_step = 512;  // Prompt tokens of a step at most.
  // Time that prompts may add to a step in which somebody waits for the next token of an answer;
  // 0: any.
  double target_itl = 0.0;
};

class Scheduler {
 public:
  // Seconds of waiting that count as one level of priority, and as one running job less.
  static constexpr double kAgeing = 10.0;
  static constexpr double kPatience = 60.0;
  // A step takes at least this many prompt tokens, since fewer cost as much.
  static constexpr int kLeastTokens = 32;

  static constexpr std::size_t kAnyRoom = std::numeric_limits<std::size_t>::max();

  explicit Scheduler(const SchedulerLimits& limits) : limits_(limits) {}

  // The waiting jobs that begin now. `room`: bytes that they may take together, beyond what the
  // running ones still take. A job that would run alone begins in any case.
  Admission admit(
      std::span<const Job> waiting,
      std::span<const Job> running,
      double now,
      std::size_t room = kAnyRoom
  ) const;

  // The running job that has to wait so that the first of the waiting ones can begin: it is the
  // weakest, of lower priority, and younger than its priority's ageing takes to make up for that.
  // So a job has to wait in its first seconds only.
  static std::optional<std::uint64_t> preempt(
      std::span<const Job> waiting, std::span<const Job> running, double now
  );

  // The running job that has to wait when memory ends: of the least aged priority, of equals the one
  // that came last, but never the strongest. None: no job can.
  static std::optional<std::uint64_t> weakest(std::span<const Job> running, double now);

  // Indices of jobs in the order in which their prompts run.
  static std::vector<std::size_t> order(std::span<const Job> jobs, double now);

  // Prompt tokens of the next step. `beside_answers`: it has tokens of answers too.
  int prefill_tokens(bool beside_answers) const;

  // Learns from a step: its prompt tokens and its duration.
  void observe(int prompt_tokens, double seconds);

 private:
  SchedulerLimits limits_;
  double token_seconds_ = 0.0;  // Of a prompt token, smoothed; 0: unknown.
};

}  // namespace saker::generate
