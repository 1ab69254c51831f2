// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model on the hub, at the commit that its name means now, and the files that it has there. The
// endpoint, the token and the time-out are the environment's (saker/hub/environment.h). On the
// caller's thread; in libsaker_hub.

#include "saker/hub/fetcher.h"
#include "saker/hub/model_name.h"
#include "saker/hub/remote_files.h"

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace saker::hub {

struct HubSessionOptions {
  std::chrono::milliseconds limit{60'000};  // Of all texts together, see FetcherOptions.
  std::function<void(const std::string& failure)> retrying = {};
  std::stop_token stop = {};
};

class HubSession {
 public:
  // Asks the hub. Throws as find_commit and list_files do, and kUnsupported where the environment
  // says that there is no network.
  HubSession(const ModelName& name, const HubSessionOptions& options);

  Fetcher& fetcher() { return fetcher_; }

  const std::string& commit() const { return commit_; }

  // Sorted by path.
  const std::vector<RemoteFile>& files() const { return files_; }

 private:
  Fetcher fetcher_;
  std::string commit_;
  std::vector<RemoteFile> files_;
};

}  // namespace saker::hub
