#include "worker/device/cuda/kernel_trials.h"

#include <algorithm>
#include <utility>

#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/runtime.h"
#include "worker/device/cuda/trial_numbers.h"

namespace lockstep::device::cuda {
namespace {

constexpr float kMargin = 0.03f;
constexpr int kSamples = 5;
// A sample is as many launches as take about this long, since events cannot tell microseconds apart.
constexpr float kSampleMilliseconds = 0.5f;
constexpr float kMostLaunches = 20;
// A kernel this much slower than the best is not looked at twice.
constexpr float kHopeless = 2;

size_t Aligned(size_t bytes) { return (bytes + Buffer::kAlignment - 1) & ~(Buffer::kAlignment - 1); }

size_t SizeOf(const Operand& operand) {
  return operand.present ? Aligned(static_cast<size_t>(NumElements(operand.shape)) * DTypeSize(operand.dtype)) : 0;
}

bool Alike(const std::vector<Operand>& a, const std::vector<Operand>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Operand& x, const Operand& y) {
    return x.present == y.present && (!x.present || (x.dtype == y.dtype && x.shape == y.shape && x.layout == y.layout));
  });
}

// Two events around work.
class Stopwatch {
 public:
  static absl::StatusOr<std::unique_ptr<Stopwatch>> Make() {
    auto watch = std::make_unique<Stopwatch>();
    LS_ASSIGN_OR_RETURN(watch->begin_, CreateTimingEvent());
    LS_ASSIGN_OR_RETURN(watch->end_, CreateTimingEvent());
    return watch;
  }
  ~Stopwatch() {
    if (begin_ != nullptr) DestroyEvent(begin_);
    if (end_ != nullptr) DestroyEvent(end_);
  }

  // Of one launch of several.
  absl::StatusOr<float> Time(Kernel& kernel, Stream& stream, int launches) {
    LS_RETURN_IF_ERROR(RecordEvent(begin_, HandleOf(stream)));
    for (int i = 0; i < launches; ++i) LS_RETURN_IF_ERROR(kernel.Launch(stream));
    LS_RETURN_IF_ERROR(RecordEvent(end_, HandleOf(stream)));
    LS_RETURN_IF_ERROR(stream.Synchronize());
    LS_ASSIGN_OR_RETURN(const float all, MillisecondsBetween(begin_, end_));
    return all / static_cast<float>(launches);
  }

 private:
  EventHandle begin_ = nullptr;
  EventHandle end_ = nullptr;
};

// The operands of all kernels of one request.
class Bench {
 public:
  Bench(const KernelRequest& request, absl::Span<const std::unique_ptr<Kernel>> kernels) : request_(request) {
    for (const auto* operands : {&request.inputs, &request.outputs}) {
      for (const Operand& operand : *operands) bytes_ += SizeOf(operand);
    }
    workspace_ = bytes_;
    size_t scratch = 0;
    for (const auto& kernel : kernels) scratch = std::max(scratch, kernel->workspace_bytes());
    bytes_ += scratch;
  }

  absl::Status Allocate(const std::shared_ptr<MemoryBudget>& budget) {
    LS_ASSIGN_OR_RETURN(memory_, NewDeviceBuffer(bytes_, budget));
    LS_ASSIGN_OR_RETURN(watch_, Stopwatch::Make());
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, NewCudaStream());
    std::byte* next = memory_->address();
    const auto place = [&](const std::vector<Operand>& operands, std::vector<std::byte*>& addresses) {
      for (const Operand& operand : operands) {
        addresses.push_back(operand.present ? next : nullptr);
        next += SizeOf(operand);
      }
    };
    place(request_.inputs, arguments_.inputs);
    place(request_.outputs, arguments_.outputs);
    arguments_.workspace = memory_->address() + workspace_;
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      const Operand& input = request_.inputs[i];
      if (!input.present) continue;
      LS_RETURN_IF_ERROR(
          FillWithTrialNumbers(HandleOf(*stream), input.dtype, NumElements(input.shape), arguments_.inputs[i]));
    }
    return stream->Synchronize();
  }

  // The median of several samples; fewer where a kernel is far behind `best` (0: there is none).
  absl::StatusOr<float> Time(Kernel& kernel, float best) {
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, NewCudaStream());
    LS_RETURN_IF_ERROR(kernel.Bind(arguments_));
    LS_RETURN_IF_ERROR(watch_->Time(kernel, *stream, 1).status());  // loads what is loaded at the first launch
    LS_ASSIGN_OR_RETURN(const float once, watch_->Time(kernel, *stream, 1));
    if (best > 0 && once > kHopeless * best) return once;
    const float launches = std::clamp(kSampleMilliseconds / std::max(once, 1e-6f), 1.0f, kMostLaunches);
    std::vector<float> samples;
    for (int i = 0; i < kSamples; ++i) {
      LS_ASSIGN_OR_RETURN(const float sample, watch_->Time(kernel, *stream, static_cast<int>(launches)));
      samples.push_back(sample);
    }
    std::sort(samples.begin(), samples.end());
    return samples[kSamples / 2];
  }

 private:
  const KernelRequest& request_;
  size_t bytes_ = 0;
  size_t workspace_ = 0;
  std::unique_ptr<Buffer> memory_;
  std::unique_ptr<Stopwatch> watch_;
  KernelArguments arguments_;
};

}  // namespace

size_t FastestOf(absl::Span<const float> milliseconds) {
  size_t best = 0;
  for (size_t i = 1; i < milliseconds.size(); ++i) {
    if (milliseconds[i] < 0) continue;
    if (milliseconds[best] < 0 || milliseconds[i] < (1 - kMargin) * milliseconds[best]) best = i;
  }
  return best;
}

const KernelTrials::Choice* KernelTrials::Find(const KernelRequest& request) const {
  for (const Choice& choice : choices_) {
    if (choice.node.op == request.node->op && choice.epilogue == request.epilogue &&
        choice.node.attributes == request.node->attributes && Alike(choice.inputs, request.inputs) &&
        Alike(choice.outputs, request.outputs)) {
      return &choice;
    }
  }
  return nullptr;
}

std::string KernelTrials::Known(const KernelRequest& request) const {
  const Choice* choice = Find(request);
  return choice == nullptr ? "" : choice->implementation;
}

std::string KernelTrials::Fastest(const KernelRequest& request, absl::Span<const std::unique_ptr<Kernel>> kernels) {
  size_t chosen = 0;
  Bench bench(request, kernels);
  if (kernels.size() > 1 && bench.Allocate(budget_).ok()) {
    std::vector<float> times;
    for (const auto& kernel : kernels) {
      const size_t fastest = FastestOf(times);
      const float best = times.empty() ? 0 : std::max(times[fastest], 0.0f);
      times.push_back(bench.Time(*kernel, best).value_or(-1));
    }
    chosen = FastestOf(times);
  }
  choices_.push_back({.node = {.op = request.node->op, .attributes = request.node->attributes},
                      .epilogue = request.epilogue,
                      .inputs = request.inputs,
                      .outputs = request.outputs,
                      .implementation = kernels[chosen]->implementation()});
  return choices_.back().implementation;
}

}  // namespace lockstep::device::cuda
