// SPDX-License-Identifier: Apache-2.0
#pragma once

// The engine's thread. Only this thread touches MLX, the model and all caches. Others hand it jobs
// through a queue; between jobs it runs steps of the batch while there is something to generate.
// All members may be called from any thread but the engine's own.

#include "saker/base/error.h"
#include "saker/base/thread_queue.h"
#include "saker/cache/prefix_cache.h"
#include "saker/engine/adapters.h"
#include "saker/engine/answer.h"
#include "saker/engine/answer_masks.h"
#include "saker/engine/pass_clock.h"
#include "saker/engine/prompts.h"
#include "saker/engine/request_queue.h"
#include "saker/engine/request_starter.h"
#include "saker/engine/stream.h"
#include "saker/generate/batch_generator.h"
#include "saker/kernels/cpu/runtime/memory_account.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/gpu/device_turns.h"
#include "saker/load/draft.h"
#include "saker/models/model.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace saker::engine {

class Runner {
 public:
  using LoadPrompts = std::function<std::shared_ptr<const Prompts>()>;
  using LoadModel = std::function<std::unique_ptr<const models::Model>()>;
  using LoadDraft = std::function<load::LoadedDraft()>;

  struct PrefixOptions {
    cache::PrefixCacheOptions cache;  // A byte budget of 0: no rows are shared.
    std::string key;                  // Identifies the model, where rows outlive the engine.
  };

  struct Options {
    generate::BatchLimits limits = {};
    PrefixOptions prefixes = {};
    kernels::ComputeOptions compute = {};
    int max_queue = 0;                     // See EngineOptions.
    std::filesystem::path model_dir = {};  // Prompt-cache files need it.
  };

  // Loads the model on the new thread and, meanwhile, the prompts on the caller's; waits for both.
  // Throws what loading throws, for the prompts first. `load_draft` loads a draft after the model;
  // empty: none. Threads of CPU kernels end with the runner.
  Runner(
      const LoadPrompts& load_prompts,
      const Options& options,
      const LoadModel& load,
      const LoadDraft& load_draft = {}
  );
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner();  // Cancels all requests and waits. REQUIRES: not on the engine's thread.

  // Destroys an engine from its own thread, on another; the program's end waits for that. If no
  // thread can be started, the engine is leaked: on its own thread it would wait for itself.
  static void run_elsewhere(std::function<void()> destroy);

  // See Engine::submit.
  Stream submit(Request request);
  void cancel(std::uint64_t id);
  std::uint64_t open_session();
  void close_session(std::uint64_t session);
  cache::PrefixCacheStats prefix_stats();

  // Never waits.
  QueueStats queue_stats() const;

  // See Engine::busy_seconds.
  double busy_seconds() const { return clock_.seconds(); }

  // Unique among the runners of the process.
  std::uint64_t id() const { return id_; }

  // The model's context, in tokens.
  std::int64_t context_length() const { return info_.context_length; }

  // Drafter of requests that name none; a name of kSpeculateNames.
  const std::string& drafter() const { return drafter_; }

  bool is_own_thread() const;

  // Called by members that wait for the engine's thread. Throws kInvalidArgument on that thread.
  void check_caller() const;

  // REQUIRES: on the engine's thread, where jobs of `call` run.
  Adapters& adapters();

  // Reads the adapters of these views on the caller's thread, before jobs that need them.
  void read_adapters(std::span<const View> views);

  // For jobs of `call` that take long, before each of their passes: new requests start, and answers
  // go on for their share of the time. Returns the tokens that the job's next pass may have.
  // REQUIRES: on the engine's thread.
  int serve_others();

  // Serves others before a job's pass. Throws kCancelled once it is asked to stop.
  std::function<int()> before_pass(std::stop_token stop);

  // Waits for another thread's result; threads of other engines may wait here.
  template <typename Value>
  static Value wait_for(std::future<Value>& result) {
    const kernels::DeviceTurn::Pause pause;
    return result.get();
  }

  // Runs `job(model)` on the engine's thread and waits; throws what it throws, as saker::Error.
  template <typename Job>
  auto call(Job job) {
    using Value = decltype(job(std::declval<const models::Model&>()));
    check_caller();
    // Shared, because the engine's thread may still use it when the caller has its value.
    const auto promise = std::make_shared<std::promise<Value>>();
    std::future<Value> future = promise->get_future();
    const auto run = [this, promise, &job] {
      const kernels::AccountBinding uncounted(nullptr);  // Jobs bound their memory themselves.
      try {
        if constexpr (std::is_void_v<Value>) {
          job(*model_);
          promise->set_value();
        } else {
          promise->set_value(job(*model_));
        }
      } catch (...) {
        promise->set_exception(typed_error(std::current_exception()));
      }
    };
    const bool queued = jobs_.push({.run = run, .is_call = true});
    require(queued, ErrorCode::kCancelled, "the engine is shutting down");
    return wait_for(future);
  }

 private:
  struct Job {
    std::function<void()> run;
    bool is_call = false;  // Somebody waits for it, and it may take long.
  };

  void run(const LoadModel& load, const LoadDraft& load_draft, std::promise<void>& loaded);
  void serve();
  // Runs a job, or a step of the generator; nothing escapes.
  void run_safely(const std::function<void()>& work) noexcept;
  void step();
  std::shared_ptr<StreamState> make_stream(int choices);
  // All that needs no thread of the engine's, checked; `prompt` is encoded.
  std::shared_ptr<Submission> prepare(
      const Request& request, const std::vector<std::int32_t>& prompt, Answer::Target target
  );

  std::uint64_t id_;
  std::shared_ptr<const Prompts> prompts_;  // Set before the constructor ends, as is masks_.
  std::optional<AnswerMasks> masks_;
  generate::BatchLimits limits_;
  RequestQueue queue_;
  models::ModelInfo info_;  // Set before the constructor ends.
  std::string drafter_;     // Set before the constructor ends.
  std::atomic<std::uint64_t> last_id_{0};
  ThreadQueue<Job> jobs_;
  kernels::ComputeContext compute_;
  std::shared_ptr<kernels::MemoryAccount> account_ = std::make_shared<kernels::MemoryAccount>();
  std::atomic<std::int64_t> preemptions_{0};
  PassClock clock_;

  // Only for the engine's thread.
  std::unique_ptr<const models::Model> model_;
  load::LoadedDraft draft_;
  std::optional<cache::PrefixCache> prefixes_;
  std::string prefix_key_;
  std::filesystem::path model_dir_;
  std::unique_ptr<generate::BatchGenerator> generator_;
  std::unique_ptr<RequestStarter> starter_;
  std::chrono::steady_clock::time_point served_others_ = {};  // The last time.

  std::thread thread_;
};

}  // namespace saker::engine
