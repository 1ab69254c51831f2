// SPDX-License-Identifier: Apache-2.0
#pragma once

// The process that a model's thread runs in. A fork of it has the model, but no such thread: what
// would wait for it there, waits for ever.

#include "saker/engine/request.h"

#include <sys/types.h>
#include <unistd.h>

namespace saker::python {

class OwnProcess {
 public:
  bool is_here() const { return ::getpid() == id_; }

  // Throws kUnsupported in a fork.
  void check() const {
    const pid_t here = ::getpid();
    require(
        here == id_,
        ErrorCode::kUnsupported,
        "the model was loaded by process {}, expected calls from there, not from its fork {}",
        id_,
        here
    );
  }

 private:
  pid_t id_ = ::getpid();
};

}  // namespace saker::python
