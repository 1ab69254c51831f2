// SPDX-License-Identifier: Apache-2.0
// What a trained draft gives: on its own target, and what the same acceptances would give on a
// larger one, with a draft that costs what one of that target's size costs but knows nothing.
//
//   replay_bench ANSWERS MODEL DRAFT [LARGE_MODEL LARGE_DRAFT [TOKENS [REPETITIONS]]]
//
// ANSWERS: lines of `saker generate MODEL -f PROMPTS --json`.
#include "saker/base/json/json.h"
#include "saker/generate/batch_generator.h"
#include "saker/generate/drafters/dflash.h"
#include "saker/generate/drafters/draft_model.h"
#include "saker/generate/drafters/eagle3.h"
#include "saker/generate/drafters/mtp.h"
#include "saker/load/checkpoint.h"
#include "saker/load/draft.h"
#include "saker/text/eos_tokens.h"

#include "bench/generate/answers.h"
#include "bench/generate/replay.h"
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {
namespace {

constexpr int kDepth = 7;
constexpr int kPromptTokens = 64;
constexpr int kPrefillStep = 512;
constexpr int kAnswerTokens = 80;

struct Question {
  Ids prompt;
  Ids stops = {};
  int max_tokens = 0;
};

Answer run(BatchGenerator& generator, const Question& question, Speculation how) {
  SequenceRequest request;
  request.prompt = question.prompt;
  request.stop_tokens = question.stops;
  request.max_tokens = question.max_tokens;
  request.speculation = how;
  return run(generator, std::move(request));
}

// A model, its draft, and a generator with both.
struct Pair {
  Pair(const char* model_dir, const char* draft_dir)
      : model(std::move(load::load_checkpoint(model_dir).model)),
        draft(load::load_draft(draft_dir, model->info())) {
    if (draft.dflash) {
      kind = DrafterKind::kDflash;
      inner = std::make_unique<Dflash>(*draft.dflash, *model);
    } else if (draft.eagle3) {
      kind = DrafterKind::kEagle3;
      inner = std::make_unique<Eagle3>(*draft.eagle3, *model);
    } else if (draft.mtp) {
      kind = DrafterKind::kMtp;
      inner = std::make_unique<Mtp>(*draft.mtp, *model);
    } else {
      kind = DrafterKind::kDraftModel;
      inner = std::make_unique<DraftModel>(*draft.model, kPrefillStep);
    }
    auto watched = std::make_unique<Replay>(*inner);
    replay = watched.get();
    Drafters drafters;
    drafters[kind] = std::move(watched);
    generator =
        std::make_unique<BatchGenerator>(*model, BatchLimits{}, nullptr, std::move(drafters));
  }

  std::unique_ptr<const models::Model> model;
  load::LoadedDraft draft;
  DrafterKind kind = DrafterKind::kNone;
  std::unique_ptr<Drafter> inner;
  Replay* replay = nullptr;
  std::unique_ptr<BatchGenerator> generator;
};

// One way of drafting, over all repetitions.
struct Way {
  const char* name;
  Speculation how;
  // Plain decoding's over this one's, by repetition: times after the first token, processor times.
  Spread ratios = {};
  Spread processor_ratios = {};
  int accepted = 0;
  int tokens = 0;  // Chosen after the first of each answer.

  void print() {
    fmt::print(
        "{:<24} {:.3f} tokens a round, {} times plain, by processor time {} (min / median / max)\n",
        name,
        static_cast<double>(tokens) / (tokens - accepted),
        ratios.text(),
        processor_ratios.text()
    );
  }
};

[[noreturn]] void fail(const char* what) {
  fmt::print("error: {}\n", what);
  std::exit(1);
}

// All questions in each way, plain decoding first, in draft; the first repetition only warms up.
void compare(
    Pair& pair, const std::vector<Question>& questions, std::vector<Way>& ways, int repetitions
) {
  for (int repetition = -1; repetition < repetitions; ++repetition) {
    std::vector<Ids> plain;
    Seconds plain_seconds;
    for (Way& way : ways) {
      Seconds seconds;  // By wall clock after the first token, by processor time of prompts too.
      way.accepted = way.tokens = 0;
      for (std::size_t i = 0; i < questions.size(); ++i) {
        const Question& question = questions[i];
        const Answer answer = run(*pair.generator, question, way.how);
        if (way.how.drafter == DrafterKind::kNone) {
          plain.push_back(answer.context);
        } else if (answer.context != plain[i]) {
          fail("another answer than plain decoding's");
        }
        seconds = seconds + answer.rest + Seconds{.processor = answer.first.processor};
        way.accepted += answer.counts.accepted;
        const auto length = static_cast<int>(answer.context.size() - question.prompt.size());
        way.tokens += length - (length == question.max_tokens ? 1 : 0);  // A stop counts.
      }
      if (way.how.drafter == DrafterKind::kNone) {
        plain_seconds = seconds;
      }
      if (repetition >= 0) {
        way.ratios.values.push_back(plain_seconds.wall / seconds.wall);
        way.processor_ratios.values.push_back(plain_seconds.processor / seconds.processor);
      }
    }
  }
  for (Way& way : ways) {
    way.print();
  }
}

std::vector<Question> read_questions(const char* answers, const char* model_dir) {
  const std::vector<std::int32_t> stops =
      text::load_eos_tokens(std::filesystem::path(model_dir), nullptr, {});
  std::vector<Question> questions;
  std::ifstream file(answers);
  for (std::string line; std::getline(file, line);) {
    questions.push_back(
        {.prompt = parse_json(line, answers)["prompt_tokens"].get<Ids>(),
         .stops = stops,
         .max_tokens = kAnswerTokens}
    );
  }
  if (questions.empty()) {
    fail("no answers");
  }
  return questions;
}

std::vector<Way> ways_of(DrafterKind kind) {
  return {
      {.name = "plain", .how = {}},
      {.name = "prompt lookup, depth 7", .how = {DrafterKind::kPromptLookup, kDepth}},
      {.name = "draft, depth 2", .how = {kind, 2}},
      {.name = "draft, depth 4", .how = {kind, 4}},
      {.name = "draft, depth 7", .how = {kind, kDepth}},
      {.name = "draft, depth by itself", .how = {kind, kAutoDepth}},
  };
}

// The right tokens of each round at full depth.
std::vector<int> record(Pair& pair, const std::vector<Question>& questions) {
  pair.replay->noted();
  for (const Question& question : questions) {
    run(*pair.generator, question, {pair.kind, kDepth});
  }
  return pair.replay->noted();
}

// One answer of the large model, in whose rounds as many tokens are right as in those recorded.
void replay(Pair& pair, const std::vector<int>& rounds, int tokens, int repetitions) {
  Question question{.prompt = {}, .max_tokens = tokens};
  const int vocab_size = pair.model->info().vocab_size;
  for (int i = 0; i < kPromptTokens; ++i) {
    question.prompt.push_back((i * 7919 + 13) % vocab_size);
  }
  pair.replay->follow(run(*pair.generator, question, {}).context, rounds);
  std::vector<Way> ways = ways_of(pair.kind);
  ways.erase(ways.begin() + 1);
  compare(pair, {question}, ways, repetitions);
}

struct Folders {
  const char* model;
  const char* draft;
};

void measure(
    const char* answers, Folders trained, const Folders* large, int tokens, int repetitions
) {
  std::vector<int> rounds;
  {
    Pair pair(trained.model, trained.draft);
    const auto questions = read_questions(answers, trained.model);
    auto ways = ways_of(pair.kind);
    compare(pair, questions, ways, repetitions);
    rounds = record(pair, questions);
  }
  if (large != nullptr) {
    Pair pair(large->model, large->draft);
    replay(pair, rounds, tokens, repetitions);
  }
}

}  // namespace
}  // namespace saker::generate

int main(int argc, char** argv) {
  try {
    if (argc < 4) {
      fmt::print(
          "usage: replay_bench ANSWERS MODEL DRAFT [LARGE_MODEL LARGE_DRAFT [TOKENS "
          "[REPETITIONS]]]\n"
      );
      return 2;
    }
    const int tokens = argc > 6 ? std::atoi(argv[6]) : 128;
    const int repetitions = argc > 7 ? std::atoi(argv[7]) : 3;
    const saker::generate::Folders large{
        argc > 5 ? argv[4] : nullptr, argc > 5 ? argv[5] : nullptr
    };
    saker::generate::measure(
        argv[1], {argv[2], argv[3]}, argc > 5 ? &large : nullptr, tokens, repetitions
    );
  } catch (const std::exception& error) {
    fmt::print("error: {}\n", error.what());
    return 1;
  }
  return 0;
}
