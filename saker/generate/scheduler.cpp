// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/scheduler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace saker::generate {

namespace {

// Share of a new measurement in the smoothed one.
constexpr double kNewest = 0.25;

std::int64_t levels(double seconds, double level) {
  return static_cast<std::int64_t>(std::floor(std::max(seconds, 0.0) / level));
}

std::int64_t aged_priority(const Job& job, double now) {
  return job.priority + levels(now - job.added, Scheduler::kAgeing);
}

// `spares_strongest`: the strongest one is no answer.
std::optional<std::uint64_t> weakest_of(
    std::span<const Job> running, double now, bool spares_strongest
) {
  const auto strength = [now](const Job& job) {
    return std::tuple(aged_priority(job, now), -job.added, -static_cast<double>(job.id));
  };
  const Job* weakest = nullptr;
  const Job* strongest = nullptr;
  for (const Job& job : running) {
    if (job.can_wait && (weakest == nullptr || strength(job) < strength(*weakest))) {
      weakest = &job;
    }
    if (strongest == nullptr || strength(*strongest) < strength(job)) {
      strongest = &job;
    }
  }
  const bool is_none = weakest == nullptr || (spares_strongest && weakest == strongest);
  return is_none ? std::nullopt : std::optional(weakest->id);
}

// Priorities at one moment.
class Levels {
 public:
  Levels(std::span<const Job> jobs, double now) : now_(now) {
    for (const Job& job : jobs) {
      highest_ = std::max<std::int64_t>(highest_, job.priority);
    }
  }

  std::int64_t of(const Job& job) const { return std::min(aged_priority(job, now_), highest_); }

 private:
  double now_;
  std::int64_t highest_ = std::numeric_limits<std::int64_t>::min();
};

// The order in which waiting jobs begin.
class Turns {
 public:
  Turns(std::span<const Job> waiting, std::span<const Job> running, double now)
      : waiting_(waiting), now_(now), levels_(waiting, now), left_(waiting.size()) {
    for (const Job& job : running) {
      ++running_of_[job.user];
    }
    std::iota(left_.begin(), left_.end(), std::size_t{0});
  }

  // The next job; null: none is left.
  const Job* next() const {
    const auto first = std::ranges::min_element(left_, {}, [&](std::size_t index) {
      const Job& job = waiting_[index];
      const auto found = running_of_.find(job.user);
      const std::int64_t share = (found == running_of_.end() ? 0 : found->second) -
                                 levels(now_ - job.added, Scheduler::kPatience);
      return std::tuple(-levels_.of(job), share, job.added, job.id);
    });
    return first == left_.end() ? nullptr : &waiting_[*first];
  }

  // That job runs now.
  void take(const Job& job) {
    ++running_of_[job.user];
    std::erase(left_, static_cast<std::size_t>(&job - waiting_.data()));
  }

 private:
  std::span<const Job> waiting_;
  double now_;
  Levels levels_;
  std::map<std::string_view, std::int64_t> running_of_;
  std::vector<std::size_t> left_;
};

}  // namespace

Admission Scheduler::admit(
    std::span<const Job> waiting, std::span<const Job> running, double now, std::size_t room
) const {
  Admission result;
  Turns turns(waiting, running, now);
  std::size_t places = static_cast<std::size_t>(limits_.max_running) -
                       std::min(running.size(), static_cast<std::size_t>(limits_.max_running));
  for (const Job& job : running) {
    room -= room == kAnyRoom ? 0 : std::min(room, job.bytes);
  }
  for (; places > 0; --places) {
    const Job* job = turns.next();
    if (job == nullptr) {
      break;
    }
    const bool is_alone = running.empty() && result.admitted.empty();
    if (job->bytes > room && !is_alone) {
      result.blocked = job->id;
      break;
    }
    room -= room == kAnyRoom ? 0 : std::min(room, job->bytes);
    result.admitted.push_back(job->id);
    turns.take(*job);
  }
  return result;
}

std::optional<std::uint64_t> Scheduler::preempt(
    std::span<const Job> waiting, std::span<const Job> running, double now
) {
  const Job* first = Turns(waiting, running, now).next();
  const std::optional<std::uint64_t> id = weakest_of(running, now, false);
  if (first == nullptr || !id) {
    return std::nullopt;
  }
  const Job& other = *std::ranges::find(running, *id, &Job::id);
  // Else the other one would begin again before the first, or soon have to.
  const bool is_weaker = other.priority < first->priority &&
                         aged_priority(other, now) < Levels(waiting, now).of(*first);
  return is_weaker ? id : std::nullopt;
}

std::optional<std::uint64_t> Scheduler::weakest(std::span<const Job> running, double now) {
  return weakest_of(running, now, true);
}

std::vector<std::size_t> Scheduler::order(std::span<const Job> jobs, double now) {
  std::vector<std::size_t> indices(jobs.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  const Levels level(jobs, now);
  std::ranges::sort(indices, {}, [&](std::size_t index) {
    const Job& job = jobs[index];
    return std::tuple(-level.of(job), job.added, job.id);
  });
  return indices;
}

int Scheduler::prefill_tokens(bool beside_answers) const {
  if (!beside_answers || limits_.target_itl <= 0.0 || token_seconds_ <= 0.0) {
    return limits_.prefill_step;
  }
  const double tokens = limits_.target_itl / token_seconds_;
  const int least = std::min(kLeastTokens, limits_.prefill_step);
  return tokens >= limits_.prefill_step ? limits_.prefill_step
                                        : std::max(static_cast<int>(tokens), least);
}

void Scheduler::observe(int prompt_tokens, double seconds) {
  if (prompt_tokens < kLeastTokens || seconds <= 0.0) {
    return;
  }
  const double measured = seconds / prompt_tokens;
  token_seconds_ =
      token_seconds_ <= 0.0 ? measured : (1.0 - kNewest) * token_seconds_ + kNewest * measured;
}

}  // namespace saker::generate
