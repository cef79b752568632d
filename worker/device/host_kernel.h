// A kernel that is a plain function over host memory: what the reference device and the CPU's own loops are made of.
//
// Threading: as kernel.h.
#ifndef LOCKSTEP_WORKER_DEVICE_HOST_KERNEL_H_
#define LOCKSTEP_WORKER_DEVICE_HOST_KERNEL_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/graph/ops/ir.h"
#include "worker/device/kernel.h"

namespace lockstep::device {

// One node with its shapes, and the addresses of this binding. Inputs and outputs that are absent are null.
struct HostCall {
  OpType op;
  OpAttributes attributes;
  std::vector<Operand> input_infos;
  std::vector<Operand> output_infos;
  std::vector<std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* workspace = nullptr;

  // REQUIRES: they are the attributes of the op.
  template <typename Attributes>
  [[gnu::always_inline]] const Attributes& attrs() const {
    return *std::get_if<Attributes>(&attributes);
  }
  template <typename T>
  const T* in(size_t i) const {
    return i < inputs.size() ? reinterpret_cast<const T*>(inputs[i]) : nullptr;
  }
  template <typename T>
  T* out(size_t i) const {
    return i < outputs.size() ? reinterpret_cast<T*>(outputs[i]) : nullptr;
  }
  // Elements of the first output as they lie in memory, padding included.
  int64_t out_elements() const {
    const Operand& output = output_infos[0];
    return output.layout.row_major() ? NumElements(output.shape)
                                     : static_cast<int64_t>(output.layout.bytes) / DTypeSize(output.dtype);
  }
  const Shape& in_shape(size_t i) const { return input_infos[i].shape; }
  const Shape& out_shape(size_t i) const { return output_infos[i].shape; }
};

// Must not allocate.
using HostFunction = void (*)(const HostCall&);

struct HostKernelTraits {
  std::string implementation;
  size_t workspace_bytes = 0;
  // Pairs (input, output) that may lie at the same address.
  std::vector<std::pair<int, int>> shareable;
  // Of every input and output of F32 that has `layout_shape`.
  Layout layout;
  Shape layout_shape;
};

// The pairs that may share memory where a kernel reads element i of its inputs only to write element i of its first
// output: empty for other ops, and for operands that broadcast.
std::vector<std::pair<int, int>> ElementwiseSharing(const KernelRequest& request);

// A kernel that calls `function`.
std::unique_ptr<Kernel> MakeHostKernel(const KernelRequest& request, HostFunction function, HostKernelTraits traits);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_KERNEL_H_
