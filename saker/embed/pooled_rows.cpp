// SPDX-License-Identifier: Apache-2.0
#include "saker/embed/pooled_rows.h"

#include "saker/base/error.h"
#include "saker/cache/sequence_cache.h"
#include "saker/models/token_ids.h"
#include "saker/nn/forward_context.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
#include <utility>

namespace saker::embed {
namespace {

using models::Pooling;

class RowPool {
 public:
  RowPool(
      const models::Model& model, std::span<const TokenSpan> sequences, const PoolOptions& options
  )
      : model_(model),
        sequences_(sequences),
        options_(options),
        hidden_(static_cast<std::size_t>(model.info().hidden_size)),
        rows_(sequences.size() * hidden_),
        sums_(options.pooling == Pooling::kMean ? hidden_ : 0) {}

  std::vector<float> run() {
    while (next_ < sequences_.size()) {
      run_pass(plan());
    }
    return std::move(rows_);
  }

 private:
  // The next tokens of a sequence.
  struct Work {
    std::size_t sequence;
    int first;
    int count;
  };

  int length(std::size_t sequence) const { return static_cast<int>(sequences_[sequence].size()); }

  // The works of the next pass: in order, as many as fit. Only the last one may be continued.
  std::vector<Work> plan() {
    const bool whole = model_.info().bidirectional;
    std::vector<Work> works;
    int budget = options_.before_pass ? std::max(options_.before_pass(), 1) : options_.prefill_step;
    while (next_ < sequences_.size() && (budget > 0 || works.empty())) {
      const int left = length(next_) - done_;
      if (whole && left > budget && !works.empty()) {
        break;
      }
      const int count = whole ? left : std::min(left, budget);
      works.push_back({next_, done_, count});
      budget -= count;
      done_ += count;
      if (done_ == length(next_)) {
        ++next_;
        done_ = 0;
      }
    }
    return works;
  }

  void run_pass(const std::vector<Work>& works) {
    std::vector<std::int32_t> ids;
    std::vector<nn::Span> spans;
    std::vector<std::int32_t> types;
    for (const Work& work : works) {
      const TokenSpan tokens = sequences_[work.sequence].subspan(
          static_cast<std::size_t>(work.first), static_cast<std::size_t>(work.count)
      );
      ids.insert(ids.end(), tokens.begin(), tokens.end());
      for (int i = 0; i < work.count && !options_.second_types.empty(); ++i) {
        types.push_back(work.first + i >= options_.second_types[work.sequence] ? 1 : 0);
      }
      if (work.first == 0) {
        caches_.push_back(model_.make_cache({}));
      }
      spans.push_back({&caches_.back(), work.count, options_.adapter});
    }
    nn::ForwardContext context(std::move(spans));
    context.token_types = std::move(types);
    const int count = static_cast<int>(ids.size());
    const mx::array hidden = model_.forward(mx::array(ids.data(), mx::Shape{count}), context);
    read(works, hidden);
    // The last sequence's rows stay while some of its tokens are to come.
    const auto kept = done_ > 0 ? std::prev(caches_.end()) : caches_.end();
    caches_.erase(caches_.begin(), kept);
  }

  void read(const std::vector<Work>& works, const mx::array& hidden) {
    std::vector<std::int32_t> wanted;
    std::int32_t first = 0;
    for (const Work& work : works) {
      if (options_.pooling == Pooling::kCls) {
        wanted.push_back(first);
      } else if (options_.pooling == Pooling::kLast) {
        wanted.push_back(first + work.count - 1);
      }
      first += work.count;
    }
    mx::array rows = hidden;
    if (!wanted.empty()) {
      const mx::array indices(wanted.data(), {static_cast<int>(wanted.size())}, mx::int32);
      rows = mx::take(hidden, indices, 0);
    }
    rows = mx::contiguous(mx::astype(rows, mx::float32));
    mx::eval(rows);
    const float* from = rows.data<float>();
    for (const Work& work : works) {
      const int count = wanted.empty() ? work.count : 1;
      pool(work, from);
      from += static_cast<std::size_t>(count) * hidden_;
    }
  }

  void pool(const Work& work, const float* from) {
    float* const to = rows_.data() + work.sequence * hidden_;
    if (options_.pooling == Pooling::kMean) {
      add_to_mean(work, from, to);
    } else if (options_.pooling == Pooling::kLast || work.first == 0) {
      std::copy_n(from, hidden_, to);
    }
  }

  // Adds token by token, so that the bits do not depend on passes.
  void add_to_mean(const Work& work, const float* from, float* to) {
    if (work.first == 0) {
      std::ranges::fill(sums_, 0.0);
    }
    for (int row = 0; row < work.count; ++row, from += hidden_) {
      for (std::size_t i = 0; i < hidden_; ++i) {
        sums_[i] += static_cast<double>(from[i]);
      }
    }
    const int all = length(work.sequence);
    if (work.first + work.count == all) {
      std::ranges::transform(sums_, to, [&](double sum) { return static_cast<float>(sum / all); });
    }
  }

  const models::Model& model_;
  std::span<const TokenSpan> sequences_;
  PoolOptions options_;
  std::size_t hidden_;
  std::vector<float> rows_;
  std::vector<double> sums_;  // Of the sequence whose rows are read; empty without a mean.
  std::size_t next_ = 0;      // The next sequence to run, and how many of its tokens have run.
  int done_ = 0;
  std::list<cache::SequenceCache> caches_;  // Of the pass's sequences; they keep their places.
};

}  // namespace

void check_tokens(const models::ModelInfo& info, TokenSpan tokens) {
  require(
      !tokens.empty(), ErrorCode::kInvalidArgument, "the text has no tokens: expected at least one"
  );
  require(
      info.context_length <= 0 || static_cast<std::int64_t>(tokens.size()) <= info.context_length,
      ErrorCode::kInvalidArgument,
      "the text has {} tokens, expected at most {}: the model's context",
      tokens.size(),
      info.context_length
  );
  models::check_token_ids(info, tokens);
}

std::vector<float> pool_rows(
    const models::Model& model, std::span<const TokenSpan> sequences, const PoolOptions& options
) {
  require(
      options.prefill_step >= 1,
      ErrorCode::kInvalidArgument,
      "prefill_step: got {}, expected 1 or more",
      options.prefill_step
  );
  require(
      options.second_types.empty() || options.second_types.size() == sequences.size(),
      ErrorCode::kInvalidArgument,
      "second_types: got {}, expected one for each of {} sequences",
      options.second_types.size(),
      sequences.size()
  );
  for (const TokenSpan tokens : sequences) {
    check_tokens(model.info(), tokens);
  }
  return RowPool(model, sequences, options).run();
}

}  // namespace saker::embed
