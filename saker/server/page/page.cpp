// SPDX-License-Identifier: Apache-2.0
#include "saker/server/page/page.h"

#include "saker/base/blake2b.h"
#include "saker/server/page/files.h"

#include <array>
#include <memory>
#include <string>

namespace saker::server::page {
namespace {

struct File {
  std::string_view path;
  std::string_view content_type;
  std::string_view content;
  std::string_view encoding = {};
};

const std::array kFiles = {
    File{"/", "text/html; charset=utf-8", kIndexHtml},
    File{"/page/highlight.js", "text/javascript; charset=utf-8", kHighlightJs},
    File{"/page/katex.js", "text/javascript; charset=utf-8", kKatexJs},
    File{"/page/licenses.txt", "text/plain; charset=utf-8", kLicensesTxt},
    File{"/page/pdf.js", "text/javascript; charset=utf-8", kPdfJs, "gzip"},
    File{"/page/pdf.worker.js", "text/javascript; charset=utf-8", kPdfWorkerJs, "gzip"},
};

bool is_browser(const http::Request& request) {
  return request.header("Accept").find("text/html") != std::string_view::npos;
}

std::string tag_of(std::string_view content) {
  Blake2b hash;
  hash.add(content);
  return '"' + hash.hex().substr(0, 32) + '"';
}

// A file with the tag of its content: a browser that has it gets 304.
http::Response response_to(const http::Request& request, const File& file, const std::string& tag) {
  http::Response response{
      .content_type = std::string(file.content_type),
      .headers =
          {
              {"ETag", tag},
              {"Cache-Control", "no-cache"},
              {"Vary", "Accept"},
              {"Content-Security-Policy", std::string(kPolicyTxt)},
              {"X-Content-Type-Options", "nosniff"},
              {"Referrer-Policy", "no-referrer"},
              {"Cross-Origin-Opener-Policy", "same-origin"},
          }
  };
  if (!file.encoding.empty()) {
    response.headers.push_back({"Content-Encoding", std::string(file.encoding)});
  }
  if (request.header("If-None-Match") == tag) {
    response.status = 304;
  } else {
    response.body = file.content;
  }
  return response;
}

}  // namespace

bool is_page(std::string_view path) {
  return path == "/" || path.starts_with("/page/");
}

void add_routes(http::Router& router) {
  for (const File& file : kFiles) {
    router.add(
        "GET",
        std::string(file.path),
        [file, tag = tag_of(file.content)](const std::shared_ptr<http::Exchange>& exchange) {
          const http::Request& request = exchange->request();
          if (file.path == "/" && !is_browser(request)) {
            return exchange->respond({.content_type = "text/plain", .body = "Saker is running\n"});
          }
          exchange->respond(response_to(request, file, tag));
        }
    );
  }
}

}  // namespace saker::server::page
