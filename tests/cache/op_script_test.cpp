// SPDX-License-Identifier: Apache-2.0
// Random scripts of operations on a cache, beside a plain list of rows.
#include "saker/cache/kv.h"
#include "saker/cache/window.h"

#include "tests/cache/rows.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace saker::cache {
namespace {

// What a cache has to do, on the numbers of rows only.
struct RowList {
  std::vector<int> rows;
  std::optional<std::size_t> begun;
  int recent = 0;  // 0: no bound.
  int keep = 0;

  std::vector<int> committed() const {
    return {rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(begun.value_or(rows.size()))};
  }

  // The first `keep` and the last `count` of `all`.
  std::vector<int> bounded(const std::vector<int>& all, std::size_t count) const {
    if (recent == 0) {
      return all;
    }
    const auto first = std::min(static_cast<std::size_t>(keep), all.size());
    const auto last = std::max(first, all.size() - std::min(all.size(), count));
    std::vector<int> result(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
    result.insert(result.end(), all.begin() + static_cast<std::ptrdiff_t>(last), all.end());
    return result;
  }

  std::vector<int> view() const { return bounded(committed(), static_cast<std::size_t>(recent)); }
};

enum class Op { kUpdate, kPass, kBegin, kCommit, kRollBack, kTrim, kCopy };

class Script {
 public:
  Script(std::unique_ptr<LayerCache> cache, int recent, int keep) : cache_(std::move(cache)) {
    list_.recent = recent;
    list_.keep = keep;
  }

  void run(Op op) {
    switch (op) {
      case Op::kUpdate:
      case Op::kPass:
        write(op == Op::kPass, *rc::gen::inRange(1, 90));
        break;
      case Op::kBegin:
        if (!list_.begun) {
          cache_->begin();
          list_.begun = list_.rows.size();
        }
        break;
      case Op::kCommit:
      case Op::kRollBack:
        if (list_.begun) {
          finish(op == Op::kCommit);
        }
        break;
      case Op::kTrim:
        if (!list_.begun) {
          trim(*rc::gen::inRange(0, 40));
        }
        break;
      case Op::kCopy:
        fork();
        break;
    }
    check(*cache_, list_);
  }

 private:
  static void check(const LayerCache& cache, const RowList& list) {
    RC_ASSERT(cache.offset() == static_cast<std::int64_t>(list.rows.size()));
    const auto view = cache.view();
    RC_ASSERT(view.has_value() == !list.committed().empty());
    if (view) {
      RC_ASSERT(same_rows(*view, list.view()));
    }
  }

  void write(bool fused, int count) {
    std::vector<int> fresh(static_cast<std::size_t>(count));
    std::iota(fresh.begin(), fresh.end(), next_);
    next_ += count;
    list_.rows.insert(list_.rows.end(), fresh.begin(), fresh.end());
    const auto rows = numbered_rows(fresh);
    if (!fused) {
      const auto seen = cache_->update(rows.keys, rows.values);
      const auto count_seen =
          static_cast<std::size_t>(list_.recent) + static_cast<std::size_t>(count) - 1;
      RC_ASSERT(same_rows(seen, list_.bounded(list_.rows, count_seen)));
      return;
    }
    const auto span = cache_->append(0, count);
    auto keys = mx::contiguous(mx::squeeze(rows.keys, 0));
    auto values = mx::contiguous(mx::squeeze(rows.values, 0));
    mx::eval(keys, values);
    span.store->write(span.first_position, keys, values);
  }

  void finish(bool commit) {
    const auto written = list_.rows.size() - *list_.begun;
    const auto count = commit ? *rc::gen::inRange(std::size_t{0}, written + 1) : 0;
    commit ? cache_->commit(static_cast<std::int64_t>(count)) : cache_->roll_back();
    list_.rows.resize(*list_.begun + count);
    list_.begun.reset();
  }

  void trim(int count) {
    const auto possible =
        list_.recent == 0 || list_.rows.size() < static_cast<std::size_t>(list_.recent) +
                                                     static_cast<std::size_t>(list_.keep);
    const auto expected =
        possible ? std::min(static_cast<std::size_t>(count), list_.rows.size()) : 0;
    RC_ASSERT(cache_->can_trim(count) == (possible || count == 0));
    RC_ASSERT(cache_->trim(count) == static_cast<std::int64_t>(expected));
    list_.rows.resize(list_.rows.size() - expected);
  }

  // Goes on with the copy; what happens to it must not reach the original.
  void fork() {
    auto copy = cache_->copy();
    originals_.emplace_back(std::move(cache_), list_);
    cache_ = std::move(copy);
    list_.rows = list_.committed();
    list_.begun.reset();
    for (const auto& [cache, list] : originals_) {
      check(*cache, list);
    }
  }

  std::unique_ptr<LayerCache> cache_;
  RowList list_;
  int next_ = 0;
  std::vector<std::pair<std::unique_ptr<LayerCache>, RowList>> originals_;
};

void run_script(Script script) {
  const auto length = *rc::gen::inRange(1, 30);
  for (int i = 0; i < length; ++i) {
    script.run(*rc::gen::element(
        Op::kUpdate,
        Op::kPass,
        Op::kPass,
        Op::kBegin,
        Op::kCommit,
        Op::kRollBack,
        Op::kTrim,
        Op::kCopy
    ));
  }
}

RC_GTEST_PROP(OpScript, KVCacheKeepsAllRows, ()) {
  run_script({std::make_unique<KVCache>(test_shape()), 0, 0});
}

RC_GTEST_PROP(OpScript, RotatingKVCacheKeepsTheBound, ()) {
  const auto keep = *rc::gen::inRange(0, 6);
  const auto recent = *rc::gen::inRange(1, 150);
  run_script({std::make_unique<WindowCache>(test_shape(), recent + keep, keep), recent, keep});
}

}  // namespace
}  // namespace saker::cache
