// SPDX-License-Identifier: Apache-2.0
// What drafters with rows of their own run, pass by pass: a target of eight tokens where each is
// followed by the next number, and drafts whose weights are set so that they know that.
#include "saker/generate/batch_generator.h"
#include "saker/generate/drafters/dflash.h"
#include "saker/generate/drafters/draft_model.h"
#include "saker/generate/drafters/mtp.h"

#include "tests/generate/draft_runs.h"
#include "tests/models/random_dflash.h"
#include "tests/models/random_mtp.h"
#include "tests/support/fake_model.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

constexpr int kTokens = 12;
constexpr std::int32_t kStop = 7;

// What some tokens are taken for, which makes those after them wrong.
using Said = std::map<std::int32_t, std::int32_t>;

struct Rows {
  std::int64_t first;  // Position.
  Ids tokens;

  bool operator==(const Rows&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Rows& rows) {
  return out << rows.first << ": " << ::testing::PrintToString(rows.tokens);
}

Ids ids_of(const mx::array& ids) {
  mx::array dense = mx::contiguous(mx::astype(ids, mx::int32));
  mx::eval(dense);
  return {dense.data<std::int32_t>(), dense.data<std::int32_t>() + dense.size()};
}

// A token's row is 1 at its number. After a token comes the next one, after the last itself.
class Counting final : public saker::testing::FakeModel {
 public:
  explicit Counting(Said said = {}) : FakeModel({.vocab_size = kTokens}), said_(std::move(said)) {
    info_ = FakeModel::info();
    info_.hidden_size = kTokens;
  }

  const models::ModelInfo& info() const override { return info_; }

  mx::array forward(const mx::array& ids, nn::ForwardContext& context) const override {
    ran.push_back({context.spans().front().cache->offset(), ids_of(ids)});
    FakeModel::forward(ids, context);
    Ids taken = ran.back().tokens;
    for (std::int32_t& token : taken) {
      const auto found = said_.find(token);
      token = found == said_.end() ? token : found->second;
    }
    const mx::array rows = one_hot(taken);
    for (const int layer : context.captured_layers) {
      context.captured.insert_or_assign(layer, rows);
    }
    return rows;
  }

  mx::array embed(const mx::array& ids) const override {
    embedded.push_back(ids_of(ids));
    return one_hot(embedded.back());
  }

  mx::array unembed(const mx::array& hidden, const nn::RowContext& /*adapters*/) const override {
    const auto from = mx::reshape(mx::arange(kTokens), {kTokens, 1});
    const auto next = mx::minimum(mx::add(from, mx::array(1)), mx::array(kTokens - 1));
    const auto follows = mx::equal(next, mx::reshape(mx::arange(kTokens), {1, kTokens}));
    return mx::matmul(mx::astype(hidden, mx::float32), mx::astype(follows, mx::float32));
  }

  mutable std::vector<Rows> ran;
  mutable std::vector<Ids> embedded;  // What drafts borrowed rows for.

 private:
  static mx::array one_hot(const Ids& ids) {
    const int count = static_cast<int>(ids.size());
    const auto column = mx::array(ids.data(), {count, 1}, mx::int32);
    const auto numbers = mx::reshape(mx::arange(kTokens), {1, kTokens});
    return mx::astype(mx::equal(column, numbers), mx::float32);
  }

  Said said_;
  models::ModelInfo info_;
};

// What a drafter is given to keep: the tokens of target rows and those after them.
struct Kept {
  Ids rows;
  Ids next;
  bool of_prompt;

  bool operator==(const Kept&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Kept& kept) {
  return out << ::testing::PrintToString(kept.rows) << " before "
             << ::testing::PrintToString(kept.next) << (kept.of_prompt ? " of the prompt" : "");
}

// A drafter that is not asked in its first rounds, as where drafting does not pay.
class Parked final : public Drafter {
 public:
  Parked(std::unique_ptr<Drafter> drafter, int rounds, std::vector<Kept>& log)
      : drafter_(std::move(drafter)), rounds_(rounds), log_(log) {}

  int max_depth() const override { return drafter_->max_depth(); }

  std::span<const int> captured_layers() const override { return drafter_->captured_layers(); }

  std::unique_ptr<DraftState> start(const SequenceRequest& request) override {
    return std::make_unique<State>(drafter_->start(request), log_);
  }

  void propose(std::span<Proposal> proposals) override {
    if (rounds_-- > 0) {
      return;
    }
    for (Proposal& proposal : proposals) {
      proposal.state = static_cast<State&>(*proposal.state).inner.get();
    }
    drafter_->propose(proposals);
  }

 private:
  struct State final : DraftState {
    State(std::unique_ptr<DraftState> state, std::vector<Kept>& all)
        : inner(std::move(state)), log(all) {}

    void acknowledge(int count) override { inner->acknowledge(count); }

    void keep(const mx::array& features, std::span<const std::int32_t> next, bool of_prompt)
        override {
      log.push_back({ids_of(mx::argmax(features, 1)), {next.begin(), next.end()}, of_prompt});
      inner->keep(features, next, of_prompt);
    }

    std::unique_ptr<DraftState> inner;
    std::vector<Kept>& log;
  };

  std::unique_ptr<Drafter> drafter_;
  int rounds_;
  std::vector<Kept>& log_;
};

struct Answer {
  Ids tokens;
  std::int64_t cached = 0;  // Rows of the target at the end.
  std::vector<Kept> kept;
};

// How a test drafts: so many tokens a round, after so many rounds without, until the stop token.
struct Course {
  int depth;
  int parked = 0;
  std::int32_t stop = kStop;
};

Answer run(
    const Counting& target,
    DrafterKind kind,
    std::unique_ptr<Drafter> drafter,
    Ids prompt,
    const Course& course
) {
  Answer result;
  Drafters drafters =
      drafters_of(kind, std::make_unique<Parked>(std::move(drafter), course.parked, result.kept));
  BatchGenerator generator(target, {}, nullptr, std::move(drafters));
  SequenceRequest request = request_of(std::move(prompt), 50);
  request.stop_tokens = {course.stop};
  request.speculation = {kind, course.depth};
  Outcome outcome;
  generator.add(std::move(request), std::make_unique<Recorder>(outcome));
  while (!generator.idle()) {
    generator.step();
  }
  EXPECT_EQ(outcome.end.reason, EndReason::kStopToken);
  result.tokens = outcome.tokens;
  result.cached = outcome.end.cache->offset();
  return result;
}

void fill(nn::TensorMap& tensors, const std::string& name, float value) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensors.at(name).shape) {
    count *= size;
  }
  const std::vector<float> values(static_cast<std::size_t>(count), value);
  tensors[name] = nn::float_tensor(tensors.at(name).shape, values);
}

// Layers add nothing, norms scale all rows alike.
void make_plain(nn::TensorMap& tensors) {
  const nn::TensorMap all = tensors;
  for (const auto& [name, tensor] : all) {
    if (tensor.shape.size() == 1) {
      fill(tensors, name, 1.0F);
    } else if (name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight")) {
      fill(tensors, name, 0.0F);
    }
  }
}

Json small_sizes(Json config) {
  config.update({{"hidden_size", kTokens}, {"vocab_size", kTokens}, {"num_key_value_heads", 4}});
  return config;
}

// Passes the token's own row on to the model's head, which gives the next number.
std::unique_ptr<const models::MtpHead> counting_head(const Said& said = {}) {
  const Json config = small_sizes(models::small_config("qwen3"));
  nn::TensorMap tensors = models::random_mtp_tensors(config);
  make_plain(tensors);
  std::vector<float> join(std::size_t{kTokens} * 2 * kTokens, 0.0F);
  for (std::int32_t token = 0; token < kTokens; ++token) {
    const auto found = said.find(token);
    const std::int32_t taken = found == said.end() ? token : found->second;
    const auto row = static_cast<std::size_t>(taken) * 2 * kTokens;
    join[row + static_cast<std::size_t>(token)] = 1.0F;
  }
  tensors["mtp.fc.weight"] = nn::float_tensor({kTokens, 2 * kTokens}, join);
  return models::make_mtp_head(config, nn::Weights(tensors, {}));
}

Answer run_mtp(
    const Counting& target, const models::MtpHead& head, Ids prompt, const Course& course
) {
  auto drafter = std::make_unique<Mtp>(head, target);
  return run(target, DrafterKind::kMtp, std::move(drafter), std::move(prompt), course);
}

// The row of a position joins what the target gave there with the token after it. The head's last
// row is one of the target's, so the first draft token costs no pass.
TEST(MtpByHand, PairsRowsWithTheNextTokens) {
  const Counting target;
  const auto head = counting_head();
  const Answer result = run_mtp(target, *head, {1, 2}, {4});
  EXPECT_EQ(result.tokens, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(target.ran, (std::vector<Rows>{{0, {1, 2}}, {2, {3, 4, 5, 6}}}));
  EXPECT_EQ(target.embedded, (std::vector<Ids>{{2, 3}, {4}, {5}, {6}}));
  EXPECT_EQ(result.cached, 6);
}

// Rows that came from draft tokens are made again from what the target gave for them.
TEST(MtpByHand, AcceptedRowsAreMadeAgainTogether) {
  const Counting target;
  const auto head = counting_head();
  const Answer result = run_mtp(target, *head, {1, 2}, {2});
  EXPECT_EQ(result.tokens, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(target.ran, (std::vector<Rows>{{0, {1, 2}}, {2, {3, 4, 5}}, {5, {6}}}));
  EXPECT_EQ(target.embedded, (std::vector<Ids>{{2, 3}, {4}, {4, 5, 6}, {7}}));
  EXPECT_EQ(
      result.kept, (std::vector<Kept>{{{1, 2}, {2, 3}, true}, {{3, 4, 5}, {4, 5, 6}, false}})
  );
}

TEST(MtpByHand, TakesUpEachRoundsRowsOnce) {
  const Counting target;
  const auto head = counting_head();
  const Answer result = run_mtp(target, *head, {1}, {2, 0, 11});
  EXPECT_EQ(result.tokens, (Ids{2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(
      target.ran, (std::vector<Rows>{{0, {1}}, {1, {2, 3, 4}}, {4, {5, 6, 7}}, {7, {8, 9, 10}}})
  );
  EXPECT_EQ(target.embedded, (std::vector<Ids>{{2}, {3}, {3, 4, 5}, {6}, {6, 7, 8}, {9}}));
}

// The head says that a 6 follows a 3.
TEST(MtpByHand, RejectedRowsAreNotKept) {
  const Counting target;
  const auto head = counting_head(Said{{3, 5}});
  const Answer result = run_mtp(target, *head, {1, 2}, {2});
  EXPECT_EQ(result.tokens, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(target.ran, (std::vector<Rows>{{0, {1, 2}}, {2, {3, 6}}, {3, {4, 5, 6}}}));
  EXPECT_EQ(target.embedded, (std::vector<Ids>{{2, 3}, {6}, {4}, {5}}));
  EXPECT_EQ(result.kept, (std::vector<Kept>{{{1, 2}, {2, 3}, true}, {{3}, {4}, false}}));
  EXPECT_EQ(result.cached, 6);
}

TEST(MtpByHand, CatchesUpInOnePassAfterRoundsWithoutDrafts) {
  const Counting target;
  const auto head = counting_head();
  const Answer result = run_mtp(target, *head, {1}, {2, 2});
  EXPECT_EQ(result.tokens, (Ids{2, 3, 4, 5, 6}));
  EXPECT_EQ(target.ran, (std::vector<Rows>{{0, {1}}, {1, {2}}, {2, {3}}, {3, {4, 5, 6}}}));
  EXPECT_EQ(target.embedded, (std::vector<Ids>{{2, 3, 4}, {5}}));
}

Answer run_model(const Counting& target, const Counting& draft, Ids prompt, const Course& course) {
  auto drafter = std::make_unique<DraftModel>(draft, 512);
  return run(target, DrafterKind::kDraftModel, std::move(drafter), std::move(prompt), course);
}

TEST(DraftModelByHand, AcceptedRowsStay) {
  const Counting target;
  const Counting draft;
  const Answer result = run_model(target, draft, {1, 2}, {2});
  EXPECT_EQ(result.tokens, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(target.ran, (std::vector<Rows>{{0, {1, 2}}, {2, {3, 4, 5}}, {5, {6}}}));
  EXPECT_EQ(draft.ran, (std::vector<Rows>{{0, {1, 2, 3}}, {3, {4}}, {4, {5, 6}}, {6, {7}}}));
}

// The draft says that a 6 follows a 3.
TEST(DraftModelByHand, RejectedRowsGo) {
  const Counting target;
  const Counting draft(Said{{3, 5}});
  const Answer result = run_model(target, draft, {1, 2}, {2});
  EXPECT_EQ(result.tokens, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(target.ran, (std::vector<Rows>{{0, {1, 2}}, {2, {3, 6}}, {3, {4, 5, 6}}}));
  EXPECT_EQ(draft.ran, (std::vector<Rows>{{0, {1, 2, 3}}, {3, {6}}, {3, {4}}, {4, {5}}}));
}

TEST(DraftModelByHand, CatchesUpInOnePassAfterRoundsWithoutDrafts) {
  const Counting target;
  const Counting draft;
  const Answer result = run_model(target, draft, {1}, {2, 2});
  EXPECT_EQ(result.tokens, (Ids{2, 3, 4, 5, 6}));
  EXPECT_EQ(target.ran, (std::vector<Rows>{{0, {1}}, {1, {2}}, {2, {3}}, {3, {4, 5, 6}}}));
  EXPECT_EQ(draft.ran, (std::vector<Rows>{{0, {1, 2, 3, 4}}, {4, {5}}}));
}

// Blocks of 3 with the mask 6, and a selector that knows which token follows which.
std::unique_ptr<const models::DflashDraft> counting_block() {
  Json config = small_sizes(models::small_dflash_config(true));
  config["num_target_layers"] = 1;
  config["dflash_config"].update(
      {{"block_size", 3},
       {"mask_token_id", 6},
       {"target_layer_ids", {0}},
       {"selector_rank", kTokens},
       {"selector_top_k", kTokens}}
  );
  nn::TensorMap tensors = models::random_dflash_tensors(config, 0);
  make_plain(tensors);
  std::vector<float> before(std::size_t{kTokens} * kTokens, 0.0F);
  std::vector<float> after = before;
  for (std::size_t token = 0; token < kTokens; ++token) {
    before[token * kTokens + token] = 1.0F;
    if (token > 0) {
      after[token * kTokens + token - 1] = 1.0F;
    }
  }
  // The mask's row is above 0 at 6 only.
  std::vector<float> projection(before.size(), 0.0F);
  for (std::size_t rank = 0; rank < kTokens; ++rank) {
    projection[rank * kTokens + 6] = 100.0F;
  }
  const std::string selector = "candidate_selector.";
  tensors[selector + "predecessor_codebook"] = nn::float_tensor({kTokens, kTokens}, before);
  tensors[selector + "successor_codebook"] = nn::float_tensor({kTokens, kTokens}, after);
  tensors[selector + "hidden_projection.weight"] = nn::float_tensor({kTokens, kTokens}, projection);
  return std::make_unique<const models::DflashDraft>(
      models::read_dflash_config(config), nn::Weights(models::dflash_tensors(tensors), {})
  );
}

TEST(DflashByHand, BlocksAreTheLastTokenAndMasks) {
  const Counting target;
  const auto draft = counting_block();
  const Answer result =
      run(target, DrafterKind::kDflash, std::make_unique<Dflash>(*draft, target), {1, 2}, {2});
  EXPECT_EQ(result.tokens, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(target.ran, (std::vector<Rows>{{0, {1, 2}}, {2, {3, 4, 5}}, {5, {6}}}));
  EXPECT_EQ(target.embedded, (std::vector<Ids>{{3, 6, 6}, {6, 6, 6}}));
  EXPECT_EQ(
      result.kept, (std::vector<Kept>{{{1, 2}, {2, 3}, true}, {{3, 4, 5}, {4, 5, 6}, false}})
  );
  EXPECT_EQ(result.cached, 6);
}

}  // namespace
}  // namespace saker::generate
