#include "worker/device/host/reference_device.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/host/host_device.h"
#include "worker/device/host/host_step_math.h"
#include "worker/device/host_kernel.h"
#include "worker/device/widened_kernel.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device {
namespace {

constexpr char kImplementation[] = "reference";

HostFunction AskFamilies(OpType type, std::initializer_list<HostFunction (*)(OpType)> families) {
  for (const auto family : families) {
    if (const HostFunction function = family(type); function != nullptr) return function;
  }
  return nullptr;
}

template <typename T>
HostFunction FloatingFunction(OpType type) {
  return AskFamilies(
      type, {&reference::ArithmeticFunction<T>, &reference::MathFunction<T>, &reference::ActivationFunction<T>,
             &reference::ElementwiseFunction<T>, &reference::RandomFunction<T>, &reference::MatrixFunction<T>,
             &reference::SpatialFunction<T>, &reference::PoolingFunction<T>, &reference::EinsumFunction<T>,
             &reference::ResizeFunction<T>, &reference::BatchNormFunction<T>, &reference::NormalisationFunction<T>,
             &reference::SoftmaxFunction<T>, &reference::AttentionFunction<T>, &reference::LossFunction<T>,
             &reference::ReduceFunction<T>});
}

template <typename T>
HostFunction IntegerFunction(OpType type) {
  return AskFamilies(type, {&reference::ArithmeticFunction<T>, &reference::IntegerReduceFunction<T>,
                            &reference::IntegerPoolingFunction<T>});
}

// The element type that the node computes in, for ops whose inputs and outputs are of one type.
DType ElementType(const KernelRequest& request) {
  return request.node->op == OpType::kCountCorrect ? request.inputs[0].dtype : request.outputs[0].dtype;
}

// Of the families that look at each operand's type, and serve BF16 where elements only move.
HostFunction FindTypedFunction(const KernelRequest& request) {
  // Its indices are numbers, whatever the type of what is placed.
  if (request.node->op == OpType::kOneHot && request.inputs[0].dtype == DType::kBF16) return nullptr;
  for (const auto family : {&reference::MovementFunction, &reference::IndexingFunction, &reference::LogicFunction,
                            &reference::PowerFunction}) {
    if (const HostFunction function = family(request); function != nullptr) return function;
  }
  return nullptr;
}

HostFunction FindFunction(const KernelRequest& request) {
  if (const HostFunction function = FindTypedFunction(request); function != nullptr) return function;
  const OpType type = request.node->op;
  switch (ElementType(request)) {
    case DType::kF32:
      return FloatingFunction<float>(type);
    case DType::kF64:
      return FloatingFunction<double>(type);
    case DType::kI64:
      return IntegerFunction<int64_t>(type);
    case DType::kI32:
      return IntegerFunction<int32_t>(type);
    case DType::kI8:
      return IntegerFunction<int8_t>(type);
    case DType::kU8:
      return IntegerFunction<uint8_t>(type);
    default:
      return nullptr;
  }
}

absl::StatusOr<HostFunction> Choose(const KernelRequest& request) {
  if (!request.implementation.empty() && request.implementation != kImplementation) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '", request.implementation,
                                                   "'; the reference device has only '", kImplementation, "'"));
  }
  if (request.epilogue != Epilogue::kNone) {
    return absl::UnimplementedError("the reference device fuses nothing behind a node");
  }
  const HostFunction function = FindFunction(request);
  if (function == nullptr) {
    return absl::UnimplementedError(absl::StrCat("the reference device has no kernel for ", OpName(request.node->op),
                                                 " on ", DTypeName(ElementType(request)),
                                                 ". Every op is served for F32 and F64: cast what goes in"));
  }
  return function;
}

DeviceInfo ReferenceInfo() {
  DeviceInfo info;
  info.kind = "reference";
  info.library = "reference 1";
  info.instruction_set = "portable";
  info.model = "any";
  return info;
}

class ReferenceDevice final : public HostDevice {
 public:
  ReferenceDevice() : HostDevice(ReferenceInfo()) {}

  absl::Status Supports(const KernelRequest& request) const override { return Make(request).status(); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelRequest& request) override { return Make(request); }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeReorder(const ReorderRequest&) override {
    return absl::InternalError("the reference device has only the row-major layout");
  }
  StepMath& step_math() override { return *step_math_; }

 private:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelRequest& request) {
    if (ComputesBf16(request) && FindTypedFunction(request) == nullptr) return MakeWidenedKernel(request, Make);
    LS_ASSIGN_OR_RETURN(const HostFunction function, Choose(request));
    HostKernelTraits traits{.implementation = kImplementation};
    traits.workspace_bytes = reference::WorkspaceBytes(request);
    traits.shareable = ElementwiseSharing(request);
    return MakeHostKernel(request, function, std::move(traits));
  }

  const std::unique_ptr<StepMath> step_math_ = MakeHostStepMath();
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeReferenceDevice(const DeviceOptions& options) {
  if (!options.instruction_set.empty() && options.instruction_set != "portable") {
    return absl::InvalidArgumentError(absl::StrCat("the reference device has no kernels for the instruction set '",
                                                   options.instruction_set, "'; its only one is 'portable'"));
  }
  return std::make_unique<ReferenceDevice>();
}

}  // namespace lockstep::device
