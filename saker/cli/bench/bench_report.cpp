// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/bench/bench_report.h"

#include "saker/cli/io/result_json.h"
#include "saker/cli/score/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

struct Spread {
  double min = 0.0;
  double median = 0.0;
  double max = 0.0;
};

Spread spread(const std::vector<double>& values) {
  const Json json = spread_json(values);
  return {json["min"].get<double>(), json["median"].get<double>(), json["max"].get<double>()};
}

std::string spread_line(const char* name, const std::vector<double>& values) {
  const auto [min, median, max] = spread(values);
  return fmt::format(
      "{:<12} {:>9.2f} {:>9.2f} {:>9.2f}  tokens/s (min median max)\n", name, min, median, max
  );
}

// The requested name of the model; the bundled one has none.
std::string model_name(const BenchReport& report) {
  return report.facts.requested.empty() ? "(bundled demo)" : report.facts.requested;
}

double step_bytes(const BenchReport& report) {
  return static_cast<double>(report.facts.weight_bytes) +
         static_cast<double>(report.cache_bytes) * report.request.batch;
}

// The share of the machine's reading speed; a model in the processor's caches exceeds it.
std::string share_text(const BenchReport& report) {
  const double steps = spread(report.result.generation_tps).median / report.request.batch;
  const double share = 100 * step_bytes(report) * steps / (report.limits.read_gbps * 1e9);
  return share > 100 ? ", from the processor's caches"
                     : fmt::format(": {:.0f} % of the read limit", share);
}

// A bar would end a cell of a Markdown table.
std::string cell(std::string text) {
  std::ranges::replace(text, '|', '/');
  return text;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

std::string rate_cell(const std::vector<double>& values) {
  const auto [min, median, max] = spread(values);
  return fmt::format("{:.1f} ({:.1f} to {:.1f})", median, min, max);
}

}  // namespace

Json bench_json(const BenchReport& report) {
  const engine::ModelFacts& facts = report.facts;
  return {
      {"prompt_tps", spread_json(report.result.prompt_tps)},
      {"generation_tps", spread_json(report.result.generation_tps)},
      {"load_s", facts.load_s},
      {"peak_memory_bytes", report.peak_bytes},
      {"cold_faults", report.cold_faults},
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

std::string bench_text(const BenchReport& report) {
  const engine::BenchRequest& request = report.request;
  std::string text = fmt::format(
      "{}, {}, prompt {} tokens, answer {}, batch {}, depth {}, cache of {} bits\n",
      report.facts.model_type,
      report.facts.instruction_set,
      request.prompt_tokens,
      request.generation_tokens,
      request.batch,
      request.depth,
      request.kv_bits
  );
  text += spread_line("prompt", report.result.prompt_tps);
  text += spread_line("generation", report.result.generation_tps);
  const bool is_gpu = report.facts.instruction_set == "gpu";  // Limits are the processor's.
  if (!is_gpu) {
    text += fmt::format(
        "limits       read {:.1f} GB/s, f32 {:.0f} GFLOP/s, bf16 {:.0f} GFLOP/s, int8 {:.0f} "
        "GOP/s\n",
        report.limits.read_gbps,
        report.limits.f32_gflops,
        report.limits.bf16_gflops,
        report.limits.int8_gops
    );
  }
  return text +
         fmt::format(
             "a step reads {:.1f} MB{}; loaded in {:.2f} s; peak memory {:.0f} MB{}\n",
             step_bytes(report) / 1e6,
             is_gpu ? "" : share_text(report),
             report.facts.load_s,
             static_cast<double>(report.peak_bytes) / 1e6,
             report.cold_faults == 0 ? "" : fmt::format("; {} cold faults", report.cold_faults)
         );
}

std::string bench_markdown(std::span<const BenchReport> reports) {
  using Row = std::vector<std::string>;
  std::vector<Row> rows{
      {"model",
       "type",
       "MB a step",
       "tokens",
       "batch",
       "prompt t/s",
       "generation t/s",
       "load s",
       "cold faults"}
  };
  for (const BenchReport& report : reports) {
    rows.push_back({
        cell(model_name(report)),
        cell(report.facts.model_type),
        fmt::format("{:.1f}", step_bytes(report) / 1e6),
        fmt::format("{} + {}", report.request.prompt_tokens, report.request.generation_tokens),
        fmt::to_string(report.request.batch),
        rate_cell(report.result.prompt_tps),
        rate_cell(report.result.generation_tps),
        fmt::format("{:.2f}", report.facts.load_s),
        fmt::to_string(report.cold_faults),
    });
  }
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string rule = "|";
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += i < 2 ? fmt::format("| {:<{}} ", rows[r][i], widths[i])
                    : fmt::format("| {:>{}} ", rows[r][i], widths[i]);
      rule += std::string(widths[i] + 1, '-') + (i < 2 ? "-|" : ":|");
    }
    text += r == 0 ? "|\n" + rule + "\n" : "|\n";
  }
  return text;
}

std::string bench_csv(std::span<const BenchReport> reports) {
  std::string text =
      "model,path,model_type,instruction_set,prompt_tokens,generation_tokens,batch,depth,kv_bits,"
      "prompt_tps_min,prompt_tps_median,prompt_tps_max,generation_tps_min,generation_tps_median,"
      "generation_tps_max,load_s,peak_memory_bytes,weight_bytes,cache_bytes,"
      "cold_faults\n";
  for (const BenchReport& report : reports) {
    const engine::BenchRequest& request = report.request;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{}",
        csv_cell(report.facts.requested),
        csv_cell(report.facts.path.string()),
        csv_cell(report.facts.model_type),
        report.facts.instruction_set,
        request.prompt_tokens,
        request.generation_tokens,
        request.batch,
        request.depth,
        request.kv_bits
    );
    for (const auto* rates : {&report.result.prompt_tps, &report.result.generation_tps}) {
      const auto [min, median, max] = spread(*rates);
      text += fmt::format(",{},{},{}", min, median, max);
    }
    text += fmt::format(
        ",{},{},{},{},{}\n",
        report.facts.load_s,
        report.peak_bytes,
        report.facts.weight_bytes,
        report.cache_bytes,
        report.cold_faults
    );
  }
  return text;
}

std::string bench_plot(std::span<const BenchReport> reports) {
  constexpr int kWidth = 720;
  constexpr int kLabels = 220;
  constexpr int kBar = 18;
  constexpr int kGap = 8;
  constexpr int kTitle = 34;

  struct Chart {
    std::string_view title;
    std::vector<double> engine::BenchResult::* rates;
    std::string_view colour;
  };

  const Chart charts[] = {
      {"prompt, tokens/s", &engine::BenchResult::prompt_tps, "#1e6eeb"},
      {"generation, tokens/s", &engine::BenchResult::generation_tps, "#e15519"},
  };
  const int rows = static_cast<int>(reports.size());
  const int height = 2 * (kTitle + rows * (kBar + kGap)) + kGap;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"white\"/>\n",
      kWidth,
      height
  );
  int y = 0;
  for (const Chart& chart : charts) {
    text += fmt::format(
        "<text x=\"8\" y=\"{}\" font-weight=\"bold\">{}</text>\n", y + kTitle - 12, chart.title
    );
    y += kTitle;
    double largest = 1e-9;
    for (const BenchReport& report : reports) {
      largest = std::max(largest, spread(report.result.*chart.rates).median);
    }
    for (const BenchReport& report : reports) {
      const double median = spread(report.result.*chart.rates).median;
      const double width = (kWidth - kLabels - 90) * median / largest;
      text += fmt::format(
          "<text x=\"8\" y=\"{0}\">{1}</text><rect x=\"{2}\" y=\"{3}\" width=\"{4:.1f}\" "
          "height=\"{5}\" fill=\"{6}\"/><text x=\"{7:.1f}\" y=\"{0}\">{8:.1f}</text>\n",
          y + kBar - 4,
          escape_html(std::string_view(model_name(report)).substr(0, 30)),
          kLabels,
          y,
          width,
          kBar,
          chart.colour,
          kLabels + width + 6,
          median
      );
      y += kBar + kGap;
    }
  }
  return text + "</svg>\n";
}

}  // namespace saker::cli
