// One oneDNN primitive as a kernel, with its argument list prebuilt and its scratchpad in the plan's workspace. The
// only folder that includes oneDNN's headers; their exceptions end here.
//
// Threading: as kernel.h.
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

// The description of a row-major value seen as `dims`; `dims` may split or merge dimensions of the value's shape.
dnnl::memory::desc RowMajor(const dnnl::memory::dims& dims);
// The description of an operand in the layout in which it exists, which is row-major or one made by ToLayout.
dnnl::memory::desc FromOperand(const Operand& operand, const dnnl::memory::dims& dims);
// The layout of a value described as `desc`, whose row-major form is RowMajor(dims).
Layout ToLayout(const dnnl::memory::desc& desc, const dnnl::memory::dims& dims);

// Runs `make`, turning oneDNN's exceptions into a status: Unimplemented where no implementation serves.
absl::StatusOr<std::unique_ptr<Kernel>> CatchDnnl(absl::FunctionRef<absl::StatusOr<std::unique_ptr<Kernel>>()> make);

// What a primitive reads or writes: `arg` is oneDNN's number, `index` that of the node's input or output.
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

// Attributes of every primitive: user-mode scratchpad, and the epilogue.
dnnl::primitive_attr Attributes(Epilogue epilogue);

// "dnnl:" and the name of the implementation.
template <typename PrimitiveDesc>
std::string ImplementationName(const PrimitiveDesc& desc) {
  return std::string("dnnl:") + desc.impl_info_str();
}

// Walks the candidates until the one that a kernel plan names. An empty name takes the first. REQUIRES: the operation's
// description that `desc` was made from is still alive, because oneDNN reads it again for every candidate.
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

// The kernels, by family: an error says why oneDNN cannot serve the node.
absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnlProduct(const DnnlContext& context, const KernelRequest& request);
absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnlConvolution(const DnnlContext& context, const KernelRequest& request);
absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnlReorder(const DnnlContext& context, const ReorderRequest& request);

}  // namespace lockstep::device::cpu

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_DNNL_KERNEL_H_
