// SPDX-License-Identifier: Apache-2.0
// The batch generator's steps before a pass: who begins, who has to wait, which tokens run.
#include "saker/base/error.h"
#include "saker/generate/batch_generator.h"
#include "saker/generate/batch_work.h"
#include "saker/kernels/cpu/runtime/memory_account.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <limits>
#include <ranges>
#include <utility>

namespace saker::generate {

void BatchGenerator::end_late() {
  const auto now = Sequence::Clock::now();
  const auto end = [&](const std::unique_ptr<Sequence>& sequence) {
    if (sequence->request.deadline <= now) {
      finish(*sequence, EndReason::kDeadline);
    }
    return sequence->ended;
  };
  std::erase_if(active_, end);
  std::erase_if(waiting_, end);
}

void BatchGenerator::admit(double now) {
  const auto priority_of = [](const auto& sequence) { return sequence->request.priority; };
  while (!waiting_.empty()) {
    const bool is_full = active_.size() >= static_cast<std::size_t>(limits_.max_batch);
    if (is_full && std::ranges::max(waiting_ | std::views::transform(priority_of)) <=
                       std::ranges::min(active_ | std::views::transform(priority_of))) {
      return;
    }
    std::vector<Job> waiting;
    std::ranges::transform(waiting_, std::back_inserter(waiting), [](const auto& sequence) {
      return sequence->job();
    });
    const std::vector<Job> running = running_jobs();
    if (is_full) {
      const auto id = Scheduler::preempt(waiting, running, now);
      if (!id) {
        return;
      }
      preempt(*id);
      continue;
    }
    const Admission admission = scheduler_.admit(waiting, running, now, memory_.room());
    std::ranges::for_each(admission.admitted, [this](std::uint64_t id) { begin(id); });
    if (!admission.blocked || !unblock(*admission.blocked, now)) {
      return;
    }
  }
}

std::vector<Job> BatchGenerator::running_jobs() {
  std::vector<Job> jobs;
  for (const std::unique_ptr<Sequence>& sequence : active_) {
    if (sequence->ended) {
      continue;
    }
    jobs.push_back(sequence->job());
    jobs.back().bytes = memory_.still_needs(*sequence, sequence->request.cache->offset());
  }
  return jobs;
}

void BatchGenerator::begin(std::uint64_t id) {
  const auto found = std::ranges::find(waiting_, id, [](const auto& each) { return each->id; });
  std::unique_ptr<Sequence> sequence = std::move(*found);
  waiting_.erase(found);
  try {
    if (!sequence->request.cache) {
      sequence->request.cache = new_cache(sequence->request);
    }
    require(
        sequence->pending() > 0,
        ErrorCode::kInternal,
        "the cache has {} rows for a prompt of {} tokens",
        sequence->cached(),
        sequence->prompt_size
    );
    active_.push_back(std::move(sequence));
  } catch (...) {
    finish(*sequence, EndReason::kFailed, std::current_exception());
  }
}

bool BatchGenerator::unblock(std::uint64_t id, double now) {
  Sequence& sequence = **std::ranges::find(waiting_, id, [](const auto& each) { return each->id; });
  const std::size_t before = sequence.start_bytes;
  const std::int64_t own = sequence.request.cache ? sequence.request.cache->offset() : 0;
  sequence.start_bytes = memory_.still_needs(sequence, std::max(own, shared_.known_rows(sequence)));
  if (sequence.start_bytes < before || give_way()) {
    return true;
  }
  const Job job = sequence.job();
  const auto weaker = Scheduler::preempt({&job, 1}, running_jobs(), now);
  if (weaker) {
    preempt(*weaker);
  }
  return weaker.has_value();
}

bool BatchGenerator::give_way() {
  if (memory_.give_way()) {
    return true;
  }
  // The last one that came with rows of a session.
  const auto last = std::find_if(waiting_.rbegin(), waiting_.rend(), [](const auto& sequence) {
    return sequence->request.cache && sequence->can_wait();
  });
  if (last == waiting_.rend()) {
    return false;
  }
  (*last)->request.cache.reset();
  (*last)->start_bytes = memory_.still_needs(**last, 0);
  return true;
}

bool BatchGenerator::make_room(std::size_t bytes) {
  while (memory_.room() < bytes && give_way()) {
  }
  return memory_.room() >= bytes;
}

void BatchGenerator::preempt(std::uint64_t id) {
  const auto found = std::ranges::find(active_, id, [](const auto& each) { return each->id; });
  if (found == active_.end() || (*found)->ended || !(*found)->can_wait()) {
    return;
  }
  Sequence& sequence = **found;
  try {
    if (sequence.begun) {
      shared_.keep(sequence);
    }
    const kernels::AccountBinding uncounted(nullptr);
    sequence.give_up_rows(speculator_.start(sequence.request));
  } catch (...) {
    finish(sequence, EndReason::kFailed, std::current_exception());
    return;
  }
  sequence.start_bytes = memory_.still_needs(sequence, 0);
  ++preemptions_;
  spdlog::debug("sequence {} waits, after {} tokens", id, sequence.context.size());
  waiting_.push_back(std::move(*found));
  active_.erase(found);
}

void BatchGenerator::fit(std::vector<Work>& works, double now) {
  if (!memory_.is_bounded()) {
    return;
  }
  while (!works.empty()) {
    const auto growth = [&works] {
      std::size_t bytes = 0;
      for (const Work& work : works) {
        bytes += work.sequence->request.cache->growth(work.count);
      }
      return bytes;
    };
    std::size_t bytes = growth();
    while (memory_.room() < bytes && give_way()) {
      bytes = growth();  // A page that is no longer shared need not be copied.
    }
    if (memory_.room() >= bytes) {
      return;
    }
    if (const auto id = Scheduler::weakest(running_jobs(), now)) {
      std::erase_if(works, [&](const Work& work) { return work.sequence->id == *id; });
      preempt(*id);
    } else {
      end_without_memory(*works.back().sequence, bytes);
      works.pop_back();
    }
  }
}

void BatchGenerator::end_without_memory(Sequence& sequence, std::size_t bytes) {
  if (sequence.generated > 0 && sequence.request.max_tokens == std::numeric_limits<int>::max()) {
    finish(sequence, EndReason::kLength);  // It has no other limit.
    return;
  }
  const Error error(
      ErrorCode::kCapacity,
      fmt::format(
          "cache_memory: the next tokens take {} bytes, but only {} are free", bytes, memory_.room()
      )
  );
  finish(sequence, EndReason::kFailed, std::make_exception_ptr(error));
}

void BatchGenerator::fit_drafts(std::span<Work> works) {
  if (!memory_.is_bounded()) {
    return;
  }
  std::size_t bytes = 0;
  for (const Work& work : works) {
    bytes += work.sequence->request.cache->growth(
        work.count + static_cast<std::int64_t>(work.draft_tokens().size())
    );
  }
  if (memory_.room() < bytes) {
    for (Work& work : works) {
      if (work.draft != nullptr) {
        work.draft->tokens.clear();
      }
    }
  }
}

cache::SequenceCache BatchGenerator::new_cache(const SequenceRequest& request) const {
  return model_.make_cache({.max_kv_size = request.max_kv_size, .kv_bits = request.kv_bits});
}

std::vector<BatchGenerator::Work> BatchGenerator::plan(double now) {
  std::vector<Work> works;
  std::vector<Job> jobs;
  std::vector<std::size_t> prompts;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Sequence& sequence = *active_[i];
    if (sequence.generated > 0 && sequence.begun && sequence.pending() == 1) {
      works.push_back({.sequence = &sequence, .count = 1, .wants_token = true, .answers = true});
    } else {
      jobs.push_back(sequence.job());
      prompts.push_back(i);
    }
  }
  int budget = scheduler_.prefill_tokens(!works.empty());
  for (const std::size_t index : Scheduler::order(jobs, now)) {
    budget -= plan_prompt(prompts[index], budget, works);
  }
  return works;
}

int BatchGenerator::plan_prompt(std::size_t index, int budget, std::vector<Work>& works) {
  Sequence& sequence = *active_[index];
  if (budget == 0 || shared_.awaits_rows(active_, index)) {
    return 0;
  }
  try {
    if (!sequence.begun) {
      shared_.begin(sequence, [&] { return new_cache(sequence.request); });
    }
  } catch (...) {
    finish(sequence, EndReason::kFailed, std::current_exception());
    return 0;
  }
  const int pending = sequence.pending();
  int count = std::min({pending, budget, shared_.most_rows(sequence)});
  if (limits_.fast_prefill && sequence.cached() < sequence.prompt_size) {
    // Rows of an answer that run again keep their bits.
    count = std::min(count, sequence.prompt_size - sequence.cached());
  }
  works.push_back({.sequence = &sequence, .count = count, .wants_token = count == pending});
  return count;
}

}  // namespace saker::generate
