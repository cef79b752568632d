// One node of a graph made ready for one device: chosen once while a plan is made, bound to its addresses once, then
// launched every run without allocating, choosing or failing for a reason that was knowable before.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_KERNEL_H_
#define LOCKSTEP_WORKER_DEVICE_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/ops/ir.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "worker/device/device.h"
#include "worker/device/layout.h"

namespace lockstep::device {

// An input or output of a kernel. An optional one that is absent has `present` false and nothing else.
struct Operand {
  bool present = true;
  DType dtype = DType::kF32;
  Shape shape;
  Layout layout;
};

// What a plan fuses behind a node: the kernel applies it to its first output.
enum class Epilogue : uint8_t { kNone, kRelu };

// An implementation that serves the op, but not the node.
struct Refusal {
  std::string implementation;  // Implementation::name
  std::string reason;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

struct KernelRequest {
  // REQUIRES: outlives the call (not the kernel).
  const Node* node = nullptr;
  Epilogue epilogue = Epilogue::kNone;
  // As the node's; layouts are those in which the inputs exist now.
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  // True: the kernel may ask for other input layouts and choose its output layouts. False: everything is row-major.
  bool free_layouts = false;
  // From a kernel plan: serve by exactly this implementation or fail. Empty: the device's own fixed table decides,
  // without timing anything, so that equal machines choose equally; or, with `trial`, what is fastest.
  std::string implementation;
  // A device that knows several implementations may try them out, in memory that it gives back, and take another one
  // each time. Requests for the same from one device get the same. Host devices and Device::Supports ignore it.
  bool trial = false;
  // Where MakeKernel writes, in one line, what is wrong with its choice: a library refuses a node that it should serve,
  // or a kernel was tried and found wrong. REQUIRES: outlives the call, and is empty. Null: nobody asks.
  std::string* remark = nullptr;
  // Where MakeKernel adds those that the device prefers to the one that serves the request, in its order. REQUIRES:
  // outlives the call. Null: nobody asks.
  std::vector<Refusal>* refusals = nullptr;
};

struct ReorderRequest {
  DType dtype = DType::kF32;
  Shape shape;
  Layout from;
  Layout to;
};

// The addresses of one kernel, in the order of the node's inputs and outputs; null for an absent one.
struct KernelArguments {
  std::vector<std::byte*> inputs;
  std::vector<std::byte*> outputs;
  // At least Kernel::workspace_bytes(), aligned to Buffer::kAlignment; contents are undefined before and after a
  // launch.
  std::byte* workspace = nullptr;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  // What a kernel plan stores, and what MakeKernel accepts in `implementation`: "own:relu", "dnnl:jit:avx2".
  virtual const std::string& implementation() const = 0;
  // Scratch memory during a launch; kernels that never run at once may share it.
  virtual size_t workspace_bytes() const = 0;
  // The layouts that Bind's addresses have to have. Row-major unless the request allowed others.
  virtual Layout input_layout(int input) const = 0;
  virtual Layout output_layout(int output) const = 0;
  // True when `output` may lie at the address of `input`, whose contents are then lost.
  virtual bool CanShare(int input, int output) const = 0;

  // Prepares every argument list. May be called again with other addresses, while nothing of this kernel is queued.
  virtual absl::Status Bind(const KernelArguments& arguments) = 0;
  // Queues one execution. REQUIRES: Bind was called; `stream` is of the device that made the kernel.
  virtual absl::Status Launch(Stream& stream) = 0;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_KERNEL_H_
