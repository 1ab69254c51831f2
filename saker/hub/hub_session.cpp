// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/hub_session.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/hub/environment.h"
#include "saker/hub/http/web_address.h"

#include <spdlog/spdlog.h>

#include <string>

namespace saker::hub {
namespace {

// Anybody between here and the hub can read the token; on this machine nobody is.
void warn_of_clear_token(const std::string& hub) {
  const auto origin = origin_of(hub);
  if (!origin || origin->scheme != "http" || token().empty()) {
    return;
  }
  const std::string& host = origin->host;
  if (host != "localhost" && host != "[::1]" && !host.starts_with("127.")) {
    spdlog::warn("the token goes to {} unencrypted: HF_ENDPOINT is no https address", quote(host));
  }
}

FetcherOptions fetcher_options(const ModelName& name, const HubSessionOptions& options) {
  require(
      !is_offline(),
      ErrorCode::kUnsupported,
      "{} can't be fetched: HF_HUB_OFFLINE is set",
      to_string(name)
  );
  return {
      .endpoint = endpoint(),
      .token = token(),
      .timeout = download_timeout(),
      .text_limit = options.limit,
      .http_proxy = http_proxy(),
      .stop = options.stop,
      .retrying = options.retrying,
  };
}

}  // namespace

HubSession::HubSession(const ModelName& name, const HubSessionOptions& options)
    : fetcher_(fetcher_options(name, options)) {
  const std::string hub = endpoint();
  warn_of_clear_token(hub);
  commit_ = find_commit(fetcher_, name);
  files_ = list_files(fetcher_, hub, name.repo, commit_);
}

}  // namespace saker::hub
