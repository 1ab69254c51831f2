// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loaded model with its text side: the door for programs.
//
//   auto engine = saker::engine::Engine::load("path/to/model", {});
//   auto result = engine->generate({.prompt = "Once upon a time"});
//
// One thread of the engine owns MLX and all caches; requests go to it through a queue and run
// together in one batch, joining and leaving at any step. All members may be called from any
// thread; in handlers, which run on that one, those that wait for it throw kInvalidArgument.
// Answers do not depend on what else runs.

#include "saker/engine/measurements.h"
#include "saker/engine/prompts.h"
#include "saker/engine/request.h"
#include "saker/engine/score_instruments.h"
#include "saker/text/chat_template.h"
#include "saker/text/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::engine {

std::size_t default_prefix_cache_bytes();

struct EngineOptions {
  // Worker threads of CPU kernels; 0: the processors this process may use. All engines of a process
  // share them, and the device: both are what the last one was loaded with.
  int threads = 0;
  std::string device = "cpu";
  int prefill_step = 512;  // Prompt rows of one pass.
  int max_batch = 8;       // Requests that run together; others wait.
  // Prompts run sooner and less precisely, with activations of int8; answers' rows stay as they
  // are. Without effect, and with a warning, where the machine has no such products.
  bool fast_prefill = false;
  // The folder of a draft: a smaller model with the same tokenizer, or a DFlash draft or MTP head
  // made for this model; empty: none.
  std::filesystem::path draft = {};
  bool draft_is_optional = false;  // One that can't be used is a warning: nobody asked for it.
  // Requests will have messages: texts and templates that cannot be read fail before anything else.
  bool chats = false;
  bool mtp = false;  // Loads the MTP head that the model's own files may bring.
  // The one adapter that requests will name, at full strength. Where it has a vocabulary of its own
  // it is fused into the weights while they are loaded, tokenizer included, and nothing else can be
  // asked for (docs/adr/0017); any other is left to the requests. Empty: none or several.
  std::filesystem::path adapter = {};
  // Memory for rows of earlier prompts and answers, which later prompts with the same beginning do
  // not run again; 0: none are kept. Default: an eighth of the memory that there is.
  std::size_t prefix_cache_bytes = default_prefix_cache_bytes();
  // A folder where those rows outlive the engine, bounded in bytes; empty: none. CPU only.
  std::filesystem::path prefix_cache_dir = {};
  std::uintmax_t prefix_cache_dir_bytes = std::uintmax_t{8} << 30;
  // A prompt that branches off where rows are known runs at most so many of them again, where
  // layers keep a window only; fewer cost time, and memory where the window is smaller.
  int prefix_cache_interval = 256;
  std::function<void(int done, int total)> on_load = {
  };  // Layers loaded; called on the engine's thread.
};

// What a model is, for `inspect`, `bench` and logs.
struct ModelFacts {
  std::string requested;       // The model as it was named to `Engine::load`.
  std::filesystem::path path;  // The folder or file that this led to.
  std::string model_type;
  std::string instruction_set;  // Of the CPU kernels; "gpu" on a GPU.
  int vocab_size = 0;
  std::int64_t context_length = 0;
  std::size_t weight_bytes = 0;  // Read by one decode step.
  double load_s = 0.0;           // From open to ready.
  std::string drafter = "none";  // Of requests that name none, as in kSpeculateNames.
  std::vector<std::string> warnings;
};

// What happens to a request, in order: any number of pieces (and progress of long prompts), then
// one end.
struct EventHandler {
  std::function<void(int done, int total)> on_prompt;   // Prompt rows run so far.
  std::function<void(std::string_view piece)> on_text;  // Text that is safe to show.
  // The same text of an answer to messages: what the model thinks and what it says.
  std::function<void(std::string_view piece)> on_reasoning = {};
  std::function<void(std::string_view piece)> on_content = {};
  // The result; the error instead when the request failed (message and code as thrown by
  // `generate`).
  std::function<void(GenerateResult result)> on_done;
  std::function<void(std::exception_ptr error)> on_error;
};

class Engine {
 public:
  // `model`: a folder, a file in GGUF, or what load::resolve_model knows: a repo id in the local
  // hub cache, or nothing for the bundled demo model.
  static std::unique_ptr<Engine> load(
      const std::filesystem::path& model, const EngineOptions& options
  );

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  // Cancels what still runs and waits for it. A handler may be the last owner: then nothing waits
  // but the end of the program.
  ~Engine();

  // Queues a request; its handler is called on the engine's thread and must not block. Returns the
  // request's id.
  std::uint64_t submit(GenerateRequest request, EventHandler handler);
  // Ends a request with FinishReason::kCancelled and what it has so far; unknown ids are ignored.
  // Async-signal-unsafe.
  void cancel(std::uint64_t id);
  // Runs one request and waits.
  GenerateResult generate(GenerateRequest request);
  ScoreResult score(const ScoreRequest& request);
  // The outcome of each, in order. They run in common passes, and what they begin with in common
  // runs once; a request that fails does not keep the others from their results. Generation waits
  // until all are done.
  std::vector<ScoreOutcome> score(std::span<const ScoreRequest> requests);
  // The same, where views whose scores `instruments` knows do not run again. Throws kInternal when
  // its trace can't be written.
  std::vector<ScoreOutcome> score(
      std::span<const ScoreRequest> requests, ScoreInstruments& instruments
  );
  BenchResult bench(
      const BenchRequest& request, const std::function<void(int done, int total)>& progress
  );
  MachineLimits measure_limits();
  // Cache bytes that one decode step reads at this depth, rows kept in `kv_bits` bits.
  std::size_t cache_bytes(std::int64_t depth, int kv_bits) const;

  PrefixCacheStats prefix_cache_stats() const;

  // Sessions keep one conversation's cache between requests.
  std::uint64_t open_session();
  void close_session(std::uint64_t session);  // Also resets: rows are freed.

  const ModelFacts& facts() const;
  // None when the model has no tokenizer.json: requests are token ids then, and results have no
  // text. The same where the tokenizer's files are broken.
  const text::Tokenizer* tokenizer() const;
  // Throws why there is no tokenizer, where there is none.
  void require_text() const;
  // What the tokenizer's configuration names "bos_token", "eos_token" and so on; none where it
  // names none, or a text that is no token.
  std::optional<std::int32_t> special_token(std::string_view name) const;
  // Any of them ends an answer, unless a request says `ignore_eos`.
  const std::vector<std::int32_t>& stop_tokens() const;
  // None when the model has no chat template.
  const text::ChatTemplate* chat_template() const;
  // Sampling options that generation_config.json asks for, over the defaults; for `run` and
  // `--chat`.
  sample::SamplingOptions recommended_sampling() const;
  // The prompt's ids as `generate` would run them.
  std::vector<std::int32_t> prompt_tokens(const GenerateRequest& request) const;
  // What `score` would run, without running it. Throws what it throws for such a text.
  ScorePrompt score_prompt(const ScoreRequest& request) const;

 private:
  class Impl;

  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace saker::engine
