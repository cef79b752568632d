#include "worker/device/host/cpu_device.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <omp.h>

#include <array>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"
#include "worker/device/host/environment.h"
#include "worker/device/host/host_device.h"
#include "worker/device/host/reference_device.h"
#include "worker/device/host_kernel.h"
#include "worker/device/implementation_list.h"
#include "worker/device/widened_kernel.h"
#include "worker/kernels/cpu/dnnl_kernel.h"
#include "worker/kernels/cpu/own_kernels.h"

namespace lockstep::device {
namespace {

using cpu::DnnlContext;
using cpu::OwnFunction;

struct InstructionSet {
  const char* name;
  dnnl::cpu_isa isa;
};

// From old to new; the names are those of kernel plans.
constexpr std::array<InstructionSet, 8> kInstructionSets = {{{"sse41", dnnl::cpu_isa::sse41},
                                                             {"avx", dnnl::cpu_isa::avx},
                                                             {"avx2", dnnl::cpu_isa::avx2},
                                                             {"avx2_vnni", dnnl::cpu_isa::avx2_vnni},
                                                             {"avx512_core", dnnl::cpu_isa::avx512_core},
                                                             {"avx512_core_vnni", dnnl::cpu_isa::avx512_core_vnni},
                                                             {"avx512_core_bf16", dnnl::cpu_isa::avx512_core_bf16},
                                                             {"avx512_core_amx", dnnl::cpu_isa::avx512_core_amx}}};

std::string EffectiveInstructionSet() {
  const dnnl::cpu_isa effective = dnnl::get_effective_cpu_isa();
  for (const InstructionSet& set : kInstructionSets) {
    if (set.isa == effective) return set.name;
  }
  return absl::StrCat("oneDNN's number ", static_cast<int>(effective));
}

// Lowers what oneDNN may use in this process to `wanted`.
absl::Status LimitInstructionSet(const std::string& wanted) {
  const std::string before = EffectiveInstructionSet();
  if (wanted.empty() || wanted == before) return absl::OkStatus();
  for (const InstructionSet& set : kInstructionSets) {
    if (wanted != set.name) continue;
    if (dnnl::set_max_cpu_isa(set.isa) == dnnl::status::success && EffectiveInstructionSet() == wanted) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the kernel plan needs the instruction set '", wanted, "', this CPU offers '", before,
                     "'. Run on a machine like those that made the plan, or start a new run with a new plan."));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown instruction set '", wanted, "' in the kernel plan"));
}

// The processor's own name for itself.
std::string ModelName() {
#if defined(__x86_64__)
  unsigned registers[12] = {};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* r = registers + 4 * i;
    if (__get_cpuid(0x80000002u + i, &r[0], &r[1], &r[2], &r[3]) == 0) return "unknown";
  }
  const auto* text = reinterpret_cast<const char*>(registers);
  return std::string(absl::StripAsciiWhitespace(absl::string_view(text, strnlen(text, sizeof(registers)))));
#else
  return "unknown";
#endif
}

using FindOwnFunction = OwnFunction (*)(const KernelRequest& request);

// The own kernels that were compiled for the instruction set, one of DeviceInfo's words.
FindOwnFunction OwnKernelsFor(const std::string& instruction_set) {
#if defined(__x86_64__)
  if (absl::StartsWith(instruction_set, "avx512")) return &cpu::avx512::FindOwn;
  if (absl::StartsWith(instruction_set, "avx2") && __builtin_cpu_supports("fma")) return &cpu::avx2::FindOwn;
#endif
  return &cpu::portable::FindOwn;
}

// Every F32 operand of an element-wise kernel takes the first layout that is not row-major.
Layout CommonLayout(const KernelRequest& request) {
  if (!request.free_layouts) return Layout();
  for (const Operand& input : request.inputs) {
    if (input.present && input.shape != request.outputs[0].shape) return Layout();
  }
  for (const Operand& input : request.inputs) {
    if (input.present && !input.layout.row_major()) return input.layout;
  }
  return Layout();
}

// Pairs (input, output) of own kernels that read all of a row or channel that they need before they write the element
// that lies there.
std::vector<std::pair<int, int>> RowSharing(OpType op) {
  switch (op) {
    case OpType::kSoftmax:
    case OpType::kLogSoftmax:
    case OpType::kLayerNormalization:
      return {{0, 0}};
    case OpType::kSoftmaxGrad:
    case OpType::kLogSoftmaxGrad:
    case OpType::kBatchNormGrad:
      return {{0, 0}, {1, 0}};
    case OpType::kLayerNormGrad:
      return {{0, 0}, {1, 0}, {5, 0}};
    default:
      return {};
  }
}

const Shape& LargestShape(const KernelRequest& request) {
  const Operand* largest = &request.outputs[0];
  for (const Operand& input : request.inputs) {
    if (input.present && NumElements(input.shape) > NumElements(largest->shape)) largest = &input;
  }
  return largest->shape;
}

// The first blocked layout of channels among the inputs of a kernel that takes it.
Layout ChannelLayout(const KernelRequest& request) {
  if (!request.free_layouts) return Layout();
  for (const Operand& input : request.inputs) {
    if (!input.present || input.shape != LargestShape(request)) continue;
    if (cpu::ServesChannelBlock(input.layout.channel_block)) return input.layout;
  }
  return Layout();
}

bool HasElements(const KernelRequest& request) {
  for (const auto* operands : {&request.inputs, &request.outputs}) {
    for (const Operand& operand : *operands) {
      if (operand.present && NumElements(operand.shape) == 0) return false;
    }
  }
  return true;
}

bool AllF32(const KernelRequest& request) {
  for (const auto* operands : {&request.inputs, &request.outputs}) {
    for (const Operand& operand : *operands) {
      if (operand.present && operand.dtype != DType::kF32) return false;
    }
  }
  return true;
}

// Whether own kernels, where they serve the node, are faster than this one of oneDNN: by a product per channel, or by
// vectors of channels of X, of which there is one.
bool IsSlow(const KernelRequest& request, absl::string_view implementation) {
  if (request.node->op != OpType::kConvGradWeight) return false;
  return absl::StrContains(implementation, "gemm") || implementation == "dnnl:jit:avx2";
}

class CpuDevice final : public HostDevice {
 public:
  CpuDevice(DeviceInfo device, DnnlContext context, std::unique_ptr<Device> reference)
      : HostDevice(std::move(device)),
        context_(std::move(context)),
        reference_(std::move(reference)),
        find_own_(OwnKernelsFor(info().instruction_set)) {
    const auto own = [this](const KernelRequest& request) { return MakeOwn(request); };
    f32_ = {{"oneDNN", "dnnl:", [this](const KernelRequest& request) { return MakeDnnl(request); }},
            {"own kernels", "own:", own},
            {"reference", "", [this](const KernelRequest& request) { return reference_->MakeKernel(request); }}};
    bf16_ = {{"own kernels for BF16", "own:", own},
             {"reference", "", [this](const KernelRequest& request) { return MakeMoving(request); }},
             {"widened kernels", kWidened, [this](const KernelRequest& request) {
                return MakeWidenedKernel(request, [this](const KernelRequest& wide) { return Make(wide); });
              }}};
  }

  absl::Status Supports(const KernelRequest& request) const override { return Make(request).status(); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelRequest& request) override { return Make(request); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeReorder(const ReorderRequest& request) override {
    return cpu::MakeDnnlReorder(context_, request);
  }
  StepMath& step_math() override { return reference_->step_math(); }

 private:
  absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelRequest& request) const {
    if (!ComputesBf16(request)) return MakeFirst(f32_, request);
    // Only kernels for F32 know other layouts; what widens sees to that itself.
    KernelRequest row_major = request;
    row_major.free_layouts = false;
    return MakeFirst(bf16_, row_major);
  }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnl(const KernelRequest& request) const {
    const bool product = request.node->op == OpType::kGemm || request.node->op == OpType::kMatMul ||
                         request.node->op == OpType::kBatchMatMul;
    if (!product && !std::holds_alternative<ConvAttributes>(request.node->attributes)) return NotItsOp();
    if (!AllF32(request)) return absl::UnimplementedError("used for operands of F32 only");
    if (!HasElements(request)) return absl::UnimplementedError("an operand is empty");
    if (product) return cpu::MakeDnnlProduct(context_, request);
    LS_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, cpu::MakeDnnlConvolution(context_, request));
    const bool chosen = !request.implementation.empty();
    if (!chosen && IsSlow(request, kernel->implementation()) && find_own_(request).function != nullptr) {
      return absl::UnimplementedError(absl::StrCat("has only ", kernel->implementation(), ", which is slower"));
    }
    return kernel;
  }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeOwn(const KernelRequest& request) const {
    if (request.epilogue != Epilogue::kNone) return absl::UnimplementedError("fuses nothing behind a node");
    if (!HasElements(request)) return absl::UnimplementedError("an operand is empty");
    const OwnFunction own = find_own_(request);
    if (own.function == nullptr && own.refusal == nullptr) return NotItsOp();
    if (own.function == nullptr) return absl::UnimplementedError(own.refusal);
    if (!request.implementation.empty() && request.implementation != own.name) return NotItsOp();
    return NewOwnKernel(request, own);
  }

  // By the definition where it moves elements as they are, and does not compute with them.
  absl::StatusOr<std::unique_ptr<Kernel>> MakeMoving(const KernelRequest& request) const {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = reference_->MakeKernel(request);
    if (kernel.ok() && absl::StartsWith((*kernel)->implementation(), kWidened)) return NotItsOp();
    return kernel;
  }

  static std::unique_ptr<Kernel> NewOwnKernel(const KernelRequest& request, const OwnFunction& own) {
    HostKernelTraits traits{.implementation = own.name, .workspace_bytes = own.workspace_bytes};
    traits.shareable = ElementwiseSharing(request);
    if (traits.shareable.empty()) traits.shareable = RowSharing(request.node->op);
    traits.layout_shape = LargestShape(request);
    if (own.any_layout) traits.layout = CommonLayout(request);
    if (own.channel_blocks) traits.layout = ChannelLayout(request);
    return MakeHostKernel(request, own.function, std::move(traits));
  }

  DnnlContext context_;
  std::unique_ptr<Device> reference_;
  FindOwnFunction find_own_;
  // For nodes without operands of BF16, and with.
  std::vector<Implementation> f32_;
  std::vector<Implementation> bf16_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeCpuDevice(const DeviceOptions& options) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a CPU device needs at least one thread, `resources.cpu_threads` is ", options.threads));
  }
  LS_RETURN_IF_ERROR(LimitInstructionSet(options.instruction_set));
  FlushDenormals();
  omp_set_dynamic(0);
  omp_set_num_threads(options.threads);
#pragma omp parallel num_threads(options.threads)
  FlushDenormals();

  const dnnl_version_t* version = dnnl_version();
  DeviceInfo info;
  info.kind = "cpu";
  info.library =
      absl::StrCat("oneDNN ", version->major, ".", version->minor, ".", version->patch, " (", version->hash, ")");
  info.instruction_set = EffectiveInstructionSet();
  info.model = ModelName();
  info.threads = options.threads;
  LS_ASSIGN_OR_RETURN(std::unique_ptr<Device> reference, MakeReferenceDevice({}));
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return std::make_unique<CpuDevice>(std::move(info), DnnlContext{engine, dnnl::stream(engine)}, std::move(reference));
}

}  // namespace lockstep::device
