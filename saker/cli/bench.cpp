// SPDX-License-Identifier: Apache-2.0
// `saker bench`: tokens per second, beside the machine's limits measured in the same run.
#include "saker/base/memory.h"
#include "saker/cli/command.h"
#include "saker/cli/model_args.h"
#include "saker/cli/output.h"
#include "saker/cli/progress.h"
#include "saker/cli/result_json.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

struct BenchArgs {
  ModelArgs model;
  engine::BenchRequest request;
  bool json = false;
};

struct Report {
  engine::BenchResult result;
  engine::MachineLimits limits;
  std::size_t cache_bytes = 0;
};

Json report_json(const Report& report, const engine::ModelFacts& facts) {
  return {
      {"prompt_tps", spread_json(report.result.prompt_tps)},
      {"generation_tps", spread_json(report.result.generation_tps)},
      {"load_s", facts.load_s},
      {"peak_memory_bytes", peak_memory_bytes()},
      {"limits",
       {{"read_gbps", report.limits.read_gbps},
        {"bf16_gflops", report.limits.bf16_gflops},
        {"f32_gflops", report.limits.f32_gflops},
        {"int8_gops", report.limits.int8_gops}}},
      {"model",
       {{"requested", facts.requested},
        {"path", facts.path.string()},
        {"model_type", facts.model_type},
        {"instruction_set", facts.instruction_set},
        {"weight_bytes", facts.weight_bytes},
        {"cache_bytes", report.cache_bytes}}},
  };
}

std::string spread_line(const char* name, std::vector<double> values) {
  const Json spread = spread_json(std::move(values));
  return fmt::format(
      "{:<12} {:>9.2f} {:>9.2f} {:>9.2f}  tokens/s (min median max)\n",
      name,
      spread["min"].get<double>(),
      spread["median"].get<double>(),
      spread["max"].get<double>()
  );
}

void print_report(const Report& report, const engine::ModelFacts& facts, const BenchArgs& args) {
  print(fmt::format(
      "{}, {}, prompt {} tokens, answer {}, batch {}, depth {}, cache of {} bits\n",
      facts.model_type,
      facts.instruction_set,
      args.request.prompt_tokens,
      args.request.generation_tokens,
      args.request.batch,
      args.request.depth,
      args.request.kv_bits
  ));
  print(spread_line("prompt", report.result.prompt_tps));
  print(spread_line("generation", report.result.generation_tps));
  const double median = spread_json(report.result.generation_tps)["median"].get<double>();
  const double steps = median / args.request.batch;
  const double bytes = static_cast<double>(facts.weight_bytes) +
                       static_cast<double>(report.cache_bytes) * args.request.batch;
  std::string share;
  if (facts.instruction_set != "gpu") {  // Limits are the processor's.
    print(fmt::format(
        "limits       read {:.1f} GB/s, f32 {:.0f} GFLOP/s, bf16 {:.0f} GFLOP/s, int8 {:.0f} "
        "GOP/s\n",
        report.limits.read_gbps,
        report.limits.f32_gflops,
        report.limits.bf16_gflops,
        report.limits.int8_gops
    ));
    const double limit_bytes = report.limits.read_gbps * 1e9;
    share = fmt::format(": {:.0f} % of the read limit", 100 * bytes * steps / limit_bytes);
  }
  print(fmt::format(
      "a step reads {:.1f} MB{}; loaded in {:.2f} s; peak memory {:.0f} MB\n",
      bytes / 1e6,
      share,
      facts.load_s,
      static_cast<double>(peak_memory_bytes()) / 1e6
  ));
}

int run_bench(const BenchArgs& args) {
  const auto engine = load_engine(args.model);
  Report report;
  {
    Progress bar(static_cast<std::uint64_t>(args.request.repetitions) + 1, "measuring");
    report.limits = engine->measure_limits();
    report.result = engine->bench(args.request, [&bar](int done, int) {
      bar.set(static_cast<std::uint64_t>(done));
    });
  }
  report.cache_bytes = engine->cache_bytes(
      args.request.depth + args.request.prompt_tokens + args.request.generation_tokens / 2,
      args.request.kv_bits
  );
  if (args.json) {
    print(dump_line(report_json(report, engine->facts())));
  } else {
    print_report(report, engine->facts(), args);
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto args = std::make_shared<BenchArgs>();
  CLI::App& command = *app.add_subcommand("bench", "Measure prompt and generation speed");
  add_model_args(command, args->model);
  engine::BenchRequest& request = args->request;
  command.add_option("-p", request.prompt_tokens, "Prompt tokens [512]")
      ->check(CLI::Range(1, 1 << 24))
      ->type_name("INT");
  command.add_option("-n", request.generation_tokens, "Tokens to generate [128]")
      ->check(CLI::Range(1, 1 << 24))
      ->type_name("INT");
  command
      .add_option("-b,--batch", request.batch, "Sequences that run together; rates are totals [1]")
      ->check(CLI::Range(1, 1024))
      ->type_name("INT");
  command.add_option("-d,--depth", request.depth, "Rows in the cache before the prompt [0]")
      ->check(CLI::Range(0, 1 << 24))
      ->type_name("INT");
  command
      .add_option(
          "-r,--repetitions", request.repetitions, "Measured repetitions, after a warm-up [5]"
      )
      ->check(CLI::Range(1, 1000))
      ->type_name("INT");
  add_kv_bits(command, request.kv_bits);
  add_fast_prefill(command, args->model);
  command.add_flag("--json", args->json, "Print one JSON object");
  command.callback([args, &action] { action = [args] { return run_bench(*args); }; });
}

}  // namespace saker::cli
