// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/generate_records.h"

#include "saker/base/error.h"
#include "saker/base/memory.h"
#include "saker/cli/io/json_lines.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/requests/streaming.h"
#include "saker/engine/options/apply_options.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace saker::cli {
namespace {

// Records to read ahead of the oldest unanswered one, per place in the batch: keeps the batch full
// behind a long answer.
constexpr std::size_t kReadAhead = 8;

struct Pending {
  Json id = Json(Json::value_t::discarded);
  std::optional<Json> answer;
  bool failed = false;
};

class RecordsRunner {
 public:
  RecordsRunner(engine::Engine& engine, const RecordsRun& run)
      : engine_(engine), run_(run), lines_(run.file) {}

  // Ends requests that still use this object.
  ~RecordsRunner() {
    for (const std::uint64_t id : ids_) {
      engine_.cancel(id);
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_ == 0; });
  }

  RecordsRunner(const RecordsRunner&) = delete;
  RecordsRunner& operator=(const RecordsRunner&) = delete;

  int run() {
    const std::size_t ahead = kReadAhead * static_cast<std::size_t>(run_.batch);
    int failures = 0;
    bool more = true;
    while (more || !pending_.empty()) {
      while (more && pending_.size() < ahead) {
        more = start_next();
      }
      if (pending_.empty()) {
        break;
      }
      const std::shared_ptr<Pending> oldest = std::move(pending_.front());
      pending_.pop_front();
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return oldest->answer.has_value(); });
      }
      failures += oldest->failed ? 1 : 0;
      print(dump_line(*oldest->answer));
    }
    lines_.warn_if_empty();
    require(
        failures == 0,
        ErrorCode::kInvalidArgument,
        "{}: {} records failed",
        run_.file.string(),
        failures
    );
    return 0;
  }

 private:
  // Starts the next record's request; false at the end of the file.
  bool start_next() {
    const std::optional<std::string> line = lines_.next();
    if (!line) {
      return false;
    }
    auto pending = std::make_shared<Pending>();
    pending_.push_back(pending);
    try {
      const Json record = parse_json(*line, lines_.where());
      if (record.is_object() && record.contains("id")) {
        pending->id = record["id"];
      }
      submit(make_request(record), pending);
    } catch (const Error& error) {
      fail(*pending, error);
    } catch (const std::bad_alloc& error) {
      // A smaller record may still fit.
      fail(*pending, Error(ErrorCode::kCapacity, std::string(*out_of_memory_reason(error))));
    }
    return true;
  }

  engine::GenerateRequest make_request(const Json& record) const {
    engine::GenerateRequest request = run_.defaults;
    engine::apply_record(record, request);
    as_chat(request, run_.chat);
    return request;
  }

  void submit(engine::GenerateRequest request, const std::shared_ptr<Pending>& pending) {
    const bool with_logprobs = request.logprobs >= 0;
    engine::EventHandler handler;
    handler.on_done = [this, pending, with_logprobs](const engine::GenerateResult& result) {
      finish(*pending, with_id(pending->id, to_json(result, with_logprobs)), false);
    };
    handler.on_error = [this, pending](const std::exception_ptr& error) {
      try {
        std::rethrow_exception(error);
      } catch (const Error& typed) {
        finish(*pending, record_error(pending->id, typed), true);
      } catch (const std::exception& other) {
        finish(
            *pending, record_error(pending->id, Error(ErrorCode::kInternal, other.what())), true
        );
      }
    };
    {
      const std::lock_guard lock(mutex_);
      ++running_;
    }
    try {
      const std::uint64_t id = engine_.submit(std::move(request), std::move(handler));
      ids_.push_back(id);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      --running_;
      throw;
    }
  }

  void fail(Pending& pending, const Error& error) {
    const std::lock_guard lock(mutex_);
    pending.failed = true;
    pending.answer = record_error(pending.id, error);
  }

  void finish(Pending& pending, Json answer, bool failed) {
    const std::lock_guard lock(mutex_);
    pending.failed = failed;
    pending.answer = std::move(answer);
    --running_;
    changed_.notify_all();
  }

  engine::Engine& engine_;
  const RecordsRun& run_;
  JsonLines lines_;
  std::deque<std::shared_ptr<Pending>> pending_;
  std::vector<std::uint64_t> ids_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;
};

}  // namespace

void as_chat(engine::GenerateRequest& request, const ChatOptions& chat) {
  if (chat.enabled && request.prompt) {
    request.messages = chat.opening;
    request.messages->push_back({{"role", "user"}, {"content", *request.prompt}});
    request.prompt.reset();
  }
}

int generate_records(engine::Engine& engine, const RecordsRun& run) {
  return RecordsRunner(engine, run).run();
}

}  // namespace saker::cli
