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
      prompt_size(static_cast<int>(context.size())) {}

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
      .timing =
          {.queue_s = seconds_between(added, started),
           .prompt_s = generated > 0 ? seconds_between(started, first_token) : 0.0,
           .generation_s = seconds_between(first_token, last_token)},
      .drafter = drafting.reported(),
      .speculation = drafting.counts,
  });
}

}  // namespace saker::generate
