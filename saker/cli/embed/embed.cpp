// SPDX-License-Identifier: Apache-2.0
// `saker embed`: prints the vectors of texts.
#include "saker/cli/embed/text_inputs.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/progress.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/options/command.h"
#include "saker/cli/options/model_args.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

// Texts that run in one call; Ctrl-C and the progress bar come between.
constexpr std::size_t kTogether = 256;
constexpr int kMaxDimensions = 1 << 24;

struct EmbedArgs {
  ModelArgs model;
  TextArgs texts;
  std::string pooling;
  std::string prompt;
  std::string adapter;
  double adapter_scale = 1.0;
  bool raw = false;
  bool json = false;
  engine::EmbedRequest request;
};

// The shortest digits that give the same float.
std::string vector_text(const std::vector<float>& vector) {
  std::string text = "[";
  for (const float x : vector) {
    text += text.size() > 1 ? "," : "";
    text += std::isfinite(x) ? fmt::to_string(x) : "null";
  }
  return text + "]";
}

// Prints the vectors of the inputs as they come.
class VectorPrinter {
 public:
  explicit VectorPrinter(bool json) : json_(json) {
    if (json_) {
      print("{\"embeddings\":[");
    }
  }

  void add(const engine::EmbedResult& result) {
    for (const std::vector<float>& vector : result.embeddings) {
      print(json_ ? (is_first_ ? "" : ",") + vector_text(vector) : vector_text(vector) + "\n");
      is_first_ = false;
    }
    tokens_ += result.tokens;
  }

  void end() const {
    if (json_) {
      print(fmt::format("],\"tokens\":{}}}\n", tokens_));
    }
  }

 private:
  bool json_;
  bool is_first_ = true;
  std::int64_t tokens_ = 0;
};

int run_embed(EmbedArgs args) {
  const std::vector<engine::EmbedInput> inputs = read_inputs(args.texts);
  engine::EmbedRequest& request = args.request;
  const auto engine = load_engine(args.model, whole_adapter(args.adapter, args.adapter_scale));
  std::vector<engine::EmbedResult> results;
  std::int64_t truncated = 0;
  std::optional<Progress> bar;
  if (inputs.size() > kTogether) {
    bar.emplace(inputs.size(), "embedding");
  }
  for (std::size_t first = 0; first < inputs.size(); first += kTogether) {
    const auto some = std::span(inputs).subspan(first, std::min(kTogether, inputs.size() - first));
    request.inputs.assign(some.begin(), some.end());
    results.push_back(engine->embed(request));
    truncated += results.back().truncated;
    if (bar) {
      bar->set(first + some.size());
    }
  }
  bar.reset();
  if (truncated > 0) {
    spdlog::warn("{} of {} texts are cut to the model's context", truncated, inputs.size());
  }
  // Only now: a text that fails must not leave half of an object.
  VectorPrinter printer(args.json);
  for (const engine::EmbedResult& result : results) {
    printer.add(result);
  }
  printer.end();
  return 0;
}

void add_vector_options(CLI::App& command, EmbedArgs& args) {
  constexpr const char* kGroup = "Vectors";
  command
      .add_option(
          "--pooling",
          args.pooling,
          "The row that becomes the vector: the last or first (cls) token's, or the mean of all "
          "[the model's, else last]"
      )
      ->check(one_of({"last", "mean", "cls"}))
      ->type_name("last|mean|cls")
      ->group(kGroup);
  command
      .add_option(
          "--dimensions",
          args.request.dimensions,
          "Keep so many first elements, for models that were trained for it [all]"
      )
      ->check(between(1, kMaxDimensions))
      ->type_name("INT")
      ->group(kGroup);
  command.add_flag("--no-normalize", args.raw, "Keep the vectors' own length [unit length]")
      ->group(kGroup);
  auto* const name = command.add_option(
      "--prompt-name",
      args.request.prompt_name,
      "A prompt of the model that begins each text, such as query or document"
  );
  name->type_name("NAME")->group(kGroup);
  command.add_option("--prompt", args.prompt, "The prompt itself: a text that begins each text")
      ->excludes(name)
      ->type_name("TEXT")
      ->group(kGroup);
  command
      .add_flag(
          "--truncate",
          args.request.truncate,
          "Cut texts that are longer than the model's context, which are an error otherwise"
      )
      ->group(kGroup);
}

}  // namespace

void add_embed(CLI::App& app, Action& action) {
  auto args = std::make_shared<EmbedArgs>();
  CLI::App& command = *app.add_subcommand("embed", "Compute vectors of texts");
  add_model_args(command, args->model);
  const TextOptions input = add_text_args(command, args->texts, "Texts to embed");
  add_vector_options(command, *args);
  add_adapter_args(command, args->adapter, args->adapter_scale);
  command.add_flag("--json", args->json, "Print {\"embeddings\", \"tokens\"}");
  command.callback([=, &action, prompt = command.get_option("--prompt")] {
    require_one("texts", {input.texts, input.file});
    args->request.pooling = models::find_pooling(args->pooling);
    args->request.view = {.adapter = args->adapter, .strength = args->adapter_scale};
    if (args->raw) {
      args->request.normalize = false;
    }
    if (prompt->count() > 0) {
      args->request.prompt = args->prompt;
    }
    action = [args] { return run_embed(*args); };
  });
}

}  // namespace saker::cli
