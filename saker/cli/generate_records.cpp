// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/generate_records.h"

#include "saker/base/error.h"
#include "saker/base/memory.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/records/record_lines.h"
#include "saker/cli/records/record_output.h"
#include "saker/cli/requests/streaming.h"
#include "saker/engine/options/apply_options.h"
#include "saker/engine/records/result_json.h"

#include <cstddef>
#include <deque>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace saker::cli {
namespace {

// Records to read ahead of the oldest unanswered one, per place in the batch: keeps the batch full
// behind a long answer.
constexpr std::size_t kReadAhead = 8;

// A record that was read: an answer on its way, or why there is none.
struct Pending {
  Json id = Json(Json::value_t::discarded);
  bool with_logprobs = false;
  std::optional<engine::Stream> stream = {};
  std::optional<Error> error = {};
};

class RecordsRunner {
 public:
  RecordsRunner(engine::Engine& engine, const RecordsRun& run)
      : engine_(engine), run_(run), lines_(run.file, run.shard), output_(open_output(run)) {}

  int run() {
    const std::size_t ahead = kReadAhead * static_cast<std::size_t>(run_.batch);
    int failures = skip_answered();
    bool more = true;
    while (more || !pending_.empty()) {
      while (more && pending_.size() < ahead) {
        more = start_next();
      }
      if (pending_.empty()) {
        break;
      }
      Pending oldest = std::move(pending_.front());
      pending_.pop_front();
      const Json answer = answer_of(oldest);
      failures += oldest.error ? 1 : 0;
      output_.write(dump_line(answer));
    }
    lines_.lines().warn_if_empty();
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
  // Skips the records that the earlier run has answered; returns how many of them failed.
  int skip_answered() {
    int failures = 0;
    while (const std::optional<Json> kept = output_.next_kept()) {
      const std::optional<RecordLine> record = lines_.next();
      require(
          record && kept->is_object() && (kept->contains("tokens") || kept->contains("error")) &&
              kept->value("id", Json()) == (record->id.is_discarded() ? Json() : record->id),
          ErrorCode::kInvalidArgument,
          "{}: its line {} doesn't answer {}: it belongs to other input",
          run_.output.string(),
          output_.kept_lines(),
          record ? lines_.lines().where() : "anything"
      );
      failures += kept->contains("error") ? 1 : 0;
    }
    return failures;
  }

  // Starts the next record's request; false at the end of the file.
  bool start_next() {
    std::optional<RecordLine> record = lines_.next();
    if (!record) {
      return false;
    }
    Pending& pending = pending_.emplace_back();
    pending.id = std::move(record->id);
    pending.error = std::move(record->error);
    if (pending.error) {
      return true;
    }
    try {
      engine::Request request = make_request(record->json);
      pending.with_logprobs = request.output.logprobs >= 0;
      pending.stream = engine_.submit(std::move(request));
    } catch (const Error& error) {
      pending.error = error;
    } catch (const std::bad_alloc& error) {
      // A smaller record may still fit.
      pending.error = Error(ErrorCode::kCapacity, std::string(*out_of_memory_reason(error)));
    }
    return true;
  }

  // Waits for the answer; a failure becomes the record's error.
  static Json answer_of(Pending& pending) {
    if (pending.stream) {
      try {
        return with_id(pending.id, to_json(pending.stream->result(), pending.with_logprobs));
      } catch (const Error& error) {
        pending.error = error;
      } catch (const std::exception& other) {
        pending.error = Error(ErrorCode::kInternal, other.what());
      }
    }
    return record_error(pending.id, *pending.error);
  }

  engine::Request make_request(const Json& record) const {
    engine::Request request = run_.defaults;
    engine::apply_record(record, request);
    as_chat(request, run_.chat);
    return request;
  }

  engine::Engine& engine_;
  const RecordsRun& run_;
  RecordLines lines_;
  RecordOutput output_;
  std::deque<Pending> pending_;
};

}  // namespace

void as_chat(engine::Request& request, const ChatOptions& chat) {
  if (chat.enabled && request.prompt.text) {
    request.prompt.messages = chat.opening;
    request.prompt.messages->push_back({{"role", "user"}, {"content", *request.prompt.text}});
    request.prompt.text.reset();
  }
}

int generate_records(engine::Engine& engine, const RecordsRun& run) {
  return RecordsRunner(engine, run).run();
}

}  // namespace saker::cli
