// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/shared_rows.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace saker::generate {

namespace {

// With fewer common tokens, running them twice is better than waiting for them.
constexpr int kWorthWaiting = 32;

}  // namespace

bool SharedRows::shares(const RunningSequence& sequence) const {
  return prefixes_ != nullptr && !sequence.request.prefix_key.empty();
}

bool SharedRows::awaits_rows(
    std::span<const std::unique_ptr<RunningSequence>> active, std::size_t index
) const {
  const RunningSequence& sequence = *active[index];
  if (sequence.begun || !shares(sequence)) {
    return false;
  }
  const std::span<const std::int32_t> prompt(sequence.context);
  const std::string& key = sequence.request.prefix_key;
  const int known = std::max(sequence.cached(), static_cast<int>(prefixes_->match(key, prompt)));
  return std::any_of(
      active.begin(),
      active.begin() + static_cast<std::ptrdiff_t>(index),
      [&](const std::unique_ptr<RunningSequence>& earlier) {
        if (earlier->generated > 0 || earlier->request.prefix_key != key) {
          return false;
        }
        const auto same = std::ranges::mismatch(prompt.first(prompt.size() - 1), earlier->context);
        const auto common = static_cast<int>(same.in1 - prompt.begin());
        const int shared = common == earlier->prompt_size
                               ? common
                               : prefixes_->rows_to_share(*earlier->request.cache, common);
        return shared - known >= kWorthWaiting && earlier->cached() < shared;
      }
  );
}

void SharedRows::begin(
    RunningSequence& sequence, const std::function<cache::SequenceCache()>& new_cache
) const {
  sequence.begun = true;
  const bool is_first = !std::exchange(sequence.has_begun, true);
  if (is_first) {
    sequence.started = RunningSequence::Clock::now();
  }
  if (shares(sequence)) {
    SequenceRequest& request = sequence.request;
    const std::string& key = request.prefix_key;
    if (sequence.cached() == 0) {
      prefixes_->restore(key, sequence.context, *request.cache, sequence.pin);
    } else if (prefixes_->match(key, sequence.context) > sequence.cached()) {
      cache::SequenceCache cache = new_cache();
      if (prefixes_->restore(key, sequence.context, cache, sequence.pin) > sequence.cached()) {
        request.cache = std::move(cache);
      }
    }
  }
  if (is_first) {
    sequence.cached_tokens = sequence.cached();
  }
}

std::int64_t SharedRows::known_rows(const RunningSequence& sequence) const {
  return shares(sequence) ? prefixes_->match(sequence.request.prefix_key, sequence.context) : 0;
}

int SharedRows::most_rows(const RunningSequence& sequence) const {
  return shares(sequence) ? prefixes_->rows_to_interval(*sequence.request.cache, sequence.cached())
                          : std::numeric_limits<int>::max();
}

bool SharedRows::is_due(const RunningSequence& sequence) const {
  return prefixes_ != nullptr && prefixes_->is_due(sequence.kept, sequence.cached());
}

void SharedRows::keep(RunningSequence& sequence) const {
  if (shares(sequence) && sequence.request.cache) {
    prefixes_->keep(
        sequence.request.prefix_key, sequence.context, *sequence.request.cache, sequence.pin
    );
    sequence.kept = sequence.cached();
  }
}

}  // namespace saker::generate
