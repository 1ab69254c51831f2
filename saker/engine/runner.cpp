// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/runner.h"

#include "saker/base/error.h"
#include "saker/generate/drafters/assistant.h"
#include "saker/generate/drafters/dflash.h"
#include "saker/generate/drafters/draft_model.h"
#include "saker/generate/drafters/mtp.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace saker::engine {

// A request for the engine's thread, already encoded on the caller's thread.
struct Runner::Submission {
  std::uint64_t id = 0;
  GenerateRequest request;
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> dry_breakers;
  std::vector<std::int32_t> xtc_exempt;
  std::unique_ptr<sample::TokenMask> mask;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  EventHandler handler;
};

namespace {

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

generate::Speculation speculation_of(
    const GenerateRequest& request, const load::LoadedDraft& draft
) {
  generate::Speculation result{.depth = request.draft_depth, .check = request.check_speculation};
  if (request.acceptance == Acceptance::kRejection) {
    result.acceptance = generate::Acceptance::kRejection;
  }
  switch (request.speculate) {
    case Speculate::kDefault:
      result.drafter = draft.dflash                   ? generate::DrafterKind::kDflash
                       : draft.model                  ? generate::DrafterKind::kDraftModel
                       : draft.mtp || draft.assistant ? generate::DrafterKind::kMtp
                                                      : generate::DrafterKind::kNone;
      break;
    case Speculate::kNone:
      break;
    case Speculate::kPromptLookup:
      result.drafter = generate::DrafterKind::kPromptLookup;
      break;
    case Speculate::kDraft:
      result.drafter = generate::DrafterKind::kDraftModel;
      break;
    case Speculate::kMtp:
      result.drafter = generate::DrafterKind::kMtp;
      break;
    case Speculate::kDflash:
      result.drafter = generate::DrafterKind::kDflash;
      break;
  }
  return result;
}

}  // namespace

Runner::Runner(
    std::shared_ptr<const Prompts> prompts,
    const generate::BatchLimits& limits,
    const PrefixOptions& prefixes,
    const LoadModel& load,
    std::filesystem::path model_dir,
    const LoadDraft& load_draft,
    const kernels::ComputeOptions& compute
)
    : id_(next_id()),
      prompts_(std::move(prompts)),
      masks_(prompts_),
      limits_(limits),
      compute_(compute),
      prefix_key_(prefixes.key),
      cache_files_(std::move(model_dir)) {
  if (prefixes.cache.byte_budget > 0) {
    prefixes_.emplace(prefixes.cache);
  }
  std::promise<void> loaded;
  std::future<void> ready = loaded.get_future();
  thread_ = std::thread([this, &load, &load_draft, &loaded] { run(load, load_draft, loaded); });
  try {
    wait_for(ready);
  } catch (...) {
    thread_.join();
    throw;
  }
}

Runner::~Runner() {
  // Refuses requests that handlers submit from now on: they would run to their end.
  jobs_.close_after([this] {
    while (!running_.empty()) {
      const std::uint64_t id = running_.begin()->second;
      running_.erase(running_.begin());
      generator_->cancel(id);
    }
  });
  const kernels::DeviceTurn::Pause pause;
  thread_.join();
}

std::uint64_t Runner::submit(GenerateRequest request, EventHandler handler) {
  const std::uint64_t id = ++last_id_;
  auto submission = std::make_shared<Submission>();
  submission->id = id;
  submission->handler = std::move(handler);
  std::exception_ptr error;
  try {
    submission->prompt = prompts_->encode(request, context_length_);
    submission->mask = masks_.make(request, submission->prompt);
    submission->dry_breakers = prompts_->dry_breakers(request);
    if (request.sampling.xtc_probability > 0.0) {
      submission->xtc_exempt = prompts_->xtc_exempt();
    }
    submission->deadline = deadline_of(request.timeout);
    spdlog::debug(
        "request {}: {} prompt tokens, at most {} more, temperature {}, seed {}",
        id,
        submission->prompt.size(),
        request.max_tokens,
        request.sampling.temperature,
        request.sampling.seed
    );
    submission->request = std::move(request);
  } catch (...) {
    error = typed_error(std::current_exception());
  }
  const bool queued = jobs_.push([this, submission, error] {
    if (error == nullptr) {
      start(*submission);
    } else if (submission->handler.on_error) {
      submission->handler.on_error(error);
    }
  });
  require(queued, ErrorCode::kCancelled, "the engine is shutting down");
  return id;
}

void Runner::cancel(std::uint64_t id) {
  jobs_.push([this, id] {
    if (const auto found = running_.find(id); found != running_.end()) {
      generator_->cancel(found->second);
    }
  });
}

std::uint64_t Runner::open_session() {
  const std::uint64_t id = ++last_id_;
  auto place = std::make_shared<Sessions::Place>(Sessions::place_for(id));
  jobs_.push([this, place] { sessions_.open(std::move(*place)); });
  return id;
}

void Runner::close_session(std::uint64_t session) {
  jobs_.push([this, session] { sessions_.close(session); });
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
      "a handler waits for its own engine: only submit, cancel and sessions are for handlers"
  );
}

generate::Drafters Runner::make_drafters() const {
  generate::Drafters drafters;
  if (draft_.model) {
    drafters[generate::DrafterKind::kDraftModel] =
        std::make_unique<generate::DraftModel>(*draft_.model, limits_.prefill_step);
  }
  if (draft_.assistant) {
    drafters[generate::DrafterKind::kMtp] =
        std::make_unique<generate::Assistant>(*draft_.assistant, *model_);
  } else if (draft_.mtp) {
    drafters[generate::DrafterKind::kMtp] = std::make_unique<generate::Mtp>(*draft_.mtp, *model_);
  }
  if (draft_.dflash) {
    drafters[generate::DrafterKind::kDflash] =
        std::make_unique<generate::Dflash>(*draft_.dflash, *model_);
  }
  return drafters;
}

void Runner::run(const LoadModel& load, const LoadDraft& load_draft, std::promise<void>& loaded) {
  const kernels::ComputeBinding binding(compute_);
  try {
    const kernels::DeviceTurn turn(compute_.device());
    model_ = load();
    context_length_ = model_->info().context_length;
    if (load_draft) {
      draft_ = load_draft();
    }
    drafter_ = generate::drafter_name(speculation_of({}, draft_).drafter);
    generator_ = std::make_unique<generate::BatchGenerator>(
        *model_, limits_, prefixes_ ? &*prefixes_ : nullptr, make_drafters()
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

void Runner::serve() {
  while (true) {
    std::optional<std::function<void()>> job = generator_->idle() ? jobs_.pop() : jobs_.try_pop();
    if (!job && generator_->idle()) {
      return;
    }
    const kernels::DeviceTurn turn(compute_.device());
    try {
      if (job) {
        (*job)();
      } else {
        generator_->step();
      }
    } catch (const std::exception& error) {
      // The handler of a request that could not start threw; other requests continue.
      spdlog::error("engine: {}", error.what());
    } catch (...) {
      spdlog::error("engine: a handler threw");
    }
  }
}

generate::SequenceRequest Runner::make_sequence(Submission& submission) {
  const GenerateRequest& request = submission.request;
  generate::SequenceRequest sequence;
  sequence.prompt = submission.prompt;
  sequence.adapter = adapters_.use(request, *model_);
  sequence.max_kv_size = request.max_kv_size;
  sequence.kv_bits = request.kv_bits;
  // Bound, bits and adapter change what rows contain and attend to.
  sequence.prefix_key = fmt::format(
      "{}max_kv_size={} kv_bits={} adapter={}",
      prefix_key_,
      request.max_kv_size,
      request.kv_bits,
      nn::adapter_identity(sequence.adapter)
  );
  sequence.max_tokens =
      request.max_tokens == kNoTokenLimit ? std::numeric_limits<int>::max() : request.max_tokens;
  sequence.sampling = request.sampling;
  sequence.xtc_exempt = submission.xtc_exempt;
  sequence.dry_breakers = submission.dry_breakers;
  sequence.logprobs = request.logprobs;
  sequence.speculation = speculation_of(request, draft_);
  sequence.mask = std::move(submission.mask);
  sequence.priority = request.priority;
  sequence.user = request.user;
  sequence.deadline = submission.deadline;
  if (!request.ignore_eos) {
    sequence.stop_tokens = prompts_->eos_tokens();
  }
  const models::CacheOptions options{
      .max_kv_size = request.max_kv_size, .kv_bits = request.kv_bits
  };
  if (!request.cache_out.empty()) {
    CacheFiles::check_save(request.cache_out, *model_, options);
  }
  if (!request.cache_in.empty()) {
    require(
        request.session == 0,
        ErrorCode::kInvalidArgument,
        "a request continues a session or a cache file, not both"
    );
    require(
        !sequence.prompt.empty(),
        ErrorCode::kInvalidArgument,
        "the prompt is empty: expected at least one token after the cache file's rows"
    );
    CacheFiles::Rows rows = cache_files_.load(
        request.cache_in, *model_, options, nn::adapter_identity(sequence.adapter)
    );
    sequence.unknown_rows = rows.unknown_rows();
    // A file's rows may have other bits than ours, so they are not shared.
    sequence.prefix_key.clear();
    sequence.prompt.insert(sequence.prompt.begin(), rows.tokens.begin(), rows.tokens.end());
    sequence.cache = std::move(rows.cache);
  }
  return sequence;
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

// What happens at the request's end, before its handler hears of it.
Answer::Release Runner::make_release(
    const Submission& submission, const generate::SequenceRequest& sequence
) {
  return [this,
          id = submission.id,
          session = submission.request.session,
          out = CacheOut{
              .path = submission.request.cache_out,
              .adapter = nn::adapter_identity(sequence.adapter),
              .unknown_rows = sequence.unknown_rows,
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
  const GenerateRequest& request = submission.request;
  const EventHandler& handler = submission.handler;
  const std::uint64_t session = request.session;
  bool taken = false;
  std::optional<cache::SequenceCache> kept;  // The session's rows until the request starts.
  std::exception_ptr error;
  try {
    generate::SequenceRequest sequence = make_sequence(submission);
    const std::size_t file_rows = sequence.prompt.size() - submission.prompt.size();
    if (session != 0) {
      sequence.cache = sessions_.take(
          session,
          submission.prompt,
          {.max_kv_size = request.max_kv_size, .kv_bits = request.kv_bits},
          nn::adapter_identity(sequence.adapter)
      );
      taken = true;
      if (sequence.cache) {
        spdlog::debug(
            "request {}: the session has {} rows", submission.id, sequence.cache->offset()
        );
        kept = sequence.cache->copy();
      }
    }
    Answer::Setup setup{
        .prompt = submission.prompt,
        .rows_before = static_cast<int>(file_rows),
        .stop = request.stop,
        .with_logprobs = request.logprobs >= 0,
        .is_chat = request.messages.has_value(),
    };
    auto answer = std::make_unique<Answer>(
        prompts_->tokenizer().get(), std::move(setup), handler, make_release(submission, sequence)
    );
    // Nothing fails once the request runs: its handler would hear of two ends.
    const auto place = running_.try_emplace(submission.id).first;
    place->second = generator_->add(std::move(sequence), std::move(answer));
  } catch (...) {
    error = typed_error(std::current_exception());
  }
  if (error == nullptr) {
    return;
  }
  running_.erase(submission.id);
  if (taken) {
    sessions_.give_back(session, std::move(submission.prompt), std::move(kept));
  }
  if (handler.on_error) {
    handler.on_error(std::move(error));
  }
}

}  // namespace saker::engine
