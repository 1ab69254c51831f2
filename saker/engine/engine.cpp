// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/engine.h"

#include "saker/adapters/fuse.h"
#include "saker/adapters/resized.h"
#include "saker/base/error.h"
#include "saker/base/memory.h"
#include "saker/engine/draft_check.h"
#include "saker/engine/embed_texts.h"
#include "saker/engine/prompts.h"
#include "saker/engine/rerank_documents.h"
#include "saker/engine/runner.h"
#include "saker/engine/scoring.h"
#include "saker/generate/bench.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/limits/machine_limits.h"
#include "saker/kernels/ops/linear.h"
#include "saker/load/checkpoint.h"
#include "saker/load/draft.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/model_identity.h"
#include "saker/load/sources/open_texts.h"
#include "saker/score/importance.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>

namespace saker::engine {
namespace {

// Existing paths stay unchanged; names are looked up in the hub cache.
std::filesystem::path found_model(const std::filesystem::path& model) {
  std::error_code ignored;
  const bool is_path = !model.empty() && std::filesystem::exists(model, ignored);
  return is_path ? model : load::resolve_model(model.string());
}

// The adapter that must be fused into the weights; empty: none.
std::filesystem::path fused_adapter(
    const std::filesystem::path& model_dir, const EngineOptions& options
) {
  const bool fuses =
      !options.adapter.empty() && adapters::has_own_vocabulary(model_dir, options.adapter);
  return fuses ? options.adapter : std::filesystem::path();
}

Prompts::Parts read_prompts(const text::ModelTexts& texts, bool chats) {
  Prompts::Parts parts = Prompts::read(texts);
  if (chats && parts.text_error) {
    throw Error(*parts.text_error);
  }
  if (chats && parts.chat_template) {
    parts.chat_template->check();
  }
  return parts;
}

// The texts of a model, with those of the adapter fused into its weights; an empty path: none.
// `chats`: they must serve messages, so that unreadable ones throw.
std::shared_ptr<const Prompts> load_prompts(
    const std::filesystem::path& model_dir, const std::filesystem::path& fused_adapter, bool chats
) {
  if (fused_adapter.empty()) {
    return std::make_shared<const Prompts>(read_prompts(load::open_model_texts(model_dir), chats));
  }
  std::map<std::string, text::ModelTexts::Text, std::less<>> files;
  for (auto& [name, file] : adapters::fused_texts(model_dir, fused_adapter)) {
    files.emplace(name, std::move(file));
  }
  files["config.json"] = load::config_of(load::open_model_dir(model_dir));
  Prompts::Parts parts = read_prompts(text::ModelTexts(model_dir, std::move(files)), chats);
  if (parts.text_error) {
    throw Error(*parts.text_error);  // Such an adapter exists for its own tokens.
  }
  return std::make_shared<const Prompts>(std::move(parts));
}

generate::BatchLimits batch_limits(const EngineOptions& options) {
  return {
      .prefill_step = options.prefill_step,
      .max_batch = options.batch,
      .fast_prefill = options.fast_prefill,
      .target_itl = options.target_itl,
      .memory = {.budget = options.cache_memory},
  };
}

Runner::PrefixOptions prefix_options(
    const std::filesystem::path& model_dir, const EngineOptions& options
) {
  Runner::PrefixOptions result;
  result.cache.byte_budget = options.prefix_cache;
  result.cache.on_rows = options.on_prefix_rows;
  result.cache.interval = options.prefix_cache_interval;
  if (!options.prefix_cache_dir.empty()) {
    require(
        options.prefix_cache > 0,
        ErrorCode::kInvalidArgument,
        "prefix_cache_dir: files keep rows that leave memory, got a prefix cache of 0 bytes"
    );
    require(
        options.device == "cpu",
        ErrorCode::kUnsupported,
        "prefix_cache_dir: rows of a GPU cannot be kept in files"
    );
    result.cache.folder = options.prefix_cache_dir;
    result.cache.folder_budget = options.prefix_cache_dir_size;
    result.key = load::model_identity(model_dir) + (options.fast_prefill ? " fast prefill" : "");
  }
  return result;
}

// Ends the loading of weights; callers hear what is broken.
constexpr const char* kBrokenTexts = "the model's texts are broken";

}  // namespace

class Engine::Impl {
 public:
  Impl(const std::filesystem::path& model_dir, const EngineOptions& options)
      : limits_(batch_limits(options)),
        fused_adapter_(fused_adapter(model_dir, options)),
        runner_(
            [&] { return load_texts(model_dir, options); },
            {.limits = limits_,
             .prefixes = prefix_options(model_dir, options),
             .compute = {.device = options.device, .threads = options.threads},
             .max_queue = options.max_queue,
             .model_dir = model_dir},
            [&] { return load_model(model_dir, options); },
            [this] { return load_draft(); }
        ) {
    facts_.warnings.insert(
        facts_.warnings.begin() + weight_warnings_,
        prompts_->warnings().begin(),
        prompts_->warnings().end()
    );
    if (!fused_adapter_.empty()) {
      runner_.call([&](const models::Model&) {
        runner_.adapters().set_fused(fused_adapter_, adapter_identity_);
      });
    }
  }

  Runner& runner() { return runner_; }

  const Prompts& prompts() const { return *prompts_; }

  ModelFacts& facts() { return facts_; }

  const generate::BatchLimits& limits() const { return limits_; }

 private:
  // On the caller's thread, while the engine's loads the weights.
  std::shared_ptr<const Prompts> load_texts(
      const std::filesystem::path& model_dir, const EngineOptions& options
  ) {
    try {
      prompts_ = load_prompts(model_dir, fused_adapter_, options.chats);
      return_freed_memory();  // Else a vocabulary's copies are beside the weights.
      draft_loader_.set_value(draft_loader(model_dir, options));
    } catch (...) {
      texts_failed_ = true;
      draft_loader_.set_exception(std::make_exception_ptr(Error(ErrorCode::kCancelled, kBrokenTexts)
      ));
      throw;
    }
    return prompts_;
  }

  // Waits for the texts, with which a draft's are compared.
  load::LoadedDraft load_draft() {
    std::future<Runner::LoadDraft> loader = draft_loader_.get_future();
    return Runner::wait_for(loader)();
  }

  load::LoadedCheckpoint load_weights(
      const std::filesystem::path& model_dir, const EngineOptions& options
  ) {
    const auto on_load = [&](int done, int total) {
      require(!texts_failed_, ErrorCode::kCancelled, "{}", kBrokenTexts);
      if (options.on_load) {
        options.on_load(done, total);
      }
    };
    if (fused_adapter_.empty()) {
      return load::load_checkpoint(model_dir, on_load, options.mtp);
    }
    auto fused = adapters::load_fused(model_dir, fused_adapter_, on_load, options.mtp);
    adapter_identity_ = std::move(fused.adapter_identity);
    return std::move(fused.loaded);
  }

  std::unique_ptr<const models::Model> load_model(
      const std::filesystem::path& model_dir, const EngineOptions& options
  ) {
    load::LoadedCheckpoint loaded = load_weights(model_dir, options);
    const models::ModelInfo& info = loaded.model->info();
    facts_.model_type = info.model_type;
    facts_.instruction_set = kernels::on_cpu() ? kernels::instruction_set() : "gpu";
    facts_.vocab_size = info.vocab_size;
    facts_.context_length = info.context_length;
    facts_.weight_bytes = info.weight_bytes;
    facts_.warnings = std::move(loaded.warnings);
    weight_warnings_ = std::ssize(facts_.warnings);
    if (options.fast_prefill && !kernels::multiplies_int8()) {
      facts_.warnings.push_back(
          "fast_prefill: no effect, since " +
          (options.device == "cpu" ? "the instruction set " + facts_.instruction_set : "a GPU") +
          " has no products of int8"
      );
    }
    mtp_ = std::move(loaded.mtp);
    target_ = info;
    return std::move(loaded.model);
  }

  // Gives what loads the draft, or hands over the model's own head. REQUIRES: its result is called
  // after `load_model`, by the runner.
  Runner::LoadDraft draft_loader(
      const std::filesystem::path& model_dir, const EngineOptions& options
  ) {
    if (!options.draft_is_optional) {
      return needed_draft_loader(model_dir, options);
    }
    const auto without = [this](const Error& error) {
      facts_.warnings.push_back(fmt::format("draft: not used: {}", error.what()));
      return load::LoadedDraft{.mtp = std::move(mtp_)};
    };
    try {
      return [without, load = needed_draft_loader(model_dir, options)] {
        try {
          return load();
        } catch (const Error& error) {
          return without(error);
        }
      };
    } catch (const Error& error) {
      return [without, error] { return without(error); };
    }
  }

  Runner::LoadDraft needed_draft_loader(
      const std::filesystem::path& model_dir, const EngineOptions& options
  ) {
    const bool is_own = options.draft == load::find_draft(model_dir);
    // The draft beside the base knows the base's tokens only.
    const bool is_of_base = !fused_adapter_.empty() && is_own;
    if (options.draft.empty() || is_of_base) {
      return [this, is_of_base] {
        if (is_of_base) {
          facts_.warnings.push_back("draft: not used, since the adapter has tokens of its own");
        }
        return load::LoadedDraft{.mtp = std::move(mtp_)};
      };
    }
    load::open_model_texts(options.draft);
    const bool same_tokens = check_draft_tokens(*prompts_, options.draft);
    return [this, draft = options.draft, same_tokens] {
      load::LoadedDraft loaded = load::load_draft(draft, target_);
      if (loaded.model) {
        check_draft_heads({facts_.vocab_size, loaded.model->info().vocab_size}, same_tokens, draft);
      }
      for (const std::string& warning : loaded.warnings) {
        facts_.warnings.push_back("draft: " + warning);
      }
      if (!loaded.mtp) {
        loaded.mtp = std::move(mtp_);
      }
      return loaded;
    };
  }

  generate::BatchLimits limits_;
  ModelFacts facts_;
  models::ModelInfo target_;
  std::unique_ptr<const models::MtpHead> mtp_;  // Until the runner takes it.
  std::filesystem::path fused_adapter_;         // Empty: none is in the weights.
  std::string adapter_identity_;                // The identity of fused_adapter_.
  // The caller's thread sets these two for the engine's.
  std::atomic<bool> texts_failed_{false};
  std::promise<Runner::LoadDraft> draft_loader_;
  std::ptrdiff_t weight_warnings_ = 0;  // In facts_.warnings; the texts' follow.
  std::shared_ptr<const Prompts> prompts_;
  Runner runner_;
};

std::unique_ptr<Engine> Engine::load(
    const std::filesystem::path& model, const EngineOptions& options
) {
  const auto start = std::chrono::steady_clock::now();
  const std::filesystem::path path = found_model(model);
  auto impl = std::make_unique<Impl>(path, options);
  impl->facts().requested = model.string();
  impl->facts().path = path;
  impl->facts().drafter = impl->runner().drafter();
  impl->facts().load_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const ModelFacts& facts = impl->facts();
  spdlog::info(
      "loaded {} in {:.2f} s: {}, {} bytes read a step, context {}, instruction set {}",
      path.string(),
      facts.load_s,
      facts.model_type,
      facts.weight_bytes,
      facts.context_length,
      facts.instruction_set
  );
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Engine::~Engine() {
  if (impl_->runner().is_own_thread()) {
    Runner::run_elsewhere([impl = impl_.release()] { delete impl; });
  }
}

Stream Engine::submit(Request request) {
  return impl_->runner().submit(std::move(request));
}

void Engine::cancel(std::uint64_t id) {
  impl_->runner().cancel(id);
}

GenerateResult Engine::generate(Request request) {
  impl_->runner().check_caller();
  return submit(std::move(request)).result();
}

ScoreResult Engine::score(const ScoreRequest& request) {
  ScoreOutcome outcome = std::move(score(std::span(&request, 1)).front());
  if (const Error* error = std::get_if<Error>(&outcome)) {
    throw Error(*error);
  }
  return std::get<ScoreResult>(std::move(outcome));
}

std::vector<ScoreOutcome> Engine::score(std::span<const ScoreRequest> requests) {
  return score_requests(impl_->runner(), impl_->prompts(), impl_->limits().prefill_step, requests);
}

std::vector<ScoreOutcome> Engine::score(
    std::span<const ScoreRequest> requests, ScoreInstruments& instruments
) {
  return score_requests(
      impl_->runner(), impl_->prompts(), impl_->limits().prefill_step, requests, &instruments
  );
}

score::InputSquaresByModule Engine::input_squares(const ImportanceRequest& request) {
  Runner& runner = impl_->runner();
  const score::ImportanceOptions options{
      .chunk = request.chunk,
      .chunks = request.chunks,
      .first_token = request.first_token,
      .head = request.head,
      .before_pass = [&runner] { return runner.serve_others(); },
      .progress = request.progress,
  };
  return runner.call([&](const models::Model& model) {
    return score::measure_importance(model, request.tokens, options).modules;
  });
}

EmbedResult Engine::embed(const EmbedRequest& request) {
  return embed_texts(impl_->runner(), impl_->prompts(), impl_->limits().prefill_step, request);
}

RerankResult Engine::rerank(const RerankRequest& request) {
  return rerank_documents(impl_->runner(), impl_->prompts(), impl_->limits().prefill_step, request);
}

BenchResult Engine::bench(
    const BenchRequest& request, const std::function<void(int done, int total)>& progress
) {
  const generate::BenchPlan plan{
      .prompt_tokens = request.prompt_tokens,
      .generation_tokens = request.generation_tokens,
      .batch = request.batch,
      .depth = request.depth,
      .repetitions = request.repetitions,
      .prefill_step = impl_->limits().prefill_step,
      .fast_prefill = impl_->limits().fast_prefill,
      .kv_bits = request.kv_bits,
  };
  generate::BenchRates rates = impl_->runner().call([&](const models::Model& model) {
    return generate::run_bench(model, plan, progress);
  });
  return {
      .prompt_tps = std::move(rates.prompt_tps), .generation_tps = std::move(rates.generation_tps)
  };
}

MachineLimits Engine::measure_limits() {
  const kernels::MachineLimits limits =
      impl_->runner().call([](const models::Model&) { return kernels::measure_limits(); });
  return {
      .read_gbps = limits.read_gbps,
      .f32_gflops = limits.f32_gflops,
      .bf16_gflops = limits.bf16_gflops,
      .int8_gops = limits.int8_gops,
  };
}

std::size_t Engine::cache_bytes(std::int64_t depth, int kv_bits) const {
  require(
      depth >= 0 && kernels::is_kv_bits(kv_bits),
      ErrorCode::kInvalidArgument,
      "cache_bytes: got {} rows of {} bits, expected 0 or more of 32, 16, 8 or 4",
      depth,
      kv_bits
  );
  return impl_->runner().call([depth, kv_bits](const models::Model& model) {
    return model.cache_bytes(depth, kv_bits);
  });
}

double Engine::busy_seconds() const {
  return impl_->runner().busy_seconds();
}

QueueStats Engine::queue_stats() const {
  return impl_->runner().queue_stats();
}

PrefixCacheStats Engine::prefix_cache_stats() const {
  const cache::PrefixCacheStats stats = impl_->runner().prefix_stats();
  return {
      .lookups = stats.lookups,
      .hits = stats.hits,
      .prompt_tokens = stats.prompt_tokens,
      .restored_tokens = stats.restored_tokens,
      .loaded_tokens = stats.loaded_tokens,
      .evictions = stats.evictions,
      .bytes = stats.bytes,
  };
}

std::uint64_t Engine::open_session() {
  return impl_->runner().open_session();
}

void Engine::close_session(std::uint64_t session) {
  impl_->runner().close_session(session);
}

const ModelFacts& Engine::facts() const {
  return impl_->facts();
}

const text::Tokenizer* Engine::tokenizer() const {
  return impl_->prompts().tokenizer().get();
}

void Engine::require_text() const {
  impl_->prompts().tokenizer_for_text();
}

std::optional<std::int32_t> Engine::special_token(std::string_view name) const {
  return impl_->prompts().special_token(name);
}

const std::vector<std::int32_t>& Engine::stop_tokens() const {
  return impl_->prompts().eos_tokens();
}

const text::ChatTemplate* Engine::chat_template() const {
  return impl_->prompts().chat_template();
}

sample::SamplingOptions Engine::recommended_sampling() const {
  return impl_->prompts().recommended_sampling();
}

std::vector<std::int32_t> Engine::prompt_tokens(const Request& request) const {
  return impl_->prompts().encode(request);
}

ScorePrompt Engine::score_prompt(const ScoreRequest& request) const {
  return impl_->prompts().encode(request);
}

}  // namespace saker::engine
