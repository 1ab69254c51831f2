// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hub settings from the environment: the variables of Python's huggingface_hub, with its defaults.
// Each call reads them anew; nobody may change the environment meanwhile. In paths a leading ~,
// $NAME and ${NAME} are expanded; unknown variables stay as they are.

#include <chrono>
#include <filesystem>
#include <string>

namespace saker::hub {

// $HF_HUB_CACHE, else $HF_HOME/hub. HF_HOME defaults to $XDG_CACHE_HOME/huggingface, and that to
// ~/.cache/huggingface.
std::filesystem::path cache_dir();

// $HF_ENDPOINT without trailing slashes [https://huggingface.co].
std::string endpoint();

// $HF_TOKEN, else the first line of $HF_TOKEN_PATH [$HF_HOME/token]. Empty if there is none, or if
// $HF_HUB_DISABLE_IMPLICIT_TOKEN is 1, true, yes or on. Throws kInvalidArgument for a token that no
// HTTP header can hold.
std::string token();

// True if $HF_HUB_OFFLINE is 1, true, yes or on.
bool is_offline();

// A connection that stays below a kilobyte per second this long counts as dead:
// $HF_HUB_DOWNLOAD_TIMEOUT, in seconds [10].
std::chrono::seconds download_timeout();

// $HTTP_PROXY, which libcurl ignores. Empty if $http_proxy is set. Empty in CGI programs too
// ($REQUEST_METHOD is set), where a client's header `Proxy` becomes that variable.
std::string http_proxy();

}  // namespace saker::hub
