// SPDX-License-Identifier: Apache-2.0
// Jobs become sequences of the tokens that have to run, and these a forest of shared prefixes. A
// branch of the forest has one cache per view (base, or adapter with strength) of its jobs. If
// views have no layers in common, each has its own forest, so its caches can go before the next
// one's come. Branches run depth first, so few caches are alive. Each pass takes as many of their
// tokens as it may.
#include "saker/score/token_scores.h"

#include "saker/base/error.h"
#include "saker/kernels/layout/kv_block.h"
#include "saker/models/token_ids.h"
#include "saker/score/prefix_forest.h"
#include "saker/score/row_reader.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace saker::score {

namespace {

// Below the size that glibc returns to the system at once: fetching the pages again for each chunk
// took 10 % of the time.
constexpr std::size_t kLogitBytes = std::size_t{24} << 20;
// Tokens that a shared prefix must save before others wait for it: about the cost of a pass.
constexpr int kMinSavedRows = 64;
using kernels::kPageRows;  // A cache grows by this many rows.

// Number of tokens to run: none after the last one whose logits are read.
std::size_t rows_to_run(const ScoreJob& job) {
  if (job.runs_last()) {
    return job.tokens.size();
  }
  const bool scores = std::max(job.first_scored, 1) < static_cast<int>(job.tokens.size());
  return scores ? job.tokens.size() - 1 : 0;
}

// A branch's jobs with an equal adapter and strength.
struct BranchView {
  nn::AdapterUse adapter;
  std::vector<int> jobs;
  std::optional<cache::SequenceCache> cache = {};
};

struct Branch {
  PrefixSegment segment;
  std::vector<BranchView> views = {};
  std::optional<cache::SequenceCache> trunk = {};  // Cache of the layers that all views share.
  std::vector<int> children = {};
  std::size_t children_to_start = 0;
  int done = 0;  // Tokens run so far, including those of parents.
  std::size_t bytes = 0;

  int left() const { return segment.end - done; }
};

class BatchScorer {
 public:
  BatchScorer(
      const models::Model& model, std::span<const ScoreJob> jobs, const ScoreOptions& options
  )
      : model_(model), jobs_(jobs), options_(options), reader_(jobs) {
    const int shared_layers = count_shared_layers();
    for (const std::vector<int>& numbers : jobs_by_forest(shared_layers > 0)) {
      grow_forest(numbers);
    }
    // The longest is taken first.
    std::ranges::stable_sort(ready_, {}, [&](int index) { return branch(index).segment.end; });
    const bool several =
        std::ranges::any_of(branches_, [](const Branch& one) { return one.views.size() > 1; });
    fork_layer_ = several ? shared_layers : 0;
  }

  std::vector<TokenScores> run() {
    for (std::vector<Work> works = plan(); !works.empty(); works = plan()) {
      run_pass(works);
      for (const Work& work : works) {
        finish(work);
      }
    }
    return reader_.finish();
  }

 private:
  // The next tokens of a branch, for each of its views.
  struct Work {
    int branch;
    int count;
  };

  struct Pass {
    std::vector<std::int32_t> ids;
    std::vector<nn::Span> spans;
    nn::Fork fork;
    std::vector<WantedRow> wanted;
    std::int32_t hidden_rows = 0;
  };

  Branch& branch(int index) { return branches_[static_cast<std::size_t>(index)]; }

  const ScoreJob& job(int index) const { return jobs_[static_cast<std::size_t>(index)]; }

  // Number of layers below the first one that an adapter of these jobs changes.
  int count_shared_layers() const {
    int layer = model_.info().deepest_branch_layer;
    for (const ScoreJob& one : jobs_) {
      if (!one.adapter.is_base()) {
        layer = std::min(layer, one.adapter.adapter->first_layer().value_or(layer));
      }
    }
    return std::max(layer, 0);
  }

  std::vector<std::vector<int>> jobs_by_forest(bool together) const {
    std::map<std::string, std::vector<int>> forests;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (rows_to_run(jobs_[i]) > 0) {
        const std::string key = together ? "" : nn::adapter_identity(jobs_[i].adapter);
        forests[key].push_back(static_cast<int>(i));
      }
    }
    std::vector<std::vector<int>> result;
    result.reserve(forests.size());
    for (auto& [key, numbers] : forests) {
      result.push_back(std::move(numbers));
    }
    return result;
  }

  void grow_forest(const std::vector<int>& numbers) {
    std::vector<TokenSpan> sequences;
    sequences.reserve(numbers.size());
    for (const int index : numbers) {
      sequences.push_back(TokenSpan(job(index).tokens).first(rows_to_run(job(index))));
    }
    PrefixForest forest = make_prefix_forest(sequences, kMinSavedRows);
    for (int& place : forest.order) {
      place = numbers[static_cast<std::size_t>(place)];
    }
    const auto first = static_cast<int>(branches_.size());
    for (const PrefixSegment& segment : forest.segments) {
      const int index = static_cast<int>(branches_.size());
      branches_.push_back({.segment = segment, .views = views_of(segment, forest.order)});
      Branch& one = branches_.back();
      one.done = segment.begin;
      if (segment.parent < 0) {
        ready_.push_back(index);
      } else {
        one.segment.parent += first;
        branch(one.segment.parent).children.push_back(index);
        ++branch(one.segment.parent).children_to_start;
      }
    }
  }

  std::vector<BranchView> views_of(const PrefixSegment& segment, const std::vector<int>& order)
      const {
    std::map<std::string, BranchView> views;
    for (int place = segment.first_sequence; place < segment.last_sequence; ++place) {
      const int index = order[static_cast<std::size_t>(place)];
      BranchView& view = views[nn::adapter_identity(job(index).adapter)];
      view.adapter = job(index).adapter;
      view.jobs.push_back(index);
    }
    std::vector<BranchView> result;
    result.reserve(views.size());
    for (auto& [identity, view] : views) {
      result.push_back(std::move(view));
    }
    return result;
  }

  std::size_t cache_bytes(const Branch& one) const {
    const std::int64_t first = one.segment.begin / kPageRows * kPageRows;
    const std::int64_t last = (one.segment.end + kPageRows - 1) / kPageRows * kPageRows;
    return one.views.size() * (model_.cache_bytes(last, options_.kv_bits) -
                               model_.cache_bytes(first, options_.kv_bits));
  }

  std::vector<Work> plan() {
    std::vector<Work> works;
    const bool is_over = ready_.empty() && active_.empty();
    int budget = is_over || !options_.before_pass ? options_.prefill_step : options_.before_pass();
    const auto add = [&](int index) {
      const int views = static_cast<int>(branch(index).views.size());
      if (budget < views && !works.empty()) {
        return false;
      }
      const int count = std::min(branch(index).left(), std::max(budget / views, 1));
      budget -= count * views;
      works.push_back({index, count});
      return true;
    };
    for (const int index : active_) {
      if (!add(index)) {
        return works;
      }
    }
    while (!ready_.empty() && budget > 0) {
      const int index = ready_.back();
      const std::size_t bytes = cache_bytes(branch(index));
      if (!works.empty() && live_bytes_ + bytes > options_.cache_bytes) {
        break;
      }
      if (!add(index)) {
        break;
      }
      ready_.pop_back();
      start(index, bytes);
    }
    return works;
  }

  void start(int index, std::size_t bytes) {
    Branch& one = branch(index);
    one.bytes = bytes;
    live_bytes_ += bytes;
    active_.push_back(index);
    Branch* parent = one.segment.parent < 0 ? nullptr : &branch(one.segment.parent);
    const bool last = parent != nullptr && --parent->children_to_start == 0;
    if (fork_layer_ > 0) {
      one.trunk = take_cache(parent == nullptr ? nullptr : &parent->trunk, last);
    }
    for (BranchView& view : one.views) {
      std::optional<cache::SequenceCache>* source = nullptr;
      if (parent != nullptr) {
        source = &same_view(*parent, view).cache;
      }
      view.cache = take_cache(source, last);
    }
    if (last) {
      one.bytes += parent->bytes;
      parent->bytes = 0;
      drop_caches(*parent);
    }
  }

  static BranchView& same_view(Branch& parent, const BranchView& view) {
    const std::string identity = nn::adapter_identity(view.adapter);
    return *std::ranges::find_if(parent.views, [&](const BranchView& other) {
      return nn::adapter_identity(other.adapter) == identity;
    });
  }

  // Continues the source's rows. The last user takes them, others get a copy.
  cache::SequenceCache take_cache(std::optional<cache::SequenceCache>* source, bool last) const {
    if (source == nullptr) {
      return model_.make_cache({.kv_bits = options_.kv_bits});
    }
    return last ? std::move(**source) : (*source)->copy();
  }

  static void drop_caches(Branch& one) {
    one.trunk.reset();
    for (BranchView& view : one.views) {
      view.cache.reset();
    }
  }

  void finish(const Work& work) {
    Branch& one = branch(work.branch);
    one.done += work.count;
    if (one.left() > 0) {
      return;
    }
    std::erase(active_, work.branch);
    ready_.insert(ready_.end(), one.children.begin(), one.children.end());
    if (one.children.empty()) {
      live_bytes_ -= one.bytes;
      drop_caches(one);
    }
  }

  void add_to(Pass& pass, const Work& work) {
    Branch& one = branch(work.branch);
    const TokenSpan tokens = TokenSpan(job(one.views.front().jobs.front()).tokens)
                                 .subspan(static_cast<std::size_t>(one.done))
                                 .first(static_cast<std::size_t>(work.count));
    const auto first = static_cast<std::int32_t>(pass.ids.size());
    if (fork_layer_ > 0) {
      pass.ids.insert(pass.ids.end(), tokens.begin(), tokens.end());
      pass.spans.push_back({&*one.trunk, work.count});
    }
    for (BranchView& view : one.views) {
      const nn::Span span{&*view.cache, work.count, view.adapter};
      if (fork_layer_ > 0) {
        pass.fork.spans.push_back(span);
      } else {
        pass.spans.push_back(span);
        pass.ids.insert(pass.ids.end(), tokens.begin(), tokens.end());
      }
      for (int i = 0; i < work.count; ++i) {
        if (fork_layer_ > 0) {
          pass.fork.rows.push_back(first + i);
        }
        want(pass, view, one.done + i);
      }
    }
  }

  // Counts the pass's next hidden state, the one after token `row` of this view.
  void want(Pass& pass, const BranchView& view, int row) const {
    if (std::ranges::any_of(view.jobs, [&](int index) { return reader_.wants(index, row); })) {
      pass.wanted.push_back({pass.hidden_rows, row, view.jobs});
    }
    ++pass.hidden_rows;
  }

  void run_pass(const std::vector<Work>& works) {
    Pass pass;
    for (const Work& work : works) {
      add_to(pass, work);
    }
    std::optional<nn::Fork> fork;
    if (fork_layer_ > 0) {
      pass.fork.layer = fork_layer_;
      fork = std::move(pass.fork);
    }
    nn::ForwardContext context(std::move(pass.spans), std::move(fork));
    const int count = static_cast<int>(pass.ids.size());
    const mx::array hidden = model_.forward(mx::array(pass.ids.data(), mx::Shape{count}), context);
    mx::eval(hidden);
    const auto step = static_cast<std::size_t>(logit_rows(model_.info().vocab_size));
    for (std::size_t first = 0; first < pass.wanted.size(); first += step) {
      const std::size_t rows = std::min(step, pass.wanted.size() - first);
      read(std::span(pass.wanted).subspan(first, rows), hidden, context.adapters());
    }
  }

  void read(
      std::span<const WantedRow> wanted, const mx::array& hidden, const nn::RowContext& adapters
  ) {
    std::vector<std::int32_t> rows;
    rows.reserve(wanted.size());
    for (const WantedRow& row : wanted) {
      rows.push_back(row.pass_row);
    }
    const mx::array indices(rows.data(), {static_cast<int>(rows.size())}, mx::int32);
    mx::array logits = model_.unembed(mx::take(hidden, indices, 0), adapters.select(rows));
    logits = mx::contiguous(mx::astype(logits, mx::float32));
    mx::eval(logits);
    reader_.read(wanted, {logits.data<float>(), logits.size()});
  }

  const models::Model& model_;
  std::span<const ScoreJob> jobs_;
  ScoreOptions options_;
  RowReader reader_;
  std::vector<Branch> branches_;
  int fork_layer_ = 0;       // First layer that not all views share; 0: none is shared.
  std::vector<int> ready_;   // Parents done, not started; the last is next.
  std::vector<int> active_;  // Started and not done.
  std::size_t live_bytes_ = 0;
};

}  // namespace

std::int64_t most_tokens(const models::ModelInfo& info, const ScoreJob& job) {
  return info.context_length <= 0 ? std::numeric_limits<std::int64_t>::max()
                                  : info.context_length + (job.runs_last() ? 0 : 1);
}

void check_job(const models::ModelInfo& info, const ScoreJob& job) {
  models::check_predicts_tokens(info);
  require(
      !job.tokens.empty(),
      ErrorCode::kInvalidArgument,
      "there is nothing to score: expected at least one token"
  );
  require(
      static_cast<std::int64_t>(job.tokens.size()) <= most_tokens(info, job),
      ErrorCode::kInvalidArgument,
      "the sequence has {} tokens, expected at most {}: the model's context{}",
      job.tokens.size(),
      most_tokens(info, job),
      job.runs_last() ? "" : " and a last token that is only scored"
  );
  models::check_token_ids(info, job.tokens);
  require(
      job.top_k >= 0, ErrorCode::kInvalidArgument, "top_k: got {}, expected 0 or more", job.top_k
  );
}

std::vector<TokenScores> score_batch(
    const models::Model& model, std::span<const ScoreJob> jobs, const ScoreOptions& options
) {
  require(
      options.prefill_step >= 1,
      ErrorCode::kInvalidArgument,
      "prefill_step: got {}, expected 1 or more",
      options.prefill_step
  );
  for (const ScoreJob& job : jobs) {
    check_job(model.info(), job);
  }
  return BatchScorer(model, jobs, options).run();
}

int logit_rows(int vocab_size) {
  const std::size_t row = static_cast<std::size_t>(std::max(vocab_size, 1)) * sizeof(float);
  constexpr std::size_t kMax = 4096;
  return static_cast<int>(std::clamp(kLogitBytes / row, std::size_t{1}, kMax));
}

}  // namespace saker::score
