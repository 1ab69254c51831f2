// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/batch_generator.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"
#include "saker/generate/draft_limits.h"
#include "saker/generate/request_check.h"
#include "saker/generate/speculation_check.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace saker::generate {

namespace {

// With fewer common tokens, running them twice is better than waiting for them.
constexpr int kWorthWaiting = 32;

}  // namespace

// The next `count` tokens of one sequence in one pass.
struct BatchGenerator::Work {
  Sequence* sequence;
  int count;
  bool wants_token;                            // The span ends with the sequence's last token.
  Speculator::Draft* draft = nullptr;          // Answers only: the draft tokens, which follow.
  std::optional<SpeculationCheck> check = {};  // Of a round that is to be compared.

  std::span<const std::int32_t> draft_tokens() const {
    return draft == nullptr ? std::span<const std::int32_t>() : draft->tokens;
  }
};

BatchGenerator::BatchGenerator(
    const models::Model& model,
    const BatchLimits& limits,
    cache::PrefixCache* prefixes,
    Drafters drafters
)
    : model_(model), limits_(limits), prefixes_(prefixes), speculator_(std::move(drafters)) {
  require(
      limits.prefill_step >= 1,
      ErrorCode::kInvalidArgument,
      "prefill_step: got {}, expected 1 or more",
      limits.prefill_step
  );
  require(
      limits.max_batch >= 1,
      ErrorCode::kInvalidArgument,
      "batch: got {}, expected 1 or more",
      limits.max_batch
  );
}

BatchGenerator::~BatchGenerator() = default;

std::uint64_t BatchGenerator::add(SequenceRequest request, std::unique_ptr<Listener> listener) {
  check_request(request, model_.info());
  require(
      !request.speculation.check || kernels::on_cpu(),
      ErrorCode::kUnsupported,
      "check_speculation: compares bits, which only the CPU keeps"
  );
  auto sequence = std::make_unique<Sequence>(
      last_id_ + 1, std::move(request), std::move(listener), model_.info().vocab_size
  );
  sequence->drafting = speculator_.start(sequence->request);
  waiting_.push_back(std::move(sequence));
  return ++last_id_;
}

void BatchGenerator::cancel(std::uint64_t id) {
  const auto end = [this, id](const std::unique_ptr<Sequence>& sequence) {
    if (sequence->id == id) {
      finish(*sequence, EndReason::kCancelled);
    }
    return sequence->ended;
  };
  std::erase_if(active_, end);
  std::erase_if(waiting_, end);
}

void BatchGenerator::step() {
  try {
    admit();
    std::vector<Work> works = plan();
    if (!works.empty()) {
      run_round(works);
    }
  } catch (...) {
    // The work around a pass failed, as without memory. A new try could fail forever: all end.
    for (const std::unique_ptr<Sequence>& sequence : active_) {
      finish(*sequence, EndReason::kFailed, std::current_exception());
    }
  }
  drop_ended();
}

void BatchGenerator::run_round(std::vector<Work>& works) {
  std::vector<Speculator::Draft> drafts = propose(works);
  const auto start = Sequence::Clock::now();
  const bool smooth = run(works) && drafts.size() == works.size();
  const std::chrono::duration<double> seconds = Sequence::Clock::now() - start;
  spdlog::trace(
      "pass: {} sequences, {} of them in their answers, {:.2f} ms",
      works.size(),
      drafts.size(),
      seconds.count() * 1e3
  );
  speculator_.finish_round(drafts, smooth ? seconds.count() : 0.0);
}

std::vector<Speculator::Draft> BatchGenerator::propose(std::vector<Work>& works) {
  std::vector<Speculator::Draft> drafts;
  drafts.reserve(works.size());
  for (Work& work : works) {
    Sequence& sequence = *work.sequence;
    if (sequence.generated > 0) {
      work.draft = &drafts.emplace_back(Speculator::Draft{
          .drafting = &sequence.drafting,
          .context = sequence.context,
          .position = sequence.position(),
          .cache = &*sequence.request.cache,
          .max_tokens = max_draft_tokens(sequence, model_.info()),
      });
    }
  }
  speculator_.propose(drafts, drafts.size() == works.size());
  for (const Work& work : works) {
    if (work.draft != nullptr) {
      shorten_draft(work.draft->tokens, work.sequence->request, model_.info());
    }
  }
  return drafts;
}

void BatchGenerator::admit() {
  while (!waiting_.empty() && active_.size() < static_cast<std::size_t>(limits_.max_batch)) {
    std::unique_ptr<Sequence> sequence = std::move(waiting_.front());
    waiting_.pop_front();
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
}

cache::SequenceCache BatchGenerator::new_cache(const SequenceRequest& request) const {
  return model_.make_cache({.max_kv_size = request.max_kv_size, .kv_bits = request.kv_bits});
}

bool BatchGenerator::shares(const Sequence& sequence) const {
  return prefixes_ != nullptr && !sequence.request.prefix_key.empty();
}

bool BatchGenerator::waits_for_prefix(std::size_t index) const {
  const Sequence& sequence = *active_[index];
  if (sequence.begun || !shares(sequence)) {
    return false;
  }
  const std::span<const std::int32_t> prompt(sequence.context);
  const std::string& key = sequence.request.prefix_key;
  const int known = std::max(sequence.cached(), static_cast<int>(prefixes_->match(key, prompt)));
  return std::any_of(
      active_.begin(),
      active_.begin() + static_cast<std::ptrdiff_t>(index),
      [&](const std::unique_ptr<Sequence>& earlier) {
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

void BatchGenerator::start(Sequence& sequence) {
  sequence.begun = true;
  sequence.started = Sequence::Clock::now();
  if (shares(sequence)) {
    SequenceRequest& request = sequence.request;
    const std::string& key = request.prefix_key;
    if (sequence.cached() == 0) {
      prefixes_->restore(key, sequence.context, *request.cache, sequence.pin);
    } else if (prefixes_->match(key, sequence.context) > sequence.cached()) {
      cache::SequenceCache cache = new_cache(request);
      if (prefixes_->restore(key, sequence.context, cache, sequence.pin) > sequence.cached()) {
        request.cache = std::move(cache);
      }
    }
  }
  sequence.cached_tokens = sequence.cached();
}

void BatchGenerator::keep_rows(Sequence& sequence) {
  if (shares(sequence) && sequence.request.cache) {
    prefixes_->keep(
        sequence.request.prefix_key, sequence.context, *sequence.request.cache, sequence.pin
    );
    sequence.kept = sequence.cached();
  }
}

void BatchGenerator::finish(Sequence& sequence, EndReason reason, std::exception_ptr error) {
  try {
    if (!sequence.ended && sequence.begun && reason != EndReason::kFailed) {
      keep_rows(sequence);
    }
  } catch (...) {
    reason = EndReason::kFailed;
    error = std::current_exception();
  }
  sequence.end(reason, std::move(error));
}

std::vector<BatchGenerator::Work> BatchGenerator::plan() {
  std::vector<Work> works;
  int budget = limits_.prefill_step;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Sequence& sequence = *active_[i];
    if (sequence.generated > 0) {
      works.push_back({&sequence, sequence.pending(), true});
      continue;
    }
    if (budget == 0 || waits_for_prefix(i)) {
      continue;
    }
    try {
      if (!sequence.begun) {
        start(sequence);
      }
    } catch (...) {
      finish(sequence, EndReason::kFailed, std::current_exception());
      continue;
    }
    const int pending = sequence.pending();
    int count = std::min(pending, budget);
    if (shares(sequence)) {
      const cache::SequenceCache& rows = *sequence.request.cache;
      count = std::min(count, prefixes_->rows_to_interval(rows, sequence.cached()));
    }
    budget -= count;
    works.push_back({&sequence, count, count == pending});
  }
  return works;
}

bool BatchGenerator::run(std::span<Work> works) {
  try {
    run_pass(works);
    return true;
  } catch (...) {
    // The pass kept nothing. Sequences that can run alone continue, without drafts if necessary.
    const bool alone = works.size() == 1;
    if (alone && works.front().draft_tokens().empty()) {
      finish(*works.front().sequence, EndReason::kFailed, std::current_exception());
      return false;
    }
    if (alone) {
      works.front().draft->tokens.clear();
    }
  }
  for (Work& work : works) {
    run({&work, 1});
  }
  return false;
}

void BatchGenerator::run_pass(std::span<Work> works) {
  std::vector<PassSpan> spans;
  for (Work& work : works) {
    Sequence& sequence = *work.sequence;
    const auto first = sequence.context.begin() + sequence.cached();
    PassSpan& span = spans.emplace_back(PassSpan{
        .cache = &*sequence.request.cache,
        .tokens = {first, first + work.count},
        .adapter = sequence.request.adapter,
        .int8 = limits_.fast_prefill && sequence.generated == 0,
    });
    const std::span<const std::int32_t> draft = work.draft_tokens();
    span.tokens.insert(span.tokens.end(), draft.begin(), draft.end());
    span.logit_rows = work.wants_token ? 1 + static_cast<int>(draft.size()) : 0;
    work.check.reset();
    if (sequence.request.speculation.check && !draft.empty()) {
      work.check.emplace(model_, span);
    }
  }
  PassTransaction transaction(spans);
  CapturedHidden captured{.layers = captured_layers(works), .rows = {}};
  RowLogits logits = run_rows(model_, spans, &captured);
  int first_row = 0;
  int first_logits = 0;
  for (std::size_t i = 0; i < works.size(); ++i) {
    advance(works[i], logits, first_logits, [&](std::int64_t rows) {
      transaction.commit(i, rows);
      keep_captured(works[i], captured, first_row, rows);
    });
    first_row += static_cast<int>(spans[i].tokens.size());
    first_logits += spans[i].logit_rows;
  }
}

std::vector<int> BatchGenerator::captured_layers(std::span<const Work> works) const {
  std::set<int> layers;
  for (const Work& work : works) {
    const std::span<const int> wanted = speculator_.captured_layers(work.sequence->drafting);
    layers.insert(wanted.begin(), wanted.end());
  }
  return {layers.begin(), layers.end()};
}

void BatchGenerator::keep_captured(
    const Work& work, const CapturedHidden& captured, int first, std::int64_t rows
) const {
  Sequence& sequence = *work.sequence;
  const std::span<const int> layers = speculator_.captured_layers(sequence.drafting);
  const auto end = static_cast<std::size_t>(sequence.cached()) + 1;
  // If the sequence ends here, no token follows its last row.
  if (rows == 0 || layers.empty() || end > sequence.context.size()) {
    return;
  }
  const auto count = static_cast<std::size_t>(rows);
  Speculator::keep(
      sequence.drafting,
      captured.of(layers, first, first + static_cast<int>(rows)),
      std::span<const std::int32_t>(sequence.context).subspan(end - count, count),
      work.draft == nullptr
  );
}

void BatchGenerator::advance(Work& work, RowLogits& logits, int first_row, const Commit& commit) {
  Sequence& sequence = *work.sequence;
  const bool in_prompt = sequence.generated == 0;
  std::optional<EndReason> reason;
  std::exception_ptr error;
  int looked_at = 0;
  try {
    if (in_prompt) {
      sequence.listener->on_prompt(sequence.cached(), sequence.prompt_size);
    }
    if (work.check) {
      work.check->compare(logits, first_row);
      sequence.drafting.counts.compared += work.check->rows();
    }
    while (work.wants_token && !reason) {
      const int row = looked_at++;
      reason = choose_token(work, row, logits.row(first_row + row));
      if (!is_as_drafted(work, row)) {
        break;
      }
    }
  } catch (...) {
    reason = EndReason::kFailed;
    error = std::current_exception();
  }
  if (work.draft != nullptr) {
    work.draft->count();
  }
  try {
    // The last chosen token has no row: it did not run, or a different draft ran in its place.
    commit(work.count + std::max(looked_at - 1, 0));
    // Must come before the next pass drops rows that this sequence no longer needs.
    if (prefixes_ != nullptr &&
        (in_prompt || prefixes_->is_due(sequence.kept, sequence.cached()))) {
      keep_rows(sequence);
    }
  } catch (...) {
    reason = EndReason::kFailed;
    error = std::current_exception();
  }
  if (reason) {
    finish(sequence, *reason, std::move(error));
  }
}

bool BatchGenerator::is_as_drafted(const Work& work, int row) {
  if (work.draft == nullptr) {
    return false;
  }
  Speculator::Draft& draft = *work.draft;
  ++draft.chosen;
  const auto index = static_cast<std::size_t>(row);
  if (index >= draft.tokens.size() || work.sequence->last_choice != draft.tokens[index]) {
    return false;
  }
  ++draft.accepted;
  return true;
}

std::int32_t BatchGenerator::pick(const Work& work, int row, std::span<float> logits) {
  Sequence& sequence = *work.sequence;
  const std::int64_t position = sequence.position();
  const auto index = static_cast<std::size_t>(row);
  if (sequence.request.speculation.acceptance == Acceptance::kCoupled ||
      index >= work.draft_tokens().size()) {
    return sequence.sampler.choose(logits, sequence.context, position);
  }
  const std::int32_t draft = work.draft_tokens()[index];
  const auto& chances = work.draft->chances;
  return sequence.sampler.accept_or_resample(
      sequence.sampler.distribution(logits, sequence.context, position),
      index < chances.size() ? chances[index] : sample::Distribution{{1.0, draft}},
      draft,
      position
  );
}

std::optional<EndReason> BatchGenerator::choose_token(
    const Work& work, int row, std::span<float> logits
) {
  Sequence& sequence = *work.sequence;
  const SequenceRequest& request = sequence.request;
  const std::int64_t position = sequence.position();
  GeneratedToken token;
  std::span<float> masked = logits;
  if (request.logprobs >= 0) {
    row_.assign(logits.begin(), logits.end());
    masked = row_;
  }
  if (request.mask && !sample::apply_mask(*request.mask, masked, mask_bits_)) {
    sequence.last_choice = -1;
    return EndReason::kComplete;
  }
  token.id = pick(work, row, masked);
  if (request.logprobs >= 0) {
    const double log_sum = log_sum_exp(logits);
    token.logprob = log_prob(logits, token.id, log_sum);
    token.top = top_tokens(logits, request.logprobs, log_sum);
  }
  sequence.last_choice = token.id;
  sequence.last_token = Sequence::Clock::now();
  if (sequence.generated == 0) {
    sequence.first_token = sequence.last_token;
  }
  ++sequence.generated;
  if (std::ranges::find(request.stop_tokens, token.id) != request.stop_tokens.end()) {
    return EndReason::kStopToken;
  }
  sequence.context.push_back(token.id);
  const std::int64_t limit = model_.info().context_length;
  const bool is_complete = request.mask && !request.mask->accept(token.id);
  if (!sequence.listener->on_token(token)) {
    return EndReason::kStopped;
  }
  if (is_complete) {
    return EndReason::kComplete;
  }
  if (sequence.generated == request.max_tokens || (limit > 0 && position >= limit)) {
    return EndReason::kLength;
  }
  return std::nullopt;
}

void BatchGenerator::drop_ended() {
  std::erase_if(active_, [](const std::unique_ptr<Sequence>& sequence) { return sequence->ended; });
}

}  // namespace saker::generate
