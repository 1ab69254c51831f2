// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the environment says about the hub: the variables of Python's huggingface_hub, with its
// defaults. Each call reads them anew; nobody may change the environment meanwhile. In paths a
// leading ~, $NAME and ${NAME} are expanded; variables that are unknown stay as they are.

#include <chrono>
#include <filesystem>
#include <string>

namespace saker::hub {

// $HF_HUB_CACHE, else $HF_HOME/hub, where HF_HOME is $XDG_CACHE_HOME/huggingface, else
// ~/.cache/huggingface, unless given.
std::filesystem::path cache_dir();

// $HF_ENDPOINT without slashes at its end [https://huggingface.co].
std::string endpoint();

// $HF_TOKEN, else the first line of $HF_TOKEN_PATH [$HF_HOME/token]; empty where there is none, or
// where $HF_HUB_DISABLE_IMPLICIT_TOKEN is yes as below.
// Throws kInvalidArgument for one that no HTTP header can hold.
std::string token();

// $HF_HUB_OFFLINE is 1, true, yes or on.
bool is_offline();

// Below a kilobyte a second for so long a connection counts as dead: $HF_HUB_DOWNLOAD_TIMEOUT, in
// seconds [10].
std::chrono::seconds download_timeout();

// $HTTP_PROXY, which libcurl leaves aside. Empty where $http_proxy is set, and in CGI programs
// ($REQUEST_METHOD is set), where a client's header `Proxy` comes by that name.
std::string http_proxy();

}  // namespace saker::hub
