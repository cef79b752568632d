// A kernel: one node of a graph prepared for one device. It is chosen once while a plan is made, bound to addresses,
// and then launched in every run, without allocating, choosing, or failing for a reason that could have been found
// earlier.
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

// An input or output of a kernel. If an optional one is absent, `present` is false and the other members do not matter.
struct Operand {
  bool present = true;
  DType dtype = DType::kF32;
  Shape shape;
  Layout layout;
};

// An operation that a plan fuses into the node: the kernel applies it to its first output.
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
  // Those of the node; each input has the layout in which its value exists.
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  // True: the kernel may ask for other input layouts and choose its output layouts. False: everything is row-major.
  bool free_layouts = false;
  // From a kernel plan: use exactly this implementation or fail. Empty: the device chooses by a fixed table, without
  // timing, so that equal machines choose equally; or, with `trial`, the fastest.
  std::string implementation;
  // Allows the device to time several implementations in scratch memory and choose the fastest, which may differ from
  // run to run. Equal requests to one device get the same choice. Host devices and Device::Supports ignore it.
  bool trial = false;
  // Receives a one-line warning about the choice: a library refused a node that it should serve, or a trial found a
  // kernel with wrong results. REQUIRES: empty, outlives the call. May be null.
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

// The addresses of a kernel's operands, in the order of the node's inputs and outputs; null for an absent one.
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

  // The name that a kernel plan stores and MakeKernel accepts in `implementation`: "own:relu", "dnnl:jit:avx2".
  virtual const std::string& implementation() const = 0;
  // The bytes of scratch memory during a launch; kernels that never run concurrently may share it.
  virtual size_t workspace_bytes() const = 0;
  // The layouts of the operands that Bind expects. Row-major unless the request allowed others.
  virtual Layout input_layout(int input) const = 0;
  virtual Layout output_layout(int output) const = 0;
  // True when `output` may have the address of `input`, which it then overwrites.
  virtual bool CanShare(int input, int output) const = 0;

  // Sets the operands. May be called again with other addresses while no launch of this kernel is queued.
  virtual absl::Status Bind(const KernelArguments& arguments) = 0;
  // Queues one execution. REQUIRES: Bind was called; `stream` is of the device that made the kernel.
  virtual absl::Status Launch(Stream& stream) = 0;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_KERNEL_H_
