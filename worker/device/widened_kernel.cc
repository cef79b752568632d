#include "worker/device/widened_kernel.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"
#include "worker/device/device.h"

namespace lockstep::device {
namespace {

using Make = absl::FunctionRef<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelRequest&)>;

bool IsBf16(const Operand& operand) { return operand.present && operand.dtype == DType::kBF16; }

size_t Aligned(size_t bytes) { return (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment; }

// A value of BF16, the kernel that converts it, and where its F32 form lies in the workspace.
struct Conversion {
  size_t index;  // of the input or output
  size_t offset;
  std::unique_ptr<Kernel> cast;
};

bool Converts(const std::vector<Conversion>& conversions, int index) {
  return std::any_of(conversions.begin(), conversions.end(),
                     [index](const Conversion& conversion) { return static_cast<int>(conversion.index) == index; });
}

class WidenedKernel final : public Kernel {
 public:
  WidenedKernel(std::unique_ptr<Kernel> kernel, std::vector<Conversion> inputs, std::vector<Conversion> outputs,
                size_t converted_bytes)
      : implementation_(absl::StrCat(kWidened, kernel->implementation())),
        kernel_(std::move(kernel)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        converted_bytes_(converted_bytes) {
    for (const auto* conversions : {&inputs_, &outputs_}) {
      for (const Conversion& conversion : *conversions) {
        inner_bytes_ = std::max(inner_bytes_, conversion.cast->workspace_bytes());
      }
    }
    inner_bytes_ = std::max(inner_bytes_, kernel_->workspace_bytes());
  }

  const std::string& implementation() const override { return implementation_; }
  size_t workspace_bytes() const override { return converted_bytes_ + inner_bytes_; }
  Layout input_layout(int) const override { return Layout(); }
  Layout output_layout(int) const override { return Layout(); }
  // Results are rounded to where they belong when all operands have been widened.
  bool CanShare(int input, int output) const override { return Converts(inputs_, input) && Converts(outputs_, output); }

  absl::Status Bind(const KernelArguments& arguments) override {
    std::byte* workspace = arguments.workspace == nullptr ? nullptr : arguments.workspace + converted_bytes_;
    KernelArguments inner = arguments;
    inner.workspace = workspace;
    for (const Conversion& input : inputs_) {
      inner.inputs[input.index] = arguments.workspace + input.offset;
      LS_RETURN_IF_ERROR(input.cast->Bind({{arguments.inputs[input.index]}, {inner.inputs[input.index]}, workspace}));
    }
    for (const Conversion& output : outputs_) {
      inner.outputs[output.index] = arguments.workspace + output.offset;
      LS_RETURN_IF_ERROR(
          output.cast->Bind({{inner.outputs[output.index]}, {arguments.outputs[output.index]}, workspace}));
    }
    return kernel_->Bind(inner);
  }

  absl::Status Launch(Stream& stream) override {
    for (const Conversion& input : inputs_) LS_RETURN_IF_ERROR(input.cast->Launch(stream));
    LS_RETURN_IF_ERROR(kernel_->Launch(stream));
    for (const Conversion& output : outputs_) LS_RETURN_IF_ERROR(output.cast->Launch(stream));
    return absl::OkStatus();
  }

 private:
  const std::string implementation_;
  const std::unique_ptr<Kernel> kernel_;
  const std::vector<Conversion> inputs_;
  const std::vector<Conversion> outputs_;
  const size_t converted_bytes_;
  size_t inner_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeCast(const Shape& shape, DType from, DType to, Make make) {
  const Node node{"cast", OpType::kCast, {"x"}, {"y"}, CastAttributes{to}};
  KernelRequest request;
  request.node = &node;
  request.inputs = {{.dtype = from, .shape = shape}};
  request.outputs = {{.dtype = to, .shape = shape}};
  return make(request);
}

// Conversions of the operands that are BF16, which become F32 in `operands`.
absl::StatusOr<std::vector<Conversion>> Widen(bool inputs, Make make, std::vector<Operand>* operands, size_t* bytes) {
  std::vector<Conversion> conversions;
  for (size_t i = 0; i < operands->size(); ++i) {
    Operand& operand = (*operands)[i];
    operand.layout = Layout();
    if (!IsBf16(operand)) continue;
    operand.dtype = DType::kF32;
    LS_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> cast, inputs
                                                          ? MakeCast(operand.shape, DType::kBF16, DType::kF32, make)
                                                          : MakeCast(operand.shape, DType::kF32, DType::kBF16, make));
    conversions.push_back({i, *bytes, std::move(cast)});
    *bytes += Aligned(static_cast<size_t>(NumElements(operand.shape)) * sizeof(float));
  }
  return conversions;
}

}  // namespace

bool ComputesBf16(const KernelRequest& request) {
  return request.node->op != OpType::kCast && (std::any_of(request.inputs.begin(), request.inputs.end(), IsBf16) ||
                                               std::any_of(request.outputs.begin(), request.outputs.end(), IsBf16));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeWidenedKernel(const KernelRequest& request, Make make) {
  // Else a plan would fuse behind this what a library does better in two kernels.
  if (request.epilogue != Epilogue::kNone) return absl::UnimplementedError("nothing is fused behind a widened kernel");
  KernelRequest wide = request;
  wide.free_layouts = false;
  absl::string_view name = request.implementation;
  if (!absl::ConsumePrefix(&name, kWidened) && !name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '", name,
                                                   "', this device serves the node by one that begins with '", kWidened,
                                                   "'"));
  }
  wide.implementation = std::string(name);
  size_t bytes = 0;
  LS_ASSIGN_OR_RETURN(std::vector<Conversion> inputs, Widen(true, make, &wide.inputs, &bytes));
  LS_ASSIGN_OR_RETURN(std::vector<Conversion> outputs, Widen(false, make, &wide.outputs, &bytes));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, make(wide));
  return std::make_unique<WidenedKernel>(std::move(kernel), std::move(inputs), std::move(outputs), bytes);
}

}  // namespace lockstep::device
