// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/running_sequence.h"

#include <utility>

namespace saker::generate {

namespace {

double seconds_between(
    RunningSequence::Clock::time_point from, RunningSequence::Clock::time_point to
) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

RunningSequence::RunningSequence(
    std::uint64_t sequence_id,
    SequenceRequest wanted,
    std::unique_ptr<Listener> events,
    int vocab_size
)
    : id(sequence_id),
      request(std::move(wanted)),
      listener(std::move(events)),
      sampler(request.sampling, vocab_size, named_tokens(request)),
      context(request.prompt),
      prompt_size(static_cast<int>(context.size())),
      began_with_rows(request.cache.has_value()) {}

void RunningSequence::give_up_rows(Drafting fresh) {
  fresh.counts = drafting.counts;
  fresh.forced_checked = drafting.forced_checked;
  fresh.forced_right = drafting.forced_right;
  drafting = std::move(fresh);
  request.cache.reset();
  pin = {};
  kept = 0;
  begun = false;
  ++preemptions;
}

const sample::FilledMask& RunningSequence::next_mask(std::size_t vocab_size) {
  if (!is_mask_filled) {
    sample::fill_mask(*request.mask, vocab_size, filled_mask);
    is_mask_filled = true;
  }
  return filled_mask;
}

void RunningSequence::end(EndReason reason, std::exception_ptr error) {
  if (ended) {
    return;
  }
  ended = true;
  listener->on_end({
      .reason = reason,
      .error = std::move(error),
      .last_choice = last_choice,
      .context = std::move(context),
      .cache = std::move(request.cache),
      .cached_tokens = cached_tokens,
      .preemptions = preemptions,
      .timing =
          {.queue_s = seconds_between(added, started),
           .prompt_s = generated > 0 ? seconds_between(started, first_token) : 0.0,
           .generation_s = seconds_between(first_token, last_token)},
      .drafter = drafting.reported(),
      .speculation = drafting.counts,
  });
}

}  // namespace saker::generate
