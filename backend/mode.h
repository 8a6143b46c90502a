// SPDX-License-Identifier: Apache-2.0
// When an op runs: the process's eager mode and its override on this thread.
#pragma once

namespace torch_tpu {

// Values are upstream's.
enum class EagerMode : int {
  kDeferAndFuse = 0,
  kStrict = 1,  // enqueued at once, alone
  kDebug = 2,   // the host waits for every op, so that errors appear at the failing line
};

EagerMode eager_mode();  // the thread's override, else the process's
void set_eager_mode(EagerMode mode);
// -1: no override. Returns the previous one.
int exchange_thread_eager_mode(int mode);

}  // namespace torch_tpu
