// SPDX-License-Identifier: Apache-2.0
// What drafts that are never right cost at the depth that is chosen by itself: a scripted one that
// costs nothing to ask, and a small model, an MTP head and a DFlash draft with random weights. All
// of their work counts, prompts too. Each answer is timed right after one of plain decoding; the
// first of each way only warms up.
//
//   useless_bench MODEL [TOKENS [REPETITIONS [PROMPT_TOKENS [NAME]]]]
//
// NAME: of the only one to measure, or a part of it.
#include "saker/generate/batch_generator.h"
#include "saker/generate/drafters/dflash.h"
#include "saker/generate/drafters/draft_model.h"
#include "saker/generate/drafters/mtp.h"
#include "saker/load/checkpoint.h"
#include "saker/load/files/quantization.h"

#include "bench/generate/answers.h"
#include "tests/models/random_dflash.h"
#include "tests/models/random_mtp.h"
#include "tests/support/scripted_drafter.h"
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

constexpr int kPrefillStep = 512;

struct Question {
  const models::Model& model;
  Ids prompt;
  int tokens;
};

Answer run(BatchGenerator& generator, const Question& question, Speculation how) {
  SequenceRequest request;
  request.prompt = question.prompt;
  request.max_tokens = question.tokens;
  request.speculation = how;
  return run(generator, std::move(request));
}

// Drafts with random weights in the form of the target's.
class RandomDrafts {
 public:
  RandomDrafts(const models::Model& target, Json config) : config_(std::move(config)) {
    const auto quantization = load::parse_quantization(config_);
    options_.format =
        quantization.format.value_or(kernels::WeightFormat{.kind = kernels::WeightKind::kBFloat16});
    Json small = config_;
    small["num_hidden_layers"] = std::max(target.info().layer_count / 8, 1);
    small["intermediate_size"] = json_int(config_, "intermediate_size", 0) / 2;
    small_ = models::random_model(small, options_);
    mtp_ = models::random_mtp(config_, options_);
    dflash_ = models::random_dflash(dflash_config(target), 0, options_.format);
  }

  const models::Model& small() const { return *small_; }

  const models::MtpHead& mtp() const { return *mtp_; }

  const models::DflashDraft& dflash() const { return *dflash_; }

 private:
  // Two layers over three of the target's.
  Json dflash_config(const models::Model& target) const {
    const int layers = target.info().layer_count;
    Json result = config_;
    result["num_hidden_layers"] = 2;
    result["num_target_layers"] = layers;
    result.erase("layer_types");
    result["dflash_config"] = {
        {"block_size", 8},
        {"mask_token_id", target.info().vocab_size - 1},
        {"target_layer_ids", {0, layers / 2, layers - 2}}
    };
    return result;
  }

  Json config_;
  models::RandomModelOptions options_;
  std::unique_ptr<const models::Model> small_;
  std::unique_ptr<const models::MtpHead> mtp_;
  std::unique_ptr<const models::DflashDraft> dflash_;
};

struct Contender {
  Contender(
      std::string label,
      const models::Model& model,
      DrafterKind its_kind,
      std::unique_ptr<Drafter> drafter
  )
      : name(std::move(label)), kind(its_kind) {
    Drafters drafters;
    drafters[kind] = std::move(drafter);
    generator = std::make_unique<BatchGenerator>(
        model, BatchLimits{.prefill_step = kPrefillStep}, nullptr, std::move(drafters)
    );
  }

  std::string name;
  DrafterKind kind;
  std::unique_ptr<BatchGenerator> generator;
  // Plain decoding's time over this one's, of whole answers; this one's over plain decoding's
  // until the first token.
  Spread wall, processor, first_wall, first_processor;
  SpeculationCounts counts;

  void note(const Answer& plain, const Answer& own) {
    const Seconds plain_all = plain.first + plain.rest;
    const Seconds own_all = own.first + own.rest;
    wall.values.push_back(plain_all.wall / own_all.wall);
    processor.values.push_back(plain_all.processor / own_all.processor);
    first_wall.values.push_back(own.first.wall / plain.first.wall);
    first_processor.values.push_back(own.first.processor / plain.first.processor);
    counts = own.counts;
  }

  void print() {
    wall.print(name, "times as fast as plain decoding");
    processor.print("  by processor time", "");
    first_wall.print("  first token after", "times plain decoding's time");
    first_processor.print("  by processor time", "");
    fmt::print(
        "  {} rounds, {} drafted, {} right\n", counts.rounds, counts.drafted, counts.accepted
    );
  }
};

std::vector<std::unique_ptr<Contender>> contenders(
    const models::Model& model,
    const RandomDrafts& drafts,
    const Ids& script,
    saker::testing::ScriptedDrafter::Log& log,
    std::string_view only
) {
  std::vector<std::unique_ptr<Contender>> all;
  const auto add = [&](const char* name, DrafterKind kind, std::unique_ptr<Drafter> drafter) {
    if (std::string_view(name).find(only) != std::string_view::npos) {
      all.push_back(std::make_unique<Contender>(name, model, kind, std::move(drafter)));
    }
  };
  add("scripted, never right",
      DrafterKind::kDraftModel,
      std::make_unique<saker::testing::ScriptedDrafter>(
          std::vector<Ids>{script}, [](std::size_t) { return true; }, log
      ));
  add("random small model",
      DrafterKind::kDraftModel,
      std::make_unique<DraftModel>(drafts.small(), kPrefillStep));
  add("random MTP head", DrafterKind::kMtp, std::make_unique<Mtp>(drafts.mtp(), model));
  add("random DFlash draft", DrafterKind::kDflash, std::make_unique<Dflash>(drafts.dflash(), model)
  );
  return all;
}

void measure(
    const Question& question, const RandomDrafts& drafts, int repetitions, std::string_view only
) {
  BatchGenerator plain(question.model, {.prefill_step = kPrefillStep});
  const Ids script = run(plain, question, {}).context;
  saker::testing::ScriptedDrafter::Log log;
  const auto all = contenders(question.model, drafts, script, log, only);
  Spread rate;
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    for (const auto& contender : all) {
      const Answer plainly = run(plain, question, {});
      const Answer answer = run(*contender->generator, question, {contender->kind, kAutoDepth});
      if (answer.context != script) {
        fmt::print("{}: another answer than plain decoding's\n", contender->name);
        std::exit(1);
      }
      if (repetition >= 0) {
        rate.values.push_back((question.tokens - 1) / plainly.rest.wall);
        contender->note(plainly, answer);
      }
    }
  }
  rate.print("plain decoding", "tokens/s");
  for (const auto& contender : all) {
    contender->print();
  }
}

}  // namespace
}  // namespace saker::generate

int main(int argc, char** argv) {
  try {
    if (argc < 2) {
      fmt::print("usage: useless_bench MODEL [TOKENS [REPETITIONS [PROMPT_TOKENS [NAME]]]]\n");
      return 2;
    }
    const int tokens = argc > 2 ? std::atoi(argv[2]) : 512;
    const int repetitions = argc > 3 ? std::atoi(argv[3]) : 5;
    const int prompt_tokens = argc > 4 ? std::atoi(argv[4]) : 64;
    const auto loaded = saker::load::load_checkpoint(argv[1]);
    const saker::generate::RandomDrafts drafts(*loaded.model, loaded.config);
    const saker::generate::Question question{
        *loaded.model,
        saker::generate::make_prompt(loaded.model->info().vocab_size, prompt_tokens),
        tokens
    };
    saker::generate::measure(question, drafts, repetitions, argc > 5 ? argv[5] : "");
  } catch (const std::exception& error) {
    fmt::print("error: {}\n", error.what());
    return 1;
  }
  return 0;
}
