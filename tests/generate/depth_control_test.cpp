// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/depth_control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace saker::generate {
namespace {

// A machine and a drafter in numbers.
struct World {
  std::function<double(int rows)> pass_seconds;
  double draft_step_seconds = 0.0;
  double acceptance = 0.0;                             // Of each draft token.
  bool by_block = false;                               // A step drafts any number of tokens.
  std::function<double()> delay = [] { return 1.0; };  // What is measured, over what it costs.
  double catch_up_seconds = 0.0;                       // Of a drafter, by round without drafts.

  double draft_seconds(int depth) const {
    return draft_step_seconds * (by_block ? std::min(depth, 1) : depth);
  }
};

struct Totals {
  double seconds = 0.0;
  int tokens = 0;
  std::vector<int> depths;

  double rate() const { return tokens / seconds; }
};

Totals run(DepthControl& control, AcceptanceRates& rates, const World& world, int rounds) {
  std::mt19937 random(1);
  Totals totals;
  int missed = 0;
  for (int i = 0; i < rounds; ++i) {
    const DepthControl::Candidate candidate{&rates, 16};
    const int depth = control.choose({&candidate, 1}, 1, true).front();
    int accepted = 0;
    while (accepted < depth && std::bernoulli_distribution(world.acceptance)(random)) {
      ++accepted;
    }
    const bool catches_up = depth > 0 && missed > 0 && world.catch_up_seconds > 0.0;
    const double draft_seconds =
        world.draft_seconds(depth) + (catches_up ? missed * world.catch_up_seconds : 0.0);
    missed = depth > 0 ? 0 : missed + 1;
    const DepthControl::Round round{
        .rows = 1 + depth,
        .tokens = 1 + accepted,
        .depth = depth,
        .pass_seconds = world.pass_seconds(1 + depth) * world.delay(),
        .draft_seconds = draft_seconds * world.delay(),
        .steady = !catches_up,
    };
    control.observe(round);
    if (depth > 0) {
      rates.observe(depth, accepted);
    }
    totals.seconds += world.pass_seconds(1 + depth) + draft_seconds;
    totals.tokens += round.tokens;
    totals.depths.push_back(depth);
  }
  return totals;
}

// Memory-bound: rows cost little.
double flat_pass(int rows) {
  return 0.050 + 0.002 * rows;
}

// Tokens a second at a fixed depth.
double fixed_rate(const World& world, int depth) {
  double tokens = 1.0;
  double survival = 1.0;
  for (int i = 0; i < depth; ++i) {
    tokens += survival *= world.acceptance;
  }
  return tokens / (world.pass_seconds(1 + depth) + world.draft_seconds(depth));
}

double best_rate(const World& world) {
  double best = 0.0;
  for (int depth = 0; depth <= 16; ++depth) {
    best = std::max(best, fixed_rate(world, depth));
  }
  return best;
}

TEST(DepthControl, FindsADepthThatPays) {
  for (const double acceptance : {0.5, 0.8, 0.95}) {
    for (const double draft_step : {0.0, 0.005, 0.015}) {
      const World world{flat_pass, draft_step, acceptance};
      DepthControl control;
      AcceptanceRates rates;
      run(control, rates, world, 100);
      EXPECT_GT(run(control, rates, world, 2000).rate(), 0.9 * best_rate(world))
          << acceptance << " " << draft_step;
    }
  }
}

TEST(DepthControl, FindsADepthThatPaysForABlock) {
  for (const double acceptance : {0.6, 0.8, 0.95}) {
    for (const double block : {0.002, 0.01, 0.03}) {
      const World world{flat_pass, block, acceptance, true};
      DepthControl control(DraftCost::kByBlock);
      AcceptanceRates rates;
      run(control, rates, world, 100);
      EXPECT_GT(run(control, rates, world, 2000).rate(), 0.9 * best_rate(world))
          << acceptance << " " << block;
    }
  }
}

// A few rows cost a step, more of them little.
double stepped_pass(int rows) {
  return rows == 1 ? 0.064 : 0.074 + 0.0015 * rows;
}

TEST(DepthControl, GoesBeyondAFirstStepOfThePassCost) {
  const World world{stepped_pass, 0.004, 0.85};
  DepthControl control;
  AcceptanceRates rates;
  run(control, rates, world, 40);
  EXPECT_GT(run(control, rates, world, 200).rate(), 0.9 * best_rate(world));
}

TEST(DepthControl, ABusyMachineHidesNoDepthThatPays) {
  for (const double acceptance : {0.6, 0.85}) {
    for (const std::uint32_t seed : {1, 2, 3}) {
      World world{stepped_pass, 0.01, acceptance};
      world.delay = [random = std::mt19937(seed)]() mutable {
        // A third of what is timed waits for something else, and some of it for long.
        const double chance = std::uniform_real_distribution<>(0.0, 1.0)(random);
        return chance < 0.03 ? 30.0 : chance < 0.33 ? 2.0 : 1.0;
      };
      DepthControl control;
      AcceptanceRates rates;
      run(control, rates, world, 100);
      EXPECT_GT(run(control, rates, world, 500).rate(), 0.9 * best_rate(world))
          << acceptance << " " << seed;
    }
  }
}

TEST(DepthControl, ForgetsASlowHour) {
  const World world{stepped_pass, 0.004, 0.85};
  const World slow{[](int rows) { return 3.0 * stepped_pass(rows); }, 0.012, 0.85};
  DepthControl control;
  AcceptanceRates rates;
  run(control, rates, slow, 300);
  run(control, rates, world, 100);
  EXPECT_GT(run(control, rates, world, 300).rate(), 0.9 * best_rate(world));
}

TEST(DepthControl, ForgetsASlowHourOfADrafterThatCatchesUp) {
  World world{flat_pass, 0.004, 0.85};
  world.catch_up_seconds = 0.004;
  World slow = world;
  slow.draft_step_seconds = 0.4;
  DepthControl control;
  AcceptanceRates rates;
  run(control, rates, slow, 300);
  EXPECT_EQ(run(control, rates, slow, 1).depths.front(), 0);
  run(control, rates, world, 5000);
  EXPECT_GT(run(control, rates, world, 300).rate(), 0.9 * best_rate(world));
}

TEST(DepthControl, AUselessDrafterThatCatchesUpCostsNextToNothing) {
  World world{flat_pass, 0.01, 0.0};
  world.catch_up_seconds = 0.0005;
  DepthControl control;
  AcceptanceRates rates;
  run(control, rates, world, 100);
  EXPECT_GT(run(control, rates, world, 2000).rate(), 0.98 * fixed_rate(world, 0));
}

TEST(DepthControl, AUselessDrafterCostsNextToNothing) {
  for (const double draft_step : {0.0, 0.01, 0.1}) {
    const World world{flat_pass, draft_step, 0.0};
    DepthControl control;
    AcceptanceRates rates;
    run(control, rates, world, 100);
    const Totals totals = run(control, rates, world, 512);
    EXPECT_GT(totals.rate(), 0.98 * fixed_rate(world, 0)) << draft_step;
    // But it is tried again now and then, the seldomer the dearer.
    const Totals later = run(control, rates, world, 2000);
    EXPECT_GT(std::ranges::max(later.depths), 0) << draft_step;
  }
}

TEST(DepthControl, RowsThatCostAsMuchAsPassesAreNotDrafted) {
  const World world{[](int rows) { return 0.05 * rows; }, 0.0, 0.7};
  DepthControl control;
  AcceptanceRates rates;
  run(control, rates, world, 100);
  EXPECT_GT(run(control, rates, world, 512).rate(), 0.97 * fixed_rate(world, 0));
}

TEST(DepthControl, FollowsADrafterThatBecomesGood) {
  DepthControl control;
  AcceptanceRates rates;
  run(control, rates, {flat_pass, 0.002, 0.0}, 300);
  const World good{flat_pass, 0.002, 0.9};
  run(control, rates, good, 500);
  EXPECT_GT(run(control, rates, good, 500).rate(), 0.85 * best_rate(good));
}

TEST(DepthControl, GivesTheRowsOfABatchToThoseWhoseDraftsAreRight) {
  DepthControl control;
  AcceptanceRates good;
  AcceptanceRates bad;
  for (int i = 0; i < 50; ++i) {
    good.observe(8, 8);
    bad.observe(8, 0);
  }
  for (int i = 0; i < 10; ++i) {
    control.observe({.rows = 2, .tokens = 2, .pass_seconds = 0.05});
    control.observe({.rows = 10, .tokens = 6, .depth = 4, .pass_seconds = 0.07});
  }
  const std::vector<DepthControl::Candidate> both = {{&bad, 8}, {&good, 8}};
  const std::vector<int> depths = control.choose(both, 2, false);
  EXPECT_EQ(depths[0], 0);
  EXPECT_EQ(depths[1], 8);
}

TEST(AcceptanceRates, PlacesThatWereNotReachedTakeTheRateBefore) {
  AcceptanceRates rates;
  for (int i = 0; i < 200; ++i) {
    rates.observe(4, i % 2 == 0 ? 1 : 0);  // The second place is always wrong.
  }
  EXPECT_NEAR(rates.survival(1), 0.5, 0.05);
  EXPECT_LT(rates.survival(2), 0.05);
  EXPECT_EQ(rates.frontier(), 2);
  EXPECT_EQ(rates.survival(0), 1.0);
  EXPECT_NEAR(rates.softened().survival(1), 0.5, 0.1);
}

TEST(RecentCost, IsTheMedianOfTheLastValues) {
  RecentCost cost;
  EXPECT_EQ(cost.seconds(), 0.0);
  for (const double seconds : {9.0, 2.0}) {
    cost.observe(seconds);
  }
  EXPECT_EQ(cost.seconds(), 2.0);
  for (const double seconds : {100.0, 3.0, 1.0, 4.0, 50.0}) {
    cost.observe(seconds);
  }
  EXPECT_EQ(cost.seconds(), 4.0);
  EXPECT_EQ(cost.count(), 7);
  cost.observe(1.0);  // In the place of the oldest, 9.
  EXPECT_EQ(cost.seconds(), 3.0);
  EXPECT_EQ(cost.count(), 7);
}

// Measured often enough to count.
void observe(PassCosts& costs, int rows, double seconds) {
  for (int i = 0; i < 7; ++i) {
    costs.observe(rows, seconds);
  }
}

TEST(PassCosts, LiesOnLinesBetweenWhatWasMeasured) {
  PassCosts costs;
  EXPECT_TRUE(costs.curve(3).empty());
  observe(costs, 2, 1.0);
  EXPECT_EQ(costs.curve(3), (std::vector<double>{1.0, 1.0, 1.0, 1.0}));
  observe(costs, 6, 3.0);
  EXPECT_EQ(costs.curve(8), (std::vector<double>{1.0, 1.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.25, 3.5}));
  EXPECT_EQ(costs.curve(4), (std::vector<double>{1.0, 1.0, 1.0, 1.5, 2.0}));
  EXPECT_EQ(costs.curve(0), std::vector<double>{1.0});
}

TEST(PassCosts, MoreRowsNeverCostLess) {
  PassCosts costs;
  observe(costs, 1, 1.0);
  observe(costs, 3, 5.0);
  observe(costs, 5, 2.0);
  EXPECT_EQ(costs.curve(5), (std::vector<double>{1.0, 1.0, 1.5, 2.0, 2.0, 2.0}));
}

TEST(PassCosts, ANewNumberOfRowsIsTriedTwice) {
  PassCosts costs;
  observe(costs, 1, 1.0);
  costs.observe(4, 30.0);
  EXPECT_EQ(costs.curve(4).back(), 1.0);
  costs.observe(4, 3.0);
  EXPECT_EQ(costs.curve(4).back(), 3.0);
}

}  // namespace
}  // namespace saker::generate
