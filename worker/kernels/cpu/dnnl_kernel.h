// A oneDNN primitive as a kernel, with its argument list built in advance and its scratchpad in the plan's workspace.
// Only the sources of oneDNN kernels include this header and oneDNN's; its exceptions become statuses here.
//
// Threading: kernels are owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_DNNL_KERNEL_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_DNNL_KERNEL_H_

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/kernel.h"

namespace lockstep::device::cpu {

// The engine and the stream that all primitives of a device use.
struct DnnlContext {
  dnnl::engine engine;
  dnnl::stream stream;
};

// The descriptor of a row-major value with dimensions `dims`, which may split or merge those of the value's shape.
dnnl::memory::desc RowMajor(const dnnl::memory::dims& dims);
// The descriptor of an operand in its present layout, which is row-major or was made by ToLayout.
dnnl::memory::desc FromOperand(const Operand& operand, const dnnl::memory::dims& dims);
// The layout of a value with descriptor `desc`, whose row-major form is RowMajor(dims).
Layout ToLayout(const dnnl::memory::desc& desc, const dnnl::memory::dims& dims);

// Runs `make` and turns oneDNN's exceptions into statuses: Unimplemented when no implementation serves.
absl::StatusOr<std::unique_ptr<Kernel>> CatchDnnl(absl::FunctionRef<absl::StatusOr<std::unique_ptr<Kernel>>()> make);

// An argument of a primitive: `arg` is oneDNN's argument number, `index` the number of the node's input or output.
struct DnnlSlot {
  int arg = 0;
  bool is_input = true;
  int index = 0;
  dnnl::memory::desc desc;
  Layout layout;
};

std::unique_ptr<Kernel> MakeDnnlKernel(const DnnlContext& context, const dnnl::primitive& primitive,
                                       std::string implementation, size_t scratchpad_bytes,
                                       const dnnl::memory::desc& scratchpad, std::vector<DnnlSlot> slots);

// Appends a ReLU that keeps NaN. What is -infinity becomes NaN, and what is negative becomes -0.
void AppendRelu(dnnl::post_ops& after);

// The attributes of every primitive: user-mode scratchpad, and the epilogue.
dnnl::primitive_attr Attributes(Epilogue epilogue);

// "dnnl:" and the name of the implementation.
template <typename PrimitiveDesc>
std::string ImplementationName(const PrimitiveDesc& desc) {
  return std::string("dnnl:") + desc.impl_info_str();
}

// Advances `desc` to the implementation called `wanted`; an empty name takes the first one. InvalidArgument when there
// is none of that name. REQUIRES: the operation descriptor from which `desc` was made is alive, since oneDNN reads it
// for every candidate.
template <typename PrimitiveDesc>
absl::Status SelectImplementation(PrimitiveDesc& desc, const std::string& wanted) {
  if (wanted.empty()) return absl::OkStatus();
  const std::string first = ImplementationName(desc);
  while (ImplementationName(desc) != wanted) {
    if (!desc.next_impl()) {
      return absl::InvalidArgumentError("the kernel plan asks for implementation '" + wanted +
                                        "', which this machine does not have; its own choice would be '" + first +
                                        "'. Use a machine like those that made the plan, or start a new run.");
    }
  }
  return absl::OkStatus();
}

// Make a kernel for a node of the family, or return an error that says why oneDNN cannot serve it.
absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnlProduct(const DnnlContext& context, const KernelRequest& request);
absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnlConvolution(const DnnlContext& context, const KernelRequest& request);
absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnlReorder(const DnnlContext& context, const ReorderRequest& request);

}  // namespace lockstep::device::cpu

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_DNNL_KERNEL_H_
