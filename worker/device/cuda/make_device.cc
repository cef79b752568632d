#include "worker/device/cuda/make_device.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/channel_reorder.h"
#include "worker/device/cuda/kernel_trials.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/cuda/runtime/gpu_memory.h"
#include "worker/device/cuda/runtime/runtime.h"
#include "worker/device/cuda/step_math.h"
#include "worker/device/cuda/vendor_libraries.h"
#include "worker/device/implementation_list.h"
#include "worker/device/widened_kernel.h"
#include "worker/kernels/cuda/channels_last.h"
#include "worker/kernels/cuda/own_kernels.h"

namespace lockstep::device {
namespace {

constexpr char kOwn[] = "own:";
// Of a library's kernels for one node.
constexpr int kMostTried = 8;

class OwnKernel final : public Kernel {
 public:
  OwnKernel(const cuda::OwnRequest& own_request, const cuda::OwnFunction& own)
      : own_(own),
        implementation_(absl::StrCat(kOwn, own.name)),
        shareable_(ElementwiseSharing(own_request.request)),
        inputs_(own_request.inputs),
        outputs_(own_request.outputs) {
    call_.op = own_request.request.node->op;
    call_.attributes = own_request.request.node->attributes;
    call_.input_infos = own_request.request.inputs;
    call_.output_infos = own_request.request.outputs;
  }

  const std::string& implementation() const override { return implementation_; }
  size_t workspace_bytes() const override { return own_.workspace_bytes; }
  Layout input_layout(int input) const override { return inputs_[static_cast<size_t>(input)]; }
  Layout output_layout(int output) const override { return outputs_[static_cast<size_t>(output)]; }
  bool CanShare(int input, int output) const override {
    return std::find(shareable_.begin(), shareable_.end(), std::pair(input, output)) != shareable_.end();
  }

  absl::Status Bind(const KernelArguments& arguments) override {
    if (arguments.inputs.size() != call_.input_infos.size() || arguments.outputs.size() != call_.output_infos.size()) {
      return absl::InternalError("a kernel is bound to another number of values than it was made for");
    }
    call_.inputs = arguments.inputs;
    call_.outputs = arguments.outputs;
    call_.workspace = arguments.workspace;
    return absl::OkStatus();
  }

  absl::Status Launch(Stream& stream) override { return own_.launch(call_, cuda::HandleOf(stream)); }

 private:
  const cuda::OwnFunction own_;
  const std::string implementation_;
  const std::vector<std::pair<int, int>> shareable_;
  const std::vector<Layout> inputs_;
  const std::vector<Layout> outputs_;
  cuda::DeviceCall call_;
};

absl::StatusOr<cuda::OwnFunction> Choose(const KernelRequest& request) {
  const cuda::OwnFunction own = cuda::FindOwn(request);
  if (own.launch == nullptr) return own.refusal == nullptr ? NotItsOp() : absl::UnimplementedError(own.refusal);
  if (own.epilogue != request.epilogue) return absl::UnimplementedError("fuses no ReLU behind the node");
  if (!request.implementation.empty() && request.implementation != absl::StrCat(kOwn, own.name)) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '", request.implementation,
                                                   "'; this device serves the node by '", kOwn, own.name, "'"));
  }
  return own;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeOwn(const KernelRequest& request) {
  const cuda::OwnRequest placed = cuda::PlaceChannels(request);
  LS_ASSIGN_OR_RETURN(const cuda::OwnFunction own, Choose(placed.request));
  return std::make_unique<OwnKernel>(placed, own);
}

// What buffers may take of the job's limit, 0 without one; `memory`: the same, or of what is free if that is less.
absl::StatusOr<int64_t> BudgetOf(const DeviceOptions& options, int64_t& memory) {
  int64_t total = 0;
  LS_RETURN_IF_ERROR(cuda::MemoryNow(&memory, &total));
  memory = std::max<int64_t>(memory - cuda::FixedMemoryOfCuda().later, 1);
  if (options.memory_limit == 0) return 0;
  const int64_t own = cuda::MemoryOfCuda(options.ordinal);
  if (options.memory_limit <= own) {
    return absl::ResourceExhaustedError(absl::StrCat("`resources.gpu_memory` allows a worker ", options.memory_limit,
                                                     " bytes of its GPU, and CUDA itself takes ", own,
                                                     ". Raise the limit, or share the GPU with fewer"));
  }
  memory = std::min(memory, options.memory_limit - own);
  return options.memory_limit - own;
}

class CudaDevice final : public Device {
 public:
  CudaDevice(DeviceInfo info, int64_t memory_limit, std::unique_ptr<cuda::VendorLibraries> libraries)
      : info_(std::move(info)),
        budget_(std::make_shared<cuda::MemoryBudget>(memory_limit)),
        libraries_(std::move(libraries)),
        trials_(budget_),
        implementations_(
            {{"NVIDIA's libraries", "", [this](const KernelRequest& request) { return MakeOfLibrary(request); }},
             {"own kernels", kOwn, MakeOwn},
             {"widened kernels", kWidened, [this](const KernelRequest& request) { return MakeWidened(request); }}}) {}

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    return cuda::NewDeviceBuffer(bytes, budget_);
  }
  absl::StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) override { return cuda::NewPinnedBuffer(bytes); }
  bool host_visible() const override { return false; }
  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override { return cuda::NewCudaStream(); }
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override { return cuda::NewCudaEvent(); }
  absl::Status Supports(const KernelRequest& request) const override { return Make(request).status(); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelRequest& request) override {
    return request.trial && request.implementation.empty() ? MakeFastest(request) : Make(request);
  }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeReorder(const ReorderRequest& request) override {
    return cuda::MakeChannelReorder(request);
  }
  StepMath& step_math() override { return *step_math_; }

 private:
  absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelRequest& request) const {
    return MakeFirst(implementations_, request);
  }

  // Of what libraries offer and the own kernel the fastest, made anew by its name: that drops what the others hold.
  absl::StatusOr<std::unique_ptr<Kernel>> MakeFastest(const KernelRequest& request) {
    KernelRequest named = request;
    named.implementation = trials_.Known(request);
    if (!named.implementation.empty()) return Make(named);
    {
      absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> kernels = libraries_->MakeKernels(request, kMostTried);
      if (!kernels.ok()) return Make(request);
      absl::StatusOr<std::unique_ptr<Kernel>> own = MakeOwn(request);
      // Those that differ in their layouts differ in what it costs to come by them, too.
      if (own.ok() && cuda::SameLayouts(request, **own, *kernels->front())) kernels->push_back(*std::move(own));
      const absl::StatusOr<std::unique_ptr<Kernel>> definition = MakeDefinition(request);
      named.implementation = trials_.Fastest(request, *kernels, definition.ok() ? definition->get() : nullptr);
    }
    return Make(named);
  }

  // An own kernel, for operands of BF16 a widened one.
  static absl::StatusOr<std::unique_ptr<Kernel>> MakeDefinition(const KernelRequest& request) {
    return ComputesBf16(request) ? MakeWidenedKernel(request, MakeOwn) : MakeOwn(request);
  }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeOfLibrary(const KernelRequest& request) const {
    absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> kernels = libraries_->MakeKernels(request, 1);
    if (kernels.ok()) return std::move(kernels->front());
    // Of a kernel that is widened the node's own refusal counts, not that of the wider one.
    const bool asked = request.remark != nullptr && request.remark->empty() && request.implementation.empty();
    if (asked && cuda::IsRefusal(kernels.status())) {
      *request.remark =
          absl::StrCat("a kernel of a library may be many times faster, but ", kernels.status().message());
    }
    return kernels.status();
  }

  // By any implementation but this one, which is the last of the list.
  absl::StatusOr<std::unique_ptr<Kernel>> MakeWidened(const KernelRequest& request) const {
    if (!ComputesBf16(request)) return NotItsOp();
    const auto others = absl::MakeConstSpan(implementations_).first(implementations_.size() - 1);
    return MakeWidenedKernel(request, [others](const KernelRequest& wide) { return MakeFirst(others, wide); });
  }

  const DeviceInfo info_;
  const std::shared_ptr<cuda::MemoryBudget> budget_;
  const std::unique_ptr<cuda::VendorLibraries> libraries_;
  cuda::KernelTrials trials_;
  const std::vector<Implementation> implementations_;
  const std::unique_ptr<StepMath> step_math_ = cuda::NewCudaStepMath();
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(const DeviceOptions& options) {
  LS_ASSIGN_OR_RETURN(const cuda::GpuFacts facts, cuda::FactsOf(options.ordinal));
  LS_RETURN_IF_ERROR(cuda::SelectDevice(options.ordinal));
  DeviceInfo info;
  info.kind = "cuda";
  info.library = cuda::RuntimeName();
  info.instruction_set = absl::StrCat("sm_", facts.capability_major, facts.capability_minor);
  info.model = facts.name;
  info.threads = options.threads;
  info.tf32 = options.tf32;
  if (!options.instruction_set.empty() && options.instruction_set != info.instruction_set) {
    return absl::InvalidArgumentError(absl::StrCat("GPU ", options.ordinal, " (", facts.name, ") is of ",
                                                   info.instruction_set, ", the kernel plan of ",
                                                   options.instruction_set));
  }
  const std::string gpu = absl::StrCat(info.instruction_set, "x", facts.multiprocessors);
  LS_ASSIGN_OR_RETURN(std::unique_ptr<cuda::VendorLibraries> libraries,
                      cuda::OpenVendorLibraries({.gpu = gpu, .tf32 = options.tf32}));
  if (!libraries->name().empty()) absl::StrAppend(&info.library, ", ", libraries->name());
  LS_ASSIGN_OR_RETURN(const int64_t budget, BudgetOf(options, info.memory));
  return std::make_unique<CudaDevice>(std::move(info), budget, std::move(libraries));
}

}  // namespace lockstep::device
