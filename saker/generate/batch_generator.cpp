// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/batch_generator.h"

#include "saker/base/error.h"
#include "saker/generate/batch_work.h"
#include "saker/generate/draft_limits.h"
#include "saker/generate/request_check.h"
#include "saker/generate/speculation_check.h"
#include "saker/kernels/cpu/runtime/memory_account.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
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
      ),
      memory_(model, limits.memory, limits.prefill_step, prefixes) {
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
  memory_.check(request, model_.info());
  require(
      !request.speculation.check || kernels::on_cpu(),
      ErrorCode::kUnsupported,
      "check_speculation: compares bits, which only the CPU keeps"
  );
  auto sequence = std::make_unique<Sequence>(
      last_id_ + 1, std::move(request), std::move(listener), model_.info().vocab_size
  );
  sequence->drafting = speculator_.start(sequence->request);
  sequence->start_bytes = memory_.still_needs(
      *sequence, sequence->request.cache ? sequence->request.cache->offset() : 0
  );
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
  const kernels::AccountBinding counted(memory_.account());
  try {
    end_late();
    const double now = RunningSequence::seconds(Sequence::Clock::now());
    admit(now);
    std::vector<Work> works = plan(now);
    if (!works.empty()) {
      run_round(works, now);
    }
  } catch (...) {
    // The work around a pass failed, as without memory. A new try could fail forever: all end.
    for (const std::unique_ptr<Sequence>& sequence : active_) {
      finish(*sequence, EndReason::kFailed, std::current_exception());
    }
  }
  drop_ended();
}

void BatchGenerator::run_round(std::vector<Work>& works, double now) {
  fit(works, now);
  if (works.empty()) {
    return;
  }
  std::vector<Speculator::Draft> drafts = propose(works);
  fit_drafts(works);
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
  const kernels::AccountBinding uncounted(nullptr);
  std::vector<Speculator::Draft> drafts;
  drafts.reserve(works.size());
  for (Work& work : works) {
    Sequence& sequence = *work.sequence;
    if (work.answers) {
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
        .int8 = limits_.fast_prefill && sequence.cached() < sequence.prompt_size,
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
  std::function<void()> meanwhile;
  if (std::ranges::any_of(works, &Work::needs_mask)) {
    meanwhile = [&] { fill_masks(works); };
  }
  RowLogits logits = run_rows(model_, spans, &captured, meanwhile);
  std::vector<TokenChoices> choices = choose(works, logits);
  int first_row = 0;
  for (std::size_t i = 0; i < works.size(); ++i) {
    advance(works[i], choices[i], [&](std::int64_t rows) {
      transaction.commit(i, rows);
      keep_captured(works[i], captured, first_row, rows);
    });
    first_row += static_cast<int>(spans[i].tokens.size());
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
  const kernels::AccountBinding uncounted(nullptr);
  Speculator::keep(
      sequence.drafting,
      captured.of(layers, first, first + static_cast<int>(rows)),
      std::span<const std::int32_t>(sequence.context).subspan(end - count, count),
      !work.answers
  );
}

void BatchGenerator::fill_masks(std::span<const Work> works) const {
  for (const Work& work : works) {
    try {
      if (work.needs_mask()) {
        work.sequence->next_mask(static_cast<std::size_t>(model_.info().vocab_size));
      }
    } catch (const std::exception& error) {
      spdlog::debug("a mask was not filled: {}", error.what());  // Fails again when it is needed.
    }
  }
}

std::vector<TokenChoices> BatchGenerator::choose(std::span<Work> works, RowLogits& logits) const {
  std::vector<TokenChoices> choices(works.size());
  std::vector<std::size_t> wanting;
  std::vector<int> first_rows(works.size());
  int first = 0;
  for (std::size_t i = 0; i < works.size(); ++i) {
    Work& work = works[i];
    first_rows[i] = first;
    if (!work.wants_token) {
      continue;
    }
    wanting.push_back(i);
    try {
      if (work.check) {
        work.check->compare(logits, first);
        work.sequence->drafting.counts.compared += work.check->rows();
      }
    } catch (...) {
      choices[i].error = std::current_exception();
      wanting.pop_back();
    }
    first += 1 + static_cast<int>(work.draft_tokens().size());
  }
  const auto choose_of = [&](int index) {
    const std::size_t i = wanting[static_cast<std::size_t>(index)];
    const auto row_of = [&](int row) { return logits.row(first_rows[i] + row); };
    choices[i] = choose_tokens(*works[i].sequence, works[i].draft, row_of, model_.info());
  };
  const auto count = static_cast<int>(wanting.size());
  if (count > 1) {
    kernels::thread_pool().run(count, choose_of);
  } else if (count == 1) {
    choose_of(0);
  }
  return choices;
}

std::optional<EndReason> BatchGenerator::report(const Work& work, const TokenChoice& choice) {
  Sequence& sequence = *work.sequence;
  if (work.draft != nullptr) {
    ++work.draft->chosen;
    work.draft->accepted += choice.as_drafted ? 1 : 0;
  }
  if (!choice.token) {
    sequence.last_choice = -1;
    return choice.end;
  }
  sequence.last_choice = choice.token->id;
  sequence.last_token = Sequence::Clock::now();
  if (sequence.generated == 0) {
    sequence.first_token = sequence.last_token;
  }
  ++sequence.generated;
  const bool goes_on = !choice.in_answer || sequence.listener->on_token(*choice.token);
  return goes_on ? choice.end : EndReason::kStopped;
}

void BatchGenerator::advance(Work& work, TokenChoices& choices, const Commit& commit) {
  Sequence& sequence = *work.sequence;
  std::optional<EndReason> reason;
  std::exception_ptr error;
  const auto is_in_answer = [](const TokenChoice& choice) { return choice.in_answer; };
  std::size_t known = sequence.context.size() -
                      static_cast<std::size_t>(std::ranges::count_if(choices.chosen, is_in_answer));
  int looked_at = 0;
  try {
    if (sequence.generated == 0 && sequence.cached() > sequence.reported) {
      sequence.reported = sequence.cached();
      sequence.listener->on_prompt(sequence.reported, sequence.prompt_size);
    }
    for (const TokenChoice& choice : choices.chosen) {
      ++looked_at;
      known += choice.in_answer ? 1 : 0;
      reason = report(work, choice);
      if (reason) {
        break;
      }
    }
    if (!reason && choices.error) {
      ++looked_at;
      std::rethrow_exception(choices.error);
    }
  } catch (...) {
    reason = EndReason::kFailed;
    error = std::current_exception();
  }
  sequence.context.resize(known);  // The listener may have stopped it earlier.
  if (work.draft != nullptr) {
    work.draft->count();
  }
  try {
    // The last chosen token has no row: it did not run, or a different draft ran in its place.
    commit(work.count + std::max(looked_at - 1, 0));
    // Must come before the next pass drops rows that this sequence no longer needs.
    if (!work.answers || shared_.is_due(sequence)) {
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

void BatchGenerator::drop_ended() {
  std::erase_if(active_, [](const std::unique_ptr<Sequence>& sequence) { return sequence->ended; });
}

}  // namespace saker::generate
