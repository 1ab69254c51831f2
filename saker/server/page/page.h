// SPDX-License-Identifier: Apache-2.0
#pragma once

// The web page that the program carries (page/dist): one HTML file, and files that it loads when
// they are needed. It stands behind a policy that lets it load nothing from elsewhere.

#include "saker/server/http/router.h"

#include <string_view>

namespace saker::server::page {

// True for paths of the page. They need no key: the page asks for one.
bool is_page(std::string_view path);

// GET / shows the page to browsers; other clients, which only look whether a server is there, get a
// line.
void add_routes(http::Router& router);

}  // namespace saker::server::page
