// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/batch_generator.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"
#include "saker/generate/draft_limits.h"
#include "saker/generate/request_check.h"
#include "saker/generate/speculation_check.h"
#include "saker/kernels/gpu/backend.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace saker::generate {

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
    : model_(model),
      limits_(limits),
      shared_(prefixes),
      speculator_(std::move(drafters)),
      scheduler_(
          {.max_running = limits.max_batch,
           .prefill_step = limits.prefill_step,
           .target_itl = limits.target_itl}
      ) {
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

int BatchGenerator::tokens_beside() const {
  const bool answers = std::ranges::any_of(active_, [](const std::unique_ptr<Sequence>& each) {
    return each->generated > 0;
  });
  return scheduler_.prefill_tokens(answers);
}

void BatchGenerator::step() {
  try {
    end_late();
    const double now = RunningSequence::seconds(Sequence::Clock::now());
    admit(now);
    std::vector<Work> works = plan(now);
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
  int prompt_tokens = 0;
  for (const Work& work : works) {
    prompt_tokens += work.draft == nullptr ? work.count : 0;
  }
  scheduler_.observe(prompt_tokens, seconds.count());
  speculator_.finish_round(drafts, smooth ? seconds.count() : 0.0);
}

void BatchGenerator::draft_forced(const Sequence& sequence, Speculator::Draft& draft) {
  if (!sequence.request.mask || !sequence.drafting.takes_forced()) {
    return;
  }
  try {
    draft.force(sequence.request.mask->forced());
  } catch (const std::exception& error) {
    // It may end the answer when it is needed.
    spdlog::debug("a mask forced no tokens: {}", error.what());
  }
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
      draft_forced(sequence, *work.draft);
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
  if (waiting_.empty() || active_.size() >= static_cast<std::size_t>(limits_.max_batch)) {
    return;
  }
  const auto job_of = [](const std::unique_ptr<Sequence>& sequence) { return sequence->job(); };
  std::vector<Job> waiting;
  std::ranges::transform(waiting_, std::back_inserter(waiting), job_of);
  std::vector<Job> running;
  std::ranges::transform(active_, std::back_inserter(running), job_of);
  for (const std::uint64_t id : scheduler_.admit(waiting, running, now)) {
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
}

cache::SequenceCache BatchGenerator::new_cache(const SequenceRequest& request) const {
  return model_.make_cache({.max_kv_size = request.max_kv_size, .kv_bits = request.kv_bits});
}

void BatchGenerator::finish(Sequence& sequence, EndReason reason, std::exception_ptr error) {
  try {
    if (!sequence.ended && sequence.begun && reason != EndReason::kFailed) {
      shared_.keep(sequence);
    }
  } catch (...) {
    reason = EndReason::kFailed;
    error = std::current_exception();
  }
  sequence.end(reason, std::move(error));
}

std::vector<BatchGenerator::Work> BatchGenerator::plan(double now) {
  std::vector<Work> works;
  std::vector<Job> jobs;
  std::vector<std::size_t> prompts;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Sequence& sequence = *active_[i];
    if (sequence.generated > 0) {
      works.push_back({&sequence, sequence.pending(), true});
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
  const int count = std::min({pending, budget, shared_.most_rows(sequence)});
  works.push_back({&sequence, count, count == pending});
  return count;
}

bool BatchGenerator::run(std::span<Work> works) {
  try {
    run_pass(works);
    return true;
  } catch (...) {
    // The pass kept nothing. Halves of it run until the sequences that fail alone are found; those go
    // on without drafts, if they have some.
    const bool alone = works.size() == 1;
    if (alone && works.front().draft_tokens().empty()) {
      finish(*works.front().sequence, EndReason::kFailed, std::current_exception());
      return false;
    }
    if (alone) {
      works.front().draft->tokens.clear();
    }
  }
  const std::size_t half = works.size() / 2;
  if (half > 0) {
    run(works.first(half));
  }
  run(works.subspan(half));
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
    if (in_prompt || shared_.is_due(sequence)) {
      shared_.keep(sequence);
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
  const auto drafts = work.draft_tokens().subspan(
      std::min(static_cast<std::size_t>(row), work.draft_tokens().size())
  );
  token.drafted = !drafts.empty() && drafts.front() == token.id;
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
