// SPDX-License-Identifier: Apache-2.0
// `saker bench`: tokens per second, beside the machine's limits measured in the same run.
#include "saker/base/files/atomic_file.h"
#include "saker/base/memory.h"
#include "saker/cli/bench/bench_report.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/progress.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command.h"
#include "saker/cli/options/model_args.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

struct BenchArgs {
  ModelArgs model;
  std::vector<std::string> more;  // More models, for comparison.
  engine::BenchRequest request;
  std::string format = "text";
  std::filesystem::path plot;  // Empty: none.
  bool json = false;
};

BenchReport measure(const BenchArgs& args, const std::string& model) {
  ModelArgs model_args = args.model;
  model_args.model = model;
  const auto engine = load_engine(model_args);
  BenchReport report{
      .facts = engine->facts(),
      .request = args.request,
      .result = {},
      .limits = {},
  };
  const std::int64_t faults = cold_faults();
  {
    Progress bar(static_cast<std::uint64_t>(args.request.repetitions) + 1, "measuring");
    report.result = engine->bench(args.request, [&bar](int done, int) {
      bar.set(static_cast<std::uint64_t>(done));
    });
  }
  report.cold_faults = cold_faults() - faults;
  report.cache_bytes = engine->cache_bytes(
      args.request.depth + args.request.prompt_tokens + args.request.generation_tokens / 2,
      args.request.kv_bits
  );
  report.peak_bytes = peak_memory_bytes();
  report.limits = engine->measure_limits();  // Takes memory of its own.
  return report;
}

std::string report_text(const std::vector<BenchReport>& reports, const std::string& format) {
  if (format == "csv") {
    return bench_csv(reports);
  }
  if (format == "md" || (format == "text" && reports.size() > 1)) {
    return bench_markdown(reports);
  }
  std::string text;
  for (const BenchReport& report : reports) {
    text += format == "json" ? dump_line(bench_json(report)) : bench_text(report);
  }
  return text;
}

int run_bench(const BenchArgs& args) {
  std::vector<BenchReport> reports{measure(args, args.model.model)};
  for (const std::string& model : args.more) {
    reports.push_back(measure(args, model));
  }
  print(report_text(reports, args.json ? "json" : args.format));
  if (!args.plot.empty()) {
    AtomicFile file(args.plot);
    file.write(bench_plot(reports));
    file.commit();
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto args = std::make_shared<BenchArgs>();
  CLI::App& command = *app.add_subcommand("bench", "Measure prompt and generation speed");
  add_model_args(command, args->model);
  command.add_option("MODELS", args->more, "More models, to compare them side by side")
      ->type_name("MODEL");
  engine::BenchRequest& request = args->request;
  command.add_option("-p", request.prompt_tokens, "Prompt tokens [512]")
      ->check(between(1, 1 << 24))
      ->type_name("INT");
  command.add_option("-n", request.generation_tokens, "Tokens to generate [128]")
      ->check(between(1, 1 << 24))
      ->type_name("INT");
  command
      .add_option(
          "-b,--batch", request.batch, "Sequences that run in one batch; rates are totals [1]"
      )
      ->check(between(1, 1024))
      ->type_name("INT");
  command.add_option("-d,--depth", request.depth, "Tokens in the cache before the prompt [0]")
      ->check(between(0, 1 << 24))
      ->type_name("INT");
  command
      .add_option(
          "-r,--repetitions", request.repetitions, "Measured repetitions, after a warm-up [5]"
      )
      ->check(between(1, 1000))
      ->type_name("INT");
  add_kv_bits(command, request.kv_bits);
  add_fast_prefill(command, args->model);
  command.add_option("--format", args->format, "Format of the report; several models: md [text]")
      ->check(one_of({"text", "md", "csv", "json"}))
      ->type_name("text|md|csv|json")
      ->group("Output");
  command.add_option("--plot", args->plot, "Also write a plot to this .svg file")
      ->type_name("FILE")
      ->group("Output");
  command.add_flag("--json", args->json, "As --format json: one JSON object for each model");
  command.callback([args, &action] { action = [args] { return run_bench(*args); }; });
}

}  // namespace saker::cli
