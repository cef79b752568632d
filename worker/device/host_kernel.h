// Kernels that are plain functions over host memory: those of the reference device and the CPU device's own loops.
//
// Threading: kernels are owned by the device's owner thread.
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

// A node with its shapes, and the bound addresses; absent inputs and outputs are null.
struct HostCall {
  OpType op;
  OpAttributes attributes;
  std::vector<Operand> input_infos;
  std::vector<Operand> output_infos;
  std::vector<std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* workspace = nullptr;

  // REQUIRES: Attributes is the type of the op's attributes.
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
  // The number of elements of the first output in memory, padding included.
  int64_t out_elements() const {
    const Operand& output = output_infos[0];
    return output.layout.row_major() ? NumElements(output.shape)
                                     : static_cast<int64_t>(output.layout.bytes) / DTypeSize(output.dtype);
  }
  const Shape& in_shape(size_t i) const { return input_infos[i].shape; }
  const Shape& out_shape(size_t i) const { return output_infos[i].shape; }
};

// The computation of a kernel. Must not allocate.
using HostFunction = void (*)(const HostCall&);

struct HostKernelTraits {
  std::string implementation;
  size_t workspace_bytes = 0;
  // Pairs (input, output) that may have the same address.
  std::vector<std::pair<int, int>> shareable;
  // The layout of every F32 input and output with the shape `layout_shape`.
  Layout layout;
  Shape layout_shape;
};

// The pairs of an element-wise op (elementwise_ops.h) that may share memory, except broadcast inputs; empty for other
// ops.
std::vector<std::pair<int, int>> ElementwiseSharing(const KernelRequest& request);

// A kernel that calls `function`.
std::unique_ptr<Kernel> MakeHostKernel(const KernelRequest& request, HostFunction function, HostKernelTraits traits);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_KERNEL_H_
