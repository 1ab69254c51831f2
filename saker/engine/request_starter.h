// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a checked request to a running sequence: its adapter, the rows of its session or its file, and
// what happens at its end. Files are read on a thread of their own, before the request starts.
// Threading: the engine's thread.

#include "saker/adapters/adapter_source.h"
#include "saker/engine/adapters.h"
#include "saker/engine/answer.h"
#include "saker/engine/request.h"
#include "saker/engine/rows/cache_files.h"
#include "saker/engine/rows/loader.h"
#include "saker/engine/rows/sessions.h"
#include "saker/generate/batch_generator.h"
#include "saker/load/model_fingerprint.h"
#include "saker/load/prompt_cache.h"
#include "saker/models/model.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace saker::engine {

// A choice of a request for the engine's thread, encoded and checked on the caller's thread.
struct Submission {
  std::uint64_t id = 0;
  Placement placement;
  std::uint64_t session = 0;
  std::filesystem::path cache_in;
  std::filesystem::path cache_out;
  std::size_t prompt_size = 0;
  generate::SequenceRequest sequence;
  std::unique_ptr<Answer> answer;
  Answer::Target target;

  // Results of the loader.
  std::optional<adapters::AdapterSource> adapter;
  std::optional<load::PromptCache> rows;
  std::optional<load::ModelFingerprint> model;
  std::exception_ptr error;
};

class RequestStarter {
 public:
  // Runs a job on the engine's thread later; false if the engine is shutting down. Any thread.
  using Post = std::function<bool(std::function<void()> job)>;

  // `model` and `generator` outlive the starter. `prefix_key` identifies the model.
  RequestStarter(
      const models::Model& model,
      generate::BatchGenerator& generator,
      std::string prefix_key,
      std::filesystem::path model_dir,
      Post post
  );

  // Starts the request, at once or when its files are read. Its stream hears what fails.
  void begin(const std::shared_ptr<Submission>& submission);
  // Ends a request in any phase; unknown ids are ignored.
  void cancel(std::uint64_t id);
  void cancel_all();

  Adapters& adapters() { return adapters_; }

  Sessions& sessions() { return sessions_; }

 private:
  // Where a request's rows go at its end.
  struct CacheOut {
    std::filesystem::path path;     // Empty: nowhere.
    std::string adapter;            // See nn::adapter_identity.
    std::int64_t unknown_rows = 0;  // Rows before the ones whose tokens are known.
  };

  // Has the request's files read; false if there are none.
  bool read_files(const std::shared_ptr<Submission>& submission);
  void start(Submission& submission);
  // The rest of the generator's request: adapter, rows of a file.
  void complete(Submission& submission);
  void take_rows(Submission& submission, const models::CacheOptions& options);
  Answer::Release make_release(const Submission& submission);
  void save_cache(const CacheOut& out, generate::SequenceEnd& end);

  const models::Model& model_;
  generate::BatchGenerator& generator_;
  std::string prefix_key_;
  Post post_;
  Sessions sessions_;
  CacheFiles cache_files_;
  Adapters adapters_;
  std::map<std::uint64_t, std::uint64_t> running_;                // Request to the generator's id.
  std::map<std::uint64_t, std::shared_ptr<Submission>> loading_;  // Their files are being read.
  std::set<std::filesystem::path> adapters_read_;                 // Their adapters.
  Loader loader_;
};

}  // namespace saker::engine
