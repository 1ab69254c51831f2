// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loaded model with its text side: the entry point for programs.
//
//   auto engine = saker::engine::Engine::load("path/to/model", {});
//   auto result = engine->generate({.prompt = {.text = "Once upon a time"}});
//
// One thread of the engine owns MLX and all caches. Requests reach it through a queue and run
// together in one batch; they join and leave at any step. All members may be called from any
// thread. Callbacks of a stream may run on the engine's thread: members that wait for it throw
// kInvalidArgument there. Answers do not depend on what else runs.

#include "saker/engine/embedding.h"
#include "saker/engine/importance.h"
#include "saker/engine/measurements.h"
#include "saker/engine/prompts.h"
#include "saker/engine/request.h"
#include "saker/engine/score_instruments.h"
#include "saker/engine/stream.h"
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

// An eighth of usable memory.
std::size_t default_prefix_cache_bytes();

// Three quarters of usable memory.
std::size_t default_cache_memory_bytes();

// Keys of rows that belong to no adapter and to no cache_salt end so.
inline constexpr std::string_view kBaseRows = " adapter=";

// How a model is loaded.
struct EngineOptions {
  // Worker threads of CPU kernels; 0: as many as processors this process may use. They are the
  // engine's own and end with it.
  int threads = 0;
  // "cpu" or "gpu". Engines of different devices take turns, a pass each.
  std::string device = "cpu";
  int prefill_step = 512;  // Prompt tokens per pass.
  int batch = 8;           // Requests that run together; others wait.
  int max_queue = 4096;  // Requests that may wait; more are refused with kCapacity. 0: any number.
  // Seconds that prompts may add to a step while somebody waits for the next token; 0: any.
  double target_itl = 0.25;
  // Runs prompts faster and less precisely, with activations of int8; tokens of answers are not
  // affected. No effect, but a warning, if the machine has no int8 products.
  bool fast_prefill = false;
  // Folder of a draft: a smaller model with the same tokenizer, or a DFlash draft, EAGLE-3 head or
  // MTP head made for this model. Empty: none.
  std::filesystem::path draft = {};
  bool draft_is_optional = false;  // Only warns if the draft can't be used: nobody asked for it.
  // Requests will have messages: unreadable texts and templates are errors, which end the loading.
  bool chats = false;
  bool mtp = false;  // Loads the MTP head if the model's own files have one.
  // The one adapter that requests will name, at full strength. If it has its own vocabulary, it is
  // fused into the weights at load, tokenizer included. No other adapter or strength can be
  // requested then (docs/adr/0017). Otherwise it is left to the requests. Empty: none or several.
  std::filesystem::path adapter = {};
  // Memory for rows of earlier prompts and answers, in bytes. Later prompts with the same beginning
  // do not run them again. 0: none are kept. Default: an eighth of usable memory.
  std::size_t prefix_cache = default_prefix_cache_bytes();
  // Memory for all rows and states: of running requests, of sessions, and of earlier prompts, which
  // give way first. A request that can't ever fit is refused. If memory ends, requests of low
  // priority wait and go on later. 0: any. Draft models and scoring have memory of their own.
  std::size_t cache_memory = default_cache_memory_bytes();
  // Folder in which those rows outlive the engine, limited in bytes; empty: none. CPU only.
  std::filesystem::path prefix_cache_dir = {};
  std::uintmax_t prefix_cache_dir_size = std::uintmax_t{8} << 30;
  // Layers with a window only: a prompt that branches off known rows runs at most this many of them
  // again. A smaller number costs time, and memory if the window is smaller.
  int prefix_cache_interval = 256;
  // Hears which rows are in memory, on the engine's thread: those of the first `held` of these
  // tokens are, those of the others are not. No tokens: there are no rows. `key` is for all that
  // rows depend on besides tokens. May be empty.
  std::function<void(std::string_view key, std::span<const std::int32_t> tokens, std::int64_t held)>
      on_prefix_rows = {};
  std::function<void(int done, int total)> on_load = {
  };  // Layers loaded; called on the engine's thread.
};

// Facts about a model, for `inspect`, `bench` and logs.
struct ModelFacts {
  std::string requested;       // The name given to `Engine::load`.
  std::filesystem::path path;  // The folder or file it led to.
  std::string model_type;
  std::string instruction_set;      // CPU kernels' instruction set; "gpu" on a GPU.
  int vocab_size = 0;               // Rows of the head.
  std::int64_t context_length = 0;  // In tokens.
  std::size_t weight_bytes = 0;     // Read by one decode step.
  double load_s = 0.0;              // From open to ready.
  std::string drafter = "none";     // For requests that name none; a name of kSpeculateNames.
  std::vector<std::string> warnings;
};

// A loaded model that answers requests.
class Engine {
 public:
  // `model`: a folder, a GGUF file, or a name for load::resolve_model. A name is a repo id in the
  // local hub cache; an empty one is the bundled demo model.
  static std::unique_ptr<Engine> load(
      const std::filesystem::path& model, const EngineOptions& options
  );

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  // Cancels running requests and waits for them. If the engine's thread is the last owner, only the
  // end of the program waits.
  ~Engine();

  // Checks and queues a request. Throws what is wrong with it: kInvalidArgument, kUnsupported;
  // kCapacity if the queue is full. Later errors, as of its adapter or its cache file, are a Failure
  // in the stream.
  Stream submit(Request request);
  // As Stream::cancel, by the stream's id; unknown ids are ignored. Async-signal-unsafe.
  void cancel(std::uint64_t id);
  // Runs one request and waits.
  GenerateResult generate(Request request);
  // Scores one request and waits.
  ScoreResult score(const ScoreRequest& request);
  // Returns the outcome of each request, in order. They run in common passes; common beginnings run
  // once. A request that fails leaves the others' results intact. Answers go on between the passes.
  std::vector<ScoreOutcome> score(std::span<const ScoreRequest> requests);
  // As above, but views whose scores `instruments` has do not run again. Throws kInternal when its
  // trace can't be written.
  std::vector<ScoreOutcome> score(
      std::span<const ScoreRequest> requests, ScoreInstruments& instruments
  );
  // The vectors of texts, which run in common passes; each has the same bits alone. Throws for the
  // first input that fails. Answers go on between the passes.
  EmbedResult embed(const EmbedRequest& request);
  // Scores documents by a query, in common passes. Throws for the first document that fails.
  RerankResult rerank(const RerankRequest& request);
  // Runs a text in chunks, each alone, and adds up the squares of all linear layers' inputs. Throws
  // kInvalidArgument for a text shorter than a chunk. Answers go on between the passes.
  score::InputSquaresByModule input_squares(const ImportanceRequest& request);
  // Measures the model. `progress` counts repetitions, the warm-up included.
  BenchResult bench(
      const BenchRequest& request, const std::function<void(int done, int total)>& progress
  );
  // Measures the machine with the engine's threads.
  MachineLimits measure_limits();
  // Cache bytes that one decode step reads at this depth, for rows of `kv_bits` bits.
  std::size_t cache_bytes(std::int64_t depth, int kv_bits) const;

  // Does not wait for the engine's thread.
  QueueStats queue_stats() const;

  // Seconds for which the engine's thread has been in its present pass; 0 if it waits for work. A
  // value far above the time of a pass means that it hangs. Never waits.
  double busy_seconds() const;
  // Counts since the model was loaded.
  PrefixCacheStats prefix_cache_stats() const;

  // Sessions keep one conversation's cache between requests.
  std::uint64_t open_session();
  void close_session(std::uint64_t session);  // Ends it and frees its rows.

  // Known once the model is loaded.
  const ModelFacts& facts() const;
  // Null if the model has no tokenizer.json or the tokenizer's files are broken. Requests are token
  // ids then, and results have no text.
  const text::Tokenizer* tokenizer() const;
  // Throws the reason if there is no tokenizer.
  void require_text() const;
  // The token that the tokenizer's configuration names "bos_token", "eos_token" and so on. None if
  // it has no such name, or one that is no token.
  std::optional<std::int32_t> special_token(std::string_view name) const;
  // Each of them ends an answer, unless the request sets `ignore_eos`.
  const std::vector<std::int32_t>& stop_tokens() const;
  // Null if the model has no chat template.
  const text::ChatTemplate* chat_template() const;
  // Sampling options of generation_config.json, over the defaults; for `run` and `--chat`.
  sample::SamplingOptions recommended_sampling() const;
  // The prompt's ids as `generate` would run them.
  std::vector<std::int32_t> prompt_tokens(const Request& request) const;
  // The tokens that `score` would run. Throws what `score` throws for such a text.
  ScorePrompt score_prompt(const ScoreRequest& request) const;

 private:
  class Impl;

  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace saker::engine
