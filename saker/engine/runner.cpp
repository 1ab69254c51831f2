// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/runner.h"

#include "saker/base/error.h"
#include "saker/engine/answer_setup.h"
#include "saker/engine/drafting.h"
#include "saker/generate/request_check.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace saker::engine {

namespace {

// A longer prediction helps only with its beginning.
constexpr std::size_t kMostPredictedTokens = std::size_t{1} << 17;

// Quick jobs, such as new requests, between two steps at most.
constexpr int kJobsPerStep = 32;
// Answers run this many times as long as a job that runs beside them: they lose 30 % of their speed.
constexpr double kAnswersShare = 7.0 / 3.0;
constexpr auto kLongestPass = std::chrono::seconds(10);

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

// `timeout` seconds from now; 0: never.
std::chrono::steady_clock::time_point deadline_of(double timeout) {
  using Clock = std::chrono::steady_clock;
  const auto now = Clock::now();
  const std::chrono::duration<double> most = Clock::time_point::max() - now;
  if (timeout <= 0.0 || timeout >= most.count()) {
    return Clock::time_point::max();
  }
  return now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout));
}

void check_choices(const Request& request) {
  require(
      request.output.n >= 1 && request.output.n <= kMostChoices,
      ErrorCode::kInvalidArgument,
      "n: got {}, expected 1 to {}",
      request.output.n,
      kMostChoices
  );
  require(
      request.output.n == 1 || (request.prompt.session == 0 && request.prompt.cache_in.empty() &&
                                request.output.cache_out.empty()),
      ErrorCode::kInvalidArgument,
      "n: got {}, expected 1 with a session or a cache file",
      request.output.n
  );
  require(
      request.prompt.session == 0 || request.prompt.cache_in.empty(),
      ErrorCode::kInvalidArgument,
      "a request continues a session or a cache file, not both"
  );
}

}  // namespace

Runner::Runner(
    const LoadPrompts& load_prompts,
    const Options& options,
    const LoadModel& load,
    const LoadDraft& load_draft
)
    : id_(next_id()),
      limits_(options.limits),
      queue_(options.max_queue, options.limits.max_batch),
      compute_(options.compute),
      prefix_key_(options.prefixes.key),
      model_dir_(options.model_dir) {
  limits_.memory.account = account_;
  limits_.memory.give_way = [this] { return starter_->sessions().give_way(); };
  if (options.prefixes.cache.byte_budget > 0) {
    prefixes_.emplace(options.prefixes.cache);
  }
  std::promise<void> loaded;
  std::future<void> ready = loaded.get_future();
  thread_ = std::thread([this, &load, &load_draft, &loaded] { run(load, load_draft, loaded); });
  try {
    prompts_ = load_prompts();
    masks_.emplace(prompts_);
    wait_for(ready);
  } catch (...) {
    jobs_.close();  // Else a loaded model would wait for jobs.
    const kernels::DeviceTurn::Pause pause;
    thread_.join();
    throw;
  }
}

Runner::~Runner() {
  // Refuses requests from now on: they would run to their end.
  jobs_.close_after({.run = [this] { starter_->cancel_all(); }});
  const kernels::DeviceTurn::Pause pause;
  thread_.join();
}

void Runner::run_elsewhere(std::function<void()> destroy) {
  static std::mutex mutex;
  static std::vector<std::future<void>> leaving;
  const std::lock_guard lock(mutex);
  std::erase_if(leaving, [](const std::future<void>& gone) {
    return gone.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  try {
    leaving.reserve(leaving.size() + 1);  // A started task must have its place.
    leaving.push_back(std::async(std::launch::async, std::move(destroy)));
  } catch (const std::exception& error) {
    spdlog::warn("an engine is not given back: {}", error.what());
  }
}

std::shared_ptr<StreamState> Runner::make_stream(int choices) {
  const std::uint64_t first = last_id_.fetch_add(static_cast<std::uint64_t>(choices)) + 1;
  return std::make_shared<StreamState>(first, choices, [this, first, choices] {
    for (int choice = 0; choice < choices; ++choice) {
      cancel(first + static_cast<std::uint64_t>(choice));
    }
  });
}

Stream Runner::submit(Request request) {
  check_choices(request);
  queue_.check(request.output.n);
  const std::vector<std::int32_t> prompt = prompts_->encode(request, info_.context_length);
  const std::shared_ptr<StreamState> state = make_stream(request.output.n);
  std::vector<std::shared_ptr<Submission>> choices;
  for (int choice = 0; choice < request.output.n; ++choice) {
    choices.push_back(prepare(request, prompt, {state, choice}));
    ++request.sampling.seed;
  }
  spdlog::debug(
      "request {}: {} prompt tokens, at most {} more, temperature {}, seed {}",
      state->id(),
      prompt.size(),
      request.output.max_tokens,
      request.sampling.temperature,
      request.sampling.seed - choices.size()
  );
  const bool queued = jobs_.push({.run = [this, choices = std::move(choices)] {
    for (const std::shared_ptr<Submission>& choice : choices) {
      starter_->begin(choice);
    }
  }});
  require(queued, ErrorCode::kCancelled, "the engine is shutting down");
  return Stream(state);
}

std::shared_ptr<Submission> Runner::prepare(
    const Request& request, const std::vector<std::int32_t>& prompt, Answer::Target target
) {
  auto submission = std::make_shared<Submission>();
  submission->id = target.stream->id() + static_cast<std::uint64_t>(target.choice);
  submission->placement = request.placement;
  submission->session = request.prompt.session;
  submission->cache_in = request.prompt.cache_in;
  submission->cache_out = request.output.cache_out;
  submission->prompt_size = prompt.size();
  generate::SequenceRequest& sequence = submission->sequence;
  sequence.prompt = prompt;
  sequence.max_kv_size = request.placement.max_kv_size;
  sequence.kv_bits = request.placement.kv_bits;
  sequence.max_tokens = request.output.max_tokens == kNoTokenLimit ? std::numeric_limits<int>::max()
                                                                   : request.output.max_tokens;
  sequence.sampling = request.sampling;
  sequence.dry_breakers = prompts_->dry_breakers(request);
  if (request.sampling.xtc_probability > 0.0) {
    sequence.xtc_exempt = prompts_->xtc_exempt();
  }
  if (!request.output.ignore_eos) {
    sequence.stop_tokens = prompts_->eos_tokens();
  }
  sequence.logprobs = request.output.logprobs;
  sequence.speculation = speculation_of(request.drafting, draft_);
  sequence.prediction = prompts_->prediction(request, kMostPredictedTokens);
  sequence.priority = request.placement.priority;
  sequence.user = request.placement.user;
  sequence.deadline = deadline_of(request.placement.timeout);
  generate::check_request(sequence, info_);
  sample::check_options(sequence.sampling, info_.vocab_size);
  sequence.mask = masks_->make(request, prompt);
  submission->answer = std::make_unique<Answer>(
      prompts_->tokenizer(),
      answer_setup(request, prompt, *prompts_),
      target,
      queue_.enter(target.choice == 0 ? static_cast<std::int64_t>(prompt.size()) : 0)
  );
  submission->target = std::move(target);
  return submission;
}

void Runner::cancel(std::uint64_t id) {
  jobs_.push({.run = [this, id] { starter_->cancel(id); }});
}

std::uint64_t Runner::open_session() {
  const std::uint64_t id = ++last_id_;
  auto place = std::make_shared<Sessions::Place>(Sessions::place_for(id));
  jobs_.push({.run = [this, place] { starter_->sessions().open(std::move(*place)); }});
  return id;
}

void Runner::close_session(std::uint64_t session) {
  jobs_.push({.run = [this, session] { starter_->sessions().close(session); }});
}

cache::PrefixCacheStats Runner::prefix_stats() {
  return call([this](const models::Model&) {
    return prefixes_ ? prefixes_->stats() : cache::PrefixCacheStats{};
  });
}

bool Runner::is_own_thread() const {
  return std::this_thread::get_id() == thread_.get_id();
}

void Runner::check_caller() const {
  require(
      !is_own_thread(),
      ErrorCode::kInvalidArgument,
      "the engine's own thread waits for the engine: only submit, cancel and sessions are for "
      "callbacks"
  );
}

void Runner::run(const LoadModel& load, const LoadDraft& load_draft, std::promise<void>& loaded) {
  const kernels::ComputeBinding binding(compute_);
  const kernels::AccountBinding counted(account_);
  try {
    const kernels::DeviceTurn turn(compute_.device());
    model_ = load();
    info_ = model_->info();
    if (load_draft) {
      draft_ = load_draft();
    }
    drafter_ = generate::drafter_name(speculation_of({}, draft_).drafter);
    generator_ = std::make_unique<generate::BatchGenerator>(
        *model_,
        limits_,
        prefixes_ ? &*prefixes_ : nullptr,
        make_drafters(draft_, *model_, limits_.prefill_step)
    );
    starter_ = std::make_unique<RequestStarter>(
        *model_,
        *generator_,
        prefix_key_,
        model_dir_,
        [this](std::function<void()> job) { return jobs_.push({.run = std::move(job)}); }
    );
  } catch (...) {
    generator_.reset();
    draft_ = {};
    model_.reset();
    loaded.set_exception(typed_error(std::current_exception()));
    return;
  }
  loaded.set_value();
  serve();
  const kernels::DeviceTurn turn(compute_.device());
  // MLX arrays must be destroyed on the thread that made them.
  generator_.reset();
  starter_.reset();
  prefixes_.reset();
  draft_ = {};
  model_.reset();
  mx::clear_streams();
}

void Runner::run_safely(const std::function<void()>& work) noexcept {
  const PassClock::Pass pass(clock_);
  try {
    work();
  } catch (const std::exception& error) {
    spdlog::error("engine: {}", error.what());
  } catch (...) {
    spdlog::error("engine: a job threw");
  }
}

void Runner::serve() {
  int jobs = 0;  // Since the last step.
  while (true) {
    std::optional<Job> job = generator_->idle() ? jobs_.pop() : jobs_.try_pop();
    if (!job && generator_->idle()) {
      return;
    }
    const kernels::DeviceTurn turn(compute_.device());
    if (job) {
      served_others_ = std::chrono::steady_clock::now();
      run_safely(job->run);
      ++jobs;
    }
    // However many jobs come, answers go on.
    if (!job || job->is_call || jobs == kJobsPerStep) {
      run_safely([this] { step(); });
      jobs = 0;
    }
  }
}

void Runner::step() {
  generator_->step();
  preemptions_ = generator_->preemptions();
}

QueueStats Runner::queue_stats() const {
  QueueStats stats = queue_.stats();
  stats.preemptions = preemptions_;
  stats.cache_bytes = account_->bytes();
  stats.cache_memory = limits_.memory.budget;
  return stats;
}

Adapters& Runner::adapters() {
  return starter_->adapters();
}

void Runner::read_adapters(std::span<const View> views) {
  std::set<std::filesystem::path> files;
  for (const View& view : views) {
    if (!view.adapter.empty()) {
      files.insert(view.adapter);
    }
  }
  for (const std::filesystem::path& file : files) {
    if (!call([&](const models::Model&) { return adapters().is_read_first(file); })) {
      continue;
    }
    try {
      adapters::AdapterSource source = Adapters::read(file);
      call([&](const models::Model& model) { adapters().keep_read(file, std::move(source), model); }
      );
    } catch (const Error&) {
      // The request that needs it finds the same.
    }
  }
}

std::function<int()> Runner::before_pass(std::stop_token stop) {
  return [this, stop = std::move(stop)] {
    const auto check = [&stop] {
      require(!stop.stop_requested(), ErrorCode::kCancelled, "the call was cancelled");
    };
    check();
    const int tokens = serve_others();
    check();
    return tokens;
  };
}

int Runner::serve_others() {
  const kernels::AccountBinding counted(account_);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  // Jobs that ended long ago do not count.
  const auto job_time = std::min<Clock::duration>(begin - served_others_, kLongestPass);
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(job_time * kAnswersShare);
  do {
    while (const std::optional<Job> job =
               jobs_.try_pop_if([](const Job& each) { return !each.is_call; })) {
      run_safely(job->run);
    }
    if (generator_->idle()) {
      break;
    }
    run_safely([this] { step(); });
  } while (Clock::now() < end);
  served_others_ = Clock::now();
  return generator_->tokens_beside();
}

}  // namespace saker::engine
