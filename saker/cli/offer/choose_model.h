// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace saker::cli {

// Shows the models of this machine and some to fetch, and reads which one a person wants: a number
// or a name. Empty: the bundled model. Throws kCancelled at the end of input. REQUIRES: standard
// input and standard error are terminals.
std::string choose_model();

}  // namespace saker::cli
