// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/batch_generator.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"
#include "saker/models/token_ids.h"
#include "saker/sample/sampler.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>

namespace saker::generate {

namespace {

using Clock = std::chrono::steady_clock;

// Tokens that are rather run twice than waited for.
constexpr int kWorthWaiting = 32;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

struct BatchGenerator::Sequence {
  std::uint64_t id;
  SequenceRequest request;
  std::unique_ptr<Listener> listener;
  sample::Sampler sampler;
  std::vector<std::int32_t> context;  // Prompt and answer.
  int prompt_size;
  int generated = 0;
  int cached_tokens = 0;
  int kept = 0;  // Rows of the context that the prefix cache was given.
  cache::PrefixCache::Pin pin;
  bool begun = false;  // Rows were looked up, the prompt runs.
  bool ended = false;
  Clock::time_point added = Clock::now();
  Clock::time_point started = added;
  Clock::time_point first_token = added;
  Clock::time_point last_token = added;

  Sequence(
      std::uint64_t sequence_id,
      SequenceRequest wanted,
      std::unique_ptr<Listener> events,
      int vocab_size
  )
      : id(sequence_id),
        request(std::move(wanted)),
        listener(std::move(events)),
        sampler(request.sampling, vocab_size, request.xtc_exempt),
        context(std::move(request.prompt)),
        prompt_size(static_cast<int>(context.size())) {}

  // Rows of the context that are in the cache.
  int cached() const { return static_cast<int>(request.cache->offset() - request.unknown_rows); }

  // Rows to run before the next token can be chosen: 1 while generating.
  int pending() const { return static_cast<int>(context.size()) - cached(); }

  void end(EndReason reason, std::exception_ptr error = nullptr) {
    if (ended) {
      return;
    }
    ended = true;
    listener->on_end({
        .reason = reason,
        .error = std::move(error),
        .context = std::move(context),
        .cache = std::move(request.cache),
        .cached_tokens = cached_tokens,
        .timing =
            {.queue_s = seconds(added, started),
             .prompt_s = generated > 0 ? seconds(started, first_token) : 0.0,
             .generation_s = seconds(first_token, last_token)},
    });
  }
};

// The rows [offset, offset + count) of one sequence in one pass.
struct BatchGenerator::Work {
  Sequence* sequence;
  int count;
  bool wants_token;  // The rows end at the sequence's last token.
};

BatchGenerator::BatchGenerator(
    const models::Model& model, const BatchLimits& limits, cache::PrefixCache* prefixes
)
    : model_(model), limits_(limits), prefixes_(prefixes) {
  require(
      limits.prefill_step >= 1,
      ErrorCode::kInvalidArgument,
      "prefill_step: got {}, expected 1 or more",
      limits.prefill_step
  );
  require(
      limits.max_batch >= 1,
      ErrorCode::kInvalidArgument,
      "max_batch: got {}, expected 1 or more",
      limits.max_batch
  );
}

BatchGenerator::~BatchGenerator() = default;

void BatchGenerator::check(const SequenceRequest& request) const {
  const models::ModelInfo& info = model_.info();
  require(
      !request.prompt.empty(),
      ErrorCode::kInvalidArgument,
      "the prompt is empty: expected at least one token"
  );
  require(
      info.context_length <= 0 ||
          request.unknown_rows <=
              info.context_length - static_cast<std::int64_t>(request.prompt.size()),
      ErrorCode::kInvalidArgument,
      "the prompt has {} tokens, but the model's context is {} tokens long",
      request.unknown_rows + static_cast<std::int64_t>(request.prompt.size()),
      info.context_length
  );
  models::check_token_ids(info, request.prompt);
  require(
      request.max_tokens >= 1,
      ErrorCode::kInvalidArgument,
      "max_tokens: got {}, expected 1 or more",
      request.max_tokens
  );
  require(
      request.logprobs <= info.vocab_size,
      ErrorCode::kInvalidArgument,
      "logprobs: got {}, expected at most the vocabulary's {}",
      request.logprobs,
      info.vocab_size
  );
  require(
      request.max_kv_size >= 0,
      ErrorCode::kInvalidArgument,
      "max_kv_size: got {}, expected 0 or more",
      request.max_kv_size
  );
  require(
      kernels::is_kv_bits(request.kv_bits),
      ErrorCode::kInvalidArgument,
      "kv_bits: got {}, expected 16, 8 or 4",
      request.kv_bits
  );
}

std::uint64_t BatchGenerator::add(SequenceRequest request, std::unique_ptr<Listener> listener) {
  check(request);
  waiting_.push_back(std::make_unique<Sequence>(
      last_id_ + 1, std::move(request), std::move(listener), model_.info().vocab_size
  ));
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
  admit();
  const std::vector<Work> works = plan();
  if (!works.empty()) {
    run(works);
  }
  drop_ended();
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
        const auto shared = static_cast<int>(same.in1 - prompt.begin());
        return shared - known >= kWorthWaiting && earlier->cached() < shared;
      }
  );
}

void BatchGenerator::start(Sequence& sequence) {
  sequence.begun = true;
  sequence.started = Clock::now();
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
  if (!sequence.ended && sequence.begun && reason != EndReason::kFailed) {
    keep_rows(sequence);
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
    const int count = std::min(pending, budget);
    budget -= count;
    works.push_back({&sequence, count, count == pending});
  }
  return works;
}

void BatchGenerator::run(const std::vector<Work>& works) {
  try {
    run_pass(works);
  } catch (...) {
    if (works.size() == 1) {
      finish(*works.front().sequence, EndReason::kFailed, std::current_exception());
      return;
    }
    // Nothing of the pass was kept: the sequences that can run alone go on.
    for (const Work& work : works) {
      run({work});
    }
  }
}

void BatchGenerator::run_pass(const std::vector<Work>& works) {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> token_rows;
  std::vector<nn::Span> spans;
  for (const Work& work : works) {
    const auto first = work.sequence->context.begin() + work.sequence->cached();
    ids.insert(ids.end(), first, first + work.count);
    spans.push_back({&*work.sequence->request.cache, work.count, work.sequence->request.adapter});
    if (work.wants_token) {
      token_rows.push_back(static_cast<std::int32_t>(ids.size()) - 1);
    }
  }
  std::size_t begun = 0;
  mx::array result = mx::array(0.0F);
  try {
    for (const nn::Span& span : spans) {
      span.cache->begin();
      ++begun;
    }
    nn::ForwardContext context(spans);
    const int row_count = static_cast<int>(ids.size());
    result = model_.forward(mx::array(ids.data(), {row_count}, mx::int32), context);
    if (!token_rows.empty()) {
      const int wanted = static_cast<int>(token_rows.size());
      if (wanted < row_count) {
        result = mx::take(result, mx::array(token_rows.data(), {wanted}, mx::int32), 0);
      }
      result = mx::contiguous(
          mx::astype(model_.unembed(result, context.adapters().select(token_rows)), mx::float32)
      );
    }
    mx::eval(result);
  } catch (...) {
    for (std::size_t i = 0; i < begun; ++i) {
      spans[i].cache->roll_back();
    }
    throw;
  }
  for (std::size_t i = 0; i < works.size(); ++i) {
    spans[i].cache->commit(works[i].count);
  }
  float* logits = token_rows.empty() ? nullptr : result.data<float>();
  for (const Work& work : works) {
    advance(work, logits);
    if (work.wants_token) {
      logits += model_.info().vocab_size;
    }
  }
}

void BatchGenerator::advance(const Work& work, float* logits) {
  Sequence& sequence = *work.sequence;
  try {
    // Before the next pass drops rows that no later one of this sequence needs.
    if (prefixes_ != nullptr &&
        (sequence.generated == 0 || prefixes_->is_due(sequence.kept, sequence.cached()))) {
      keep_rows(sequence);
    }
    if (sequence.generated == 0) {
      sequence.listener->on_prompt(sequence.cached(), sequence.prompt_size);
    }
    if (work.wants_token) {
      choose_token(sequence, {logits, static_cast<std::size_t>(model_.info().vocab_size)});
    }
  } catch (...) {
    finish(sequence, EndReason::kFailed, std::current_exception());
  }
}

void BatchGenerator::choose_token(Sequence& sequence, std::span<float> logits) {
  const SequenceRequest& request = sequence.request;
  GeneratedToken token;
  if (request.logprobs < 0) {
    token.id = sequence.sampler.choose(logits, sequence.context, request.cache->offset());
  } else {
    row_.assign(logits.begin(), logits.end());
    token.id = sequence.sampler.choose(row_, sequence.context, request.cache->offset());
    const double log_sum = log_sum_exp(logits);
    token.logprob = log_prob(logits, token.id, log_sum);
    token.top = top_tokens(logits, request.logprobs, log_sum);
  }
  sequence.last_token = Clock::now();
  if (sequence.generated == 0) {
    sequence.first_token = sequence.last_token;
  }
  ++sequence.generated;
  if (std::ranges::find(request.stop_tokens, token.id) != request.stop_tokens.end()) {
    finish(sequence, EndReason::kStopToken);
    return;
  }
  sequence.context.push_back(token.id);
  const std::int64_t limit = model_.info().context_length;
  if (!sequence.listener->on_token(token)) {
    finish(sequence, EndReason::kStopped);
  } else if (sequence.generated == request.max_tokens ||
             (limit > 0 && request.cache->offset() >= limit)) {
    finish(sequence, EndReason::kLength);
  }
}

void BatchGenerator::drop_ended() {
  std::erase_if(active_, [](const std::unique_ptr<Sequence>& sequence) { return sequence->ended; });
}

}  // namespace saker::generate
