// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/request_starter.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/engine/engine.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

namespace saker::engine {
namespace {

std::size_t file_bytes(const load::PromptCache& file) {
  std::size_t bytes = 0;
  for (const cache::SerializedCache& layer : file.layers) {
    for (const Tensor& tensor : layer.state) {
      bytes += tensor.nbytes();
    }
  }
  return bytes;
}

// On the loader's thread.
void read(Submission& submission, bool reads_adapter, const CacheFiles* fingerprints) {
  try {
    if (reads_adapter) {
      submission.adapter = Adapters::read(submission.placement.adapter);
    }
    if (!submission.cache_in.empty()) {
      submission.rows = CacheFiles::read(submission.cache_in);
    }
    if (fingerprints != nullptr) {
      submission.model = fingerprints->compute_fingerprint();
    }
  } catch (...) {
    submission.error = std::current_exception();
  }
}

}  // namespace

RequestStarter::RequestStarter(
    const models::Model& model,
    generate::BatchGenerator& generator,
    std::string prefix_key,
    std::filesystem::path model_dir,
    Post post
)
    : model_(model),
      generator_(generator),
      prefix_key_(std::move(prefix_key)),
      post_(std::move(post)),
      cache_files_(std::move(model_dir)) {}

void RequestStarter::begin(const std::shared_ptr<Submission>& submission) {
  try {
    if (read_files(submission)) {
      return;
    }
  } catch (...) {
    submission->error = std::current_exception();
  }
  start(*submission);
}

bool RequestStarter::read_files(const std::shared_ptr<Submission>& submission) {
  const bool has_rows = submission->cache_in.empty() || submission->rows;
  const bool has_adapter =
      submission->adapter || !adapters_.is_read_first(submission->placement.adapter);
  const bool has_model = (submission->cache_in.empty() && submission->cache_out.empty()) ||
                         submission->model || cache_files_.has_fingerprint();
  if (submission->error || (has_rows && has_adapter && has_model)) {
    return false;
  }
  // Who comes second waits for the first one's adapter.
  const bool reads_adapter =
      !has_adapter && adapters_read_.insert(submission->placement.adapter).second;
  loading_[submission->id] = submission;
  const CacheFiles* fingerprints = has_model ? nullptr : &cache_files_;
  loader_.push([this, submission, reads_adapter, fingerprints] {
    read(*submission, reads_adapter, fingerprints);
    post_([this, submission, reads_adapter] {
      if (reads_adapter) {
        adapters_read_.erase(submission->placement.adapter);
      }
      if (loading_.erase(submission->id) > 0) {
        begin(submission);
      }
    });
  });
  return true;
}

void RequestStarter::cancel(std::uint64_t id) {
  if (const auto found = running_.find(id); found != running_.end()) {
    generator_.cancel(found->second);
  } else if (auto loading = loading_.extract(id)) {
    Submission& submission = *loading.mapped();
    submission.answer->begin(0, [](generate::SequenceEnd&) {});
    submission.answer->on_end(
        {.reason = generate::EndReason::kCancelled,
         .error = nullptr,
         .context = submission.sequence.prompt,
         .cache = std::nullopt,
         .timing = {},
         .speculation = {}}
    );
  }
}

void RequestStarter::cancel_all() {
  while (!running_.empty()) {
    const std::uint64_t id = running_.begin()->second;
    running_.erase(running_.begin());
    generator_.cancel(id);
  }
  while (!loading_.empty()) {
    cancel(loading_.begin()->first);
  }
}

void RequestStarter::complete(Submission& submission) {
  generate::SequenceRequest& sequence = submission.sequence;
  if (submission.error) {
    std::rethrow_exception(submission.error);
  }
  if (submission.adapter) {
    adapters_.keep_read(submission.placement.adapter, std::move(*submission.adapter), model_);
  }
  if (submission.model) {
    cache_files_.set_fingerprint(std::move(*submission.model));
  }
  sequence.adapter = adapters_.use(submission.placement, model_);
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
    CacheFiles::check_save(submission.cache_out, model_, options);
  }
  if (submission.rows) {
    take_rows(submission, options);
  }
}

void RequestStarter::take_rows(Submission& submission, const models::CacheOptions& options) {
  const load::PromptCache& file = *submission.rows;
  const std::size_t bytes = file_bytes(file);
  require(
      generator_.make_room(bytes),
      ErrorCode::kCapacity,
      "cache_in: {} has {} bytes of rows, but only {} are free",
      quote_path(submission.cache_in),
      bytes,
      generator_.memory().room()
  );
  generate::SequenceRequest& sequence = submission.sequence;
  CacheFiles::Rows rows = cache_files_.restore(
      submission.cache_in, file, model_, options, nn::adapter_identity(sequence.adapter)
  );
  submission.rows.reset();
  sequence.unknown_rows = rows.unknown_rows();
  // A file's rows may have other bits than ours, so they are not shared.
  sequence.prefix_key.clear();
  sequence.prompt.insert(sequence.prompt.begin(), rows.tokens.begin(), rows.tokens.end());
  sequence.cache = std::move(rows.cache);
}

void RequestStarter::save_cache(const CacheOut& out, generate::SequenceEnd& end) {
  try {
    const auto rows = static_cast<std::ptrdiff_t>(end.cache->offset() - out.unknown_rows);
    const std::vector<std::int32_t> tokens(end.context.begin(), end.context.begin() + rows);
    const int per_layer = model_.info().caches_per_layer;
    cache_files_.save(out.path, *end.cache, per_layer, tokens, out.adapter);
  } catch (...) {
    end.reason = generate::EndReason::kFailed;
    end.error = std::current_exception();
  }
}

// Does what comes at the request's end, before its stream hears of it.
Answer::Release RequestStarter::make_release(const Submission& submission) {
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

void RequestStarter::start(Submission& submission) {
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
    place->second = generator_.add(std::move(sequence), std::move(submission.answer));
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
