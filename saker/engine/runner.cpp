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
#include <thread>
#include <utility>
#include <vector>

namespace saker::engine {

// A choice of a request for the engine's thread, encoded and checked on the caller's thread.
struct Runner::Submission {
  std::uint64_t id = 0;
  Placement placement;
  std::uint64_t session = 0;
  std::filesystem::path cache_in;
  std::filesystem::path cache_out;
  std::size_t prompt_size = 0;
  generate::SequenceRequest sequence;
  std::unique_ptr<Answer> answer;
  Answer::Target target;
};

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
      cache_files_(options.model_dir) {
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
  jobs_.close_after({.run = [this] {
    while (!running_.empty()) {
      const std::uint64_t id = running_.begin()->second;
      running_.erase(running_.begin());
      generator_->cancel(id);
    }
  }});
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
      start(*choice);
    }
  }});
  require(queued, ErrorCode::kCancelled, "the engine is shutting down");
  return Stream(state);
}

std::shared_ptr<Runner::Submission> Runner::prepare(
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
  jobs_.push({.run = [this, id] {
    if (const auto found = running_.find(id); found != running_.end()) {
      generator_->cancel(found->second);
    }
  }});
}

std::uint64_t Runner::open_session() {
  const std::uint64_t id = ++last_id_;
  auto place = std::make_shared<Sessions::Place>(Sessions::place_for(id));
  jobs_.push({.run = [this, place] { sessions_.open(std::move(*place)); }});
  return id;
}

void Runner::close_session(std::uint64_t session) {
  jobs_.push({.run = [this, session] { sessions_.close(session); }});
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
  sessions_ = {};
  prefixes_.reset();
  adapters_ = {};
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
      run_safely([this] { generator_->step(); });
      jobs = 0;
    }
  }
}

int Runner::serve_others() {
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
    run_safely([this] { generator_->step(); });
  } while (Clock::now() < end);
  served_others_ = Clock::now();
  return generator_->tokens_beside();
}

void Runner::complete(Submission& submission) {
  generate::SequenceRequest& sequence = submission.sequence;
  sequence.adapter = adapters_.use(submission.placement, *model_);
  // Bound, bits and adapter change what rows contain and attend to.
  sequence.prefix_key = fmt::format(
      "{}max_kv_size={} kv_bits={}{}{}",
      prefix_key_,
      sequence.max_kv_size,
      sequence.kv_bits,
      kBaseRows,
      nn::adapter_identity(sequence.adapter)
  );
  if (!submission.placement.cache_salt.empty()) {
    sequence.prefix_key += fmt::format(" salt={:?}", submission.placement.cache_salt);
  }
  const models::CacheOptions options{
      .max_kv_size = sequence.max_kv_size, .kv_bits = sequence.kv_bits
  };
  if (!submission.cache_out.empty()) {
    CacheFiles::check_save(submission.cache_out, *model_, options);
  }
  if (!submission.cache_in.empty()) {
    CacheFiles::Rows rows = cache_files_.load(
        submission.cache_in, *model_, options, nn::adapter_identity(sequence.adapter)
    );
    sequence.unknown_rows = rows.unknown_rows();
    // A file's rows may have other bits than ours, so they are not shared.
    sequence.prefix_key.clear();
    sequence.prompt.insert(sequence.prompt.begin(), rows.tokens.begin(), rows.tokens.end());
    sequence.cache = std::move(rows.cache);
  }
}

void Runner::save_cache(const CacheOut& out, generate::SequenceEnd& end) {
  try {
    const auto rows = static_cast<std::ptrdiff_t>(end.cache->offset() - out.unknown_rows);
    const std::vector<std::int32_t> tokens(end.context.begin(), end.context.begin() + rows);
    cache_files_.save(out.path, *end.cache, tokens, out.adapter);
  } catch (...) {
    end.reason = generate::EndReason::kFailed;
    end.error = std::current_exception();
  }
}

// What happens at the request's end, before its stream hears of it.
Answer::Release Runner::make_release(const Submission& submission) {
  return [this,
          id = submission.id,
          session = submission.session,
          out = CacheOut{
              .path = submission.cache_out,
              .adapter = nn::adapter_identity(submission.sequence.adapter),
              .unknown_rows = submission.sequence.unknown_rows,
          }](generate::SequenceEnd& end) {
    running_.erase(id);
    spdlog::debug(
        "request {}: ended, {} tokens in all, {} of the prompt not run; drafts by {}: {} of {} "
        "right in {} rounds",
        id,
        end.context.size(),
        end.cached_tokens,
        generate::drafter_name(end.drafter),
        end.speculation.accepted,
        end.speculation.drafted,
        end.speculation.rounds
    );
    const bool whole =
        end.reason != generate::EndReason::kFailed && end.reason != generate::EndReason::kCancelled;
    if (!out.path.empty() && end.cache && whole) {
      save_cache(out, end);
    }
    if (session != 0) {
      sessions_.give_back(session, std::move(end.context), std::move(end.cache));
    }
  };
}

void Runner::start(Submission& submission) {
  const std::uint64_t session = submission.session;
  std::optional<std::vector<std::int32_t>> taken;  // The prompt of a session whose rows were taken.
  std::optional<cache::SequenceCache> kept;        // Those rows until the request starts.
  std::exception_ptr error;
  try {
    complete(submission);
    generate::SequenceRequest& sequence = submission.sequence;
    const std::size_t file_rows = sequence.prompt.size() - submission.prompt_size;
    if (session != 0) {
      sequence.cache = sessions_.take(
          session,
          sequence.prompt,
          {.max_kv_size = sequence.max_kv_size, .kv_bits = sequence.kv_bits},
          nn::adapter_identity(sequence.adapter)
      );
      taken = sequence.prompt;
      if (sequence.cache) {
        spdlog::debug(
            "request {}: the session has {} rows", submission.id, sequence.cache->offset()
        );
        kept = sequence.cache->copy();
      }
    }
    submission.answer->begin(static_cast<int>(file_rows), make_release(submission));
    // Nothing fails once the request runs: its stream would hear of two ends.
    const auto place = running_.try_emplace(submission.id).first;
    place->second = generator_->add(std::move(sequence), std::move(submission.answer));
  } catch (...) {
    error = std::current_exception();
  }
  if (error == nullptr) {
    return;
  }
  running_.erase(submission.id);
  if (taken) {
    sessions_.give_back(session, std::move(*taken), std::move(kept));
  }
  submission.target.fail(error);
}

}  // namespace saker::engine
