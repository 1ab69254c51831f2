// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model on the hub: the commit that its name means now, and the files of that commit. The
// endpoint, the token and the timeout come from the environment (saker/hub/environment.h). Runs on
// the caller's thread; in libsaker_hub.

#include "saker/hub/http/fetcher.h"
#include "saker/hub/model_name.h"
#include "saker/hub/remote_files.h"

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace saker::hub {

struct HubSessionOptions {
  std::chrono::milliseconds limit{60'000};  // For all texts together, see FetcherOptions.
  std::function<void(const std::string& failure)> retrying = {};
  std::stop_token stop = {};
};

class HubSession {
 public:
  // Asks the hub. Throws as find_commit and list_files do, and kUnsupported if the environment says
  // offline.
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
