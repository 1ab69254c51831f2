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

// Priorities at one moment.
class Levels {
 public:
  Levels(std::span<const Job> jobs, double now) : now_(now) {
    for (const Job& job : jobs) {
      highest_ = std::max<std::int64_t>(highest_, job.priority);
    }
  }

  std::int64_t of(const Job& job) const {
    return std::min(job.priority + levels(now_ - job.added, Scheduler::kAgeing), highest_);
  }

 private:
  double now_;
  std::int64_t highest_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace

std::vector<std::uint64_t> Scheduler::admit(
    std::span<const Job> waiting, std::span<const Job> running, double now
) const {
  std::map<std::string_view, std::int64_t> running_of;
  const Levels level(waiting, now);
  for (const Job& job : running) {
    ++running_of[job.user];
  }
  std::vector<std::size_t> left(waiting.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  std::vector<std::uint64_t> admitted;
  const auto places = static_cast<std::size_t>(limits_.max_running) -
                      std::min(running.size(), static_cast<std::size_t>(limits_.max_running));
  while (!left.empty() && admitted.size() < places) {
    const auto first = std::ranges::min_element(left, {}, [&](std::size_t index) {
      const Job& job = waiting[index];
      const auto found = running_of.find(job.user);
      const std::int64_t share =
          (found == running_of.end() ? 0 : found->second) - levels(now - job.added, kPatience);
      return std::tuple(-level.of(job), share, job.added, job.id);
    });
    const Job& job = waiting[*first];
    ++running_of[job.user];
    admitted.push_back(job.id);
    left.erase(first);
  }
  return admitted;
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
