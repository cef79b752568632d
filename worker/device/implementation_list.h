// The implementations that a device has, as one list: the preferred one first, the one that serves everything last.
//
// Each either makes a kernel or says why not. `lockstep check --plan` shows these reasons for every node that the first
// implementation of its op does not serve.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_IMPLEMENTATION_LIST_H_
#define LOCKSTEP_WORKER_DEVICE_IMPLEMENTATION_LIST_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/device/kernel.h"

namespace lockstep::device {

struct Implementation {
  std::string name;    // in refusals: "oneDNN"
  std::string prefix;  // of the names that its kernels have in kernel plans: "dnnl:"; empty: all that no other one has
  // A kernel for the request. NotFound: it never serves such ops, and is not one of their implementations.
  // Unimplemented with the reason: it serves such ops, but not this node. InvalidArgument: the request names a kernel
  // that it does not have.
  std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelRequest&)> make;
};

// NotFound for Implementation::make.
absl::Status NotItsOp();

// The kernel of the first implementation that serves the request; those before it are written to `request.refusals`.
// Where the request names a kernel, the implementation whose name it is decides alone. Unimplemented with all reasons
// where nothing serves it; other errors of an implementation end the search.
absl::StatusOr<std::unique_ptr<Kernel>> MakeFirst(absl::Span<const Implementation> list, const KernelRequest& request);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_IMPLEMENTATION_LIST_H_
