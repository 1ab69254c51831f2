// SPDX-License-Identifier: Apache-2.0
// What drafting costs and gives on a model folder: a pass by its number of rows, and answers with a
// drafter that is never right, one that is right four times of five, and without any, in draft.
//
//   generate_bench MODEL [TOKENS [REPETITIONS [PROMPT_TOKENS]]]
#include "saker/cache/prefix_cache.h"
#include "saker/generate/batch_generator.h"
#include "saker/generate/depth_control.h"
#include "saker/generate/pass.h"
#include "saker/load/checkpoint.h"

#include "bench/generate/answers.h"
#include "tests/support/scripted_drafter.h"
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPrefixBytes = std::size_t{4} << 30;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Passes of 1, 2, 4, 8 and 16 rows in draft, all rows with logits, none kept.
void measure_passes(const models::Model& model, const Ids& ids, int repetitions) {
  cache::SequenceCache cache = model.make_cache({});
  for (auto first = ids.begin(); first != ids.end();) {
    const auto end = first + std::min<std::ptrdiff_t>(512, ids.end() - first);
    const PassSpan chunk{.cache = &cache, .tokens = {first, end}};
    run_rows(model, {&chunk, 1});
    first = end;
  }
  const std::vector<int> sizes = {1, 2, 4, 8, 16};
  std::vector<Spread> spreads(sizes.size());
  Spread ratio;
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    std::vector<double> times;
    for (const int rows : sizes) {
      const PassSpan span{
          .cache = &cache, .tokens = {ids.begin(), ids.begin() + rows}, .logit_rows = rows
      };
      const auto start = Clock::now();
      {
        const PassTransaction rolled_back({&span, 1});
        run_rows(model, {&span, 1});
      }
      times.push_back(seconds_since(start) * 1e3);
    }
    if (repetition >= 0) {
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        spreads[i].values.push_back(times[i]);
      }
      ratio.values.push_back(times[3] / times[0]);
    }
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    spreads[i].print(fmt::format("pass of {} rows", sizes[i]), "ms");
  }
  ratio.print("8 rows over 1", "");
}

// What all answers are to.
struct Question {
  const models::Model& model;
  Ids prompt;
  int tokens;
  cache::PrefixCache prefixes;
};

Answer run(BatchGenerator& generator, const Question& question, Speculation how) {
  SequenceRequest request;
  request.prompt = question.prompt;
  request.prefix_key = "bench";
  request.max_tokens = question.tokens;
  request.speculation = how;
  return run(generator, std::move(request));
}

// A generator whose drafter is wrong so many times of a hundred.
struct Contender {
  Contender(std::string label, Question& question, const Ids& script, int wrong, Speculation drafts)
      : name(std::move(label)), how(drafts) {
    Drafters drafters;
    drafters[DrafterKind::kDraftModel] = std::make_unique<testing::ScriptedDrafter>(
        std::vector<Ids>{script},
        [wrong](std::size_t place) {
          return (place * 0x9e3779b97f4a7c15U >> 32U) % 100 < static_cast<unsigned>(wrong);
        },
        log
    );
    generator = std::make_unique<BatchGenerator>(
        question.model, BatchLimits{}, &question.prefixes, std::move(drafters)
    );
  }

  std::string name;
  Speculation how;
  testing::ScriptedDrafter::Log log;
  std::unique_ptr<BatchGenerator> generator;
  Spread rate;
  Spread ratio;
  Spread processor_ratio;
  SpeculationCounts counts;
};

void measure_answers(Question& question, int repetitions) {
  BatchGenerator plain(question.model, {}, &question.prefixes);
  const Ids script = run(plain, question, {}).context;
  std::vector<std::unique_ptr<Contender>> contenders;
  const auto add = [&](const char* name, int wrong, int depth) {
    contenders.push_back(std::make_unique<Contender>(
        name, question, script, wrong, Speculation{DrafterKind::kDraftModel, depth}
    ));
  };
  add("never right, auto", 100, kAutoDepth);
  add("80 % right, depth 7", 20, 7);
  add("80 % right, auto", 20, kAutoDepth);
  Spread base;
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    const double steps = question.tokens - 1;
    const Answer plainly = run(plain, question, {});
    const double plain_rate = steps / plainly.rest.wall;
    if (repetition >= 0) {
      base.values.push_back(plain_rate);
    }
    for (const auto& contender : contenders) {
      const Answer answer = run(*contender->generator, question, contender->how);
      if (answer.context != script) {
        fmt::print("{}: another answer than plain decoding's\n", contender->name);
        std::exit(1);
      }
      if (repetition >= 0) {
        const double rate = steps / answer.rest.wall;
        contender->rate.values.push_back(rate);
        contender->ratio.values.push_back(rate / plain_rate);
        contender->processor_ratio.values.push_back(plainly.rest.processor / answer.rest.processor);
        contender->counts = answer.counts;
      }
    }
  }
  base.print("plain", "tokens/s");
  for (const auto& contender : contenders) {
    contender->rate.print(contender->name, "tokens/s");
    contender->ratio.print("  over plain", "");
    contender->processor_ratio.print("  plain processor time over it", "");
    fmt::print(
        "  {} rounds, {} drafted, {} right\n",
        contender->counts.rounds,
        contender->counts.drafted,
        contender->counts.accepted
    );
  }
}

// One decision about the depth, with its bookkeeping.
void measure_control() {
  DepthControl control;
  AcceptanceRates rates;
  constexpr int kRounds = 20000;
  const auto start = Clock::now();
  for (int i = 0; i < kRounds; ++i) {
    const DepthControl::Candidate candidate{&rates, 16};
    const int depth = control.choose({&candidate, 1}, 1, true).front();
    const int accepted = depth * (i % 5) / 4;
    rates.observe(depth, accepted);
    control.observe(
        {.rows = 1 + depth,
         .tokens = 1 + accepted,
         .depth = depth,
         .pass_seconds = 0.05 + 0.002 * depth,
         .draft_seconds = 0.001 * depth}
    );
  }
  fmt::print("{:<34} {:>9.3f} us a round\n", "depth control", seconds_since(start) / kRounds * 1e6);
}

}  // namespace
}  // namespace saker::generate

int main(int argc, char** argv) {
  try {
    if (argc < 2) {
      fmt::print("usage: generate_bench MODEL [TOKENS [REPETITIONS [PROMPT_TOKENS]]]\n");
      return 2;
    }
    const int tokens = argc > 2 ? std::atoi(argv[2]) : 128;
    const int repetitions = argc > 3 ? std::atoi(argv[3]) : 3;
    const int prompt_tokens = argc > 4 ? std::atoi(argv[4]) : 64;
    const auto loaded = saker::load::load_checkpoint(argv[1]);
    saker::generate::measure_control();
    saker::cache::PrefixCacheOptions options;
    options.byte_budget = saker::generate::kPrefixBytes;
    saker::generate::Question question{
        *loaded.model,
        saker::generate::make_prompt(loaded.model->info().vocab_size, prompt_tokens),
        tokens,
        saker::cache::PrefixCache(options),
    };
    saker::generate::measure_passes(*loaded.model, question.prompt, 5 * repetitions);
    saker::generate::measure_answers(question, repetitions);
  } catch (const std::exception& error) {
    fmt::print("error: {}\n", error.what());
    return 1;
  }
  return 0;
}
