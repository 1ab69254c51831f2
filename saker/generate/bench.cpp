// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/bench.h"

#include "saker/base/error.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>

namespace saker::generate {

namespace {

// One sequence of a repetition between its phases: the tokens that ran, and the cache.
struct Slot {
  std::vector<std::int32_t> context;
  std::optional<cache::SequenceCache> cache;
  std::exception_ptr error;
};

class SlotListener : public Listener {
 public:
  explicit SlotListener(Slot& slot) : slot_(slot) {}

  bool on_token(const GeneratedToken& /*token*/) override { return true; }

  void on_end(SequenceEnd end) noexcept override {
    slot_.context = std::move(end.context);
    slot_.cache = std::move(end.cache);
    slot_.error = end.error;
  }

 private:
  Slot& slot_;
};

// A fixed sequence of ids in [0, vocab_size), different for each slot.
std::int32_t bench_token(int slot, std::size_t index, int vocab_size) {
  std::uint64_t x = (index + 1) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(slot) * 7919U;
  x = (x ^ (x >> 31U)) * 0xbf58476d1ce4e5b9U;
  x ^= x >> 29U;
  return static_cast<std::int32_t>(x % static_cast<std::uint64_t>(vocab_size));
}

// Runs all slots until each has `tokens` more tokens. Returns the duration in seconds.
double run_slots(
    BatchGenerator& generator, const BenchPlan& plan, std::vector<Slot>& slots, int tokens
) {
  const auto start = std::chrono::steady_clock::now();
  for (Slot& slot : slots) {
    SequenceRequest request;
    request.prompt = std::move(slot.context);
    request.cache = std::move(slot.cache);
    request.max_tokens = tokens;
    request.kv_bits = plan.kv_bits;
    generator.add(std::move(request), std::make_unique<SlotListener>(slot));
  }
  while (!generator.idle()) {
    generator.step();
  }
  for (const Slot& slot : slots) {
    if (slot.error) {
      std::rethrow_exception(slot.error);
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Runs `count` fixed tokens after the slots' context; discards the token that each slot then chose.
// Returns the duration in seconds.
double run_prompt(
    BatchGenerator& generator,
    const BenchPlan& plan,
    std::vector<Slot>& slots,
    int count,
    int vocab_size
) {
  for (std::size_t s = 0; s < slots.size(); ++s) {
    std::vector<std::int32_t>& context = slots[s].context;
    for (int i = 0; i < count; ++i) {
      context.push_back(bench_token(static_cast<int>(s), context.size(), vocab_size));
    }
  }
  const double seconds = run_slots(generator, plan, slots, 1);
  for (Slot& slot : slots) {
    slot.context.pop_back();
  }
  return seconds;
}

void check_plan(const models::Model& model, const BenchPlan& plan) {
  constexpr int kMaxBatch = 4096;
  const auto at_least = [](std::string_view name, int value, int low) {
    require(
        value >= low,
        ErrorCode::kInvalidArgument,
        "{}: got {}, expected {} or more",
        name,
        value,
        low
    );
  };
  at_least("prompt tokens", plan.prompt_tokens, 0);
  at_least("generation tokens", plan.generation_tokens, 0);
  require(
      plan.batch >= 1 && plan.batch <= kMaxBatch,
      ErrorCode::kInvalidArgument,
      "batch: got {}, expected 1 to {}",
      plan.batch,
      kMaxBatch
  );
  at_least("depth", plan.depth, 0);
  at_least("repetitions", plan.repetitions, 1);
  const std::int64_t rows =
      std::int64_t{plan.depth} + plan.prompt_tokens + plan.generation_tokens + 1;
  const std::int64_t limit = model.info().context_length;
  require(
      limit <= 0 || rows <= limit,
      ErrorCode::kInvalidArgument,
      "the bench needs {} tokens, but the model's context is {} tokens long",
      rows,
      limit
  );
}

}  // namespace

BenchRates run_bench(
    const models::Model& model,
    const BenchPlan& plan,
    const std::function<void(int done, int total)>& progress
) {
  check_plan(model, plan);
  const int vocab_size = model.info().vocab_size;
  BenchRates rates;
  for (int repetition = -1; repetition < plan.repetitions; ++repetition) {
    BatchGenerator generator(
        model,
        {.prefill_step = plan.prefill_step,
         .max_batch = plan.batch,
         .fast_prefill = plan.fast_prefill}
    );
    std::vector<Slot> slots(static_cast<std::size_t>(plan.batch));
    // Generation needs one row to start from.
    const bool seed_row = plan.depth + plan.prompt_tokens == 0;
    if (plan.depth > 0 || seed_row) {
      run_prompt(generator, plan, slots, seed_row ? 1 : plan.depth, vocab_size);
    }
    double prompt_s = 0.0;
    if (plan.prompt_tokens > 0) {
      prompt_s = run_prompt(generator, plan, slots, plan.prompt_tokens, vocab_size);
    }
    double generation_s = 0.0;
    if (plan.generation_tokens > 0) {
      // Adds the first token to run. Then each step runs one token and chooses one, per slot.
      for (std::size_t s = 0; s < slots.size(); ++s) {
        slots[s].context.push_back(
            bench_token(static_cast<int>(s), slots[s].context.size(), vocab_size)
        );
      }
      generation_s = run_slots(generator, plan, slots, plan.generation_tokens);
    }
    if (repetition >= 0 && plan.prompt_tokens > 0) {
      rates.prompt_tps.push_back(plan.prompt_tokens * plan.batch / prompt_s);
    }
    if (repetition >= 0 && plan.generation_tokens > 0) {
      rates.generation_tps.push_back(plan.generation_tokens * plan.batch / generation_s);
    }
    if (progress) {
      progress(repetition + 2, plan.repetitions + 1);
    }
  }
  return rates;
}

}  // namespace saker::generate
