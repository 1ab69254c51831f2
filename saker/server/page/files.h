// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of page/dist. cmake/embed_files.cmake writes their definitions.

#include <string_view>

namespace saker::server::page {

extern const std::string_view kHighlightJs;
extern const std::string_view kIndexHtml;
extern const std::string_view kKatexJs;
extern const std::string_view kLicensesTxt;
extern const std::string_view kPdfJs;        // By gzip.
extern const std::string_view kPdfWorkerJs;  // By gzip.
extern const std::string_view kPolicyTxt;

}  // namespace saker::server::page
