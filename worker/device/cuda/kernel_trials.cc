#include "worker/device/cuda/kernel_trials.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
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

// What was seen of a kernel's results.
struct Seen {
  std::vector<float> sample;
  std::vector<uint64_t> sums;
  bool operator==(const Seen& other) const {
    return sums == other.sums;  // of all bits, those of the sample too
  }
};

// Far beyond what the order of sums and the rounding of factors (tf32) or results (BF16) make of trial numbers: kernels
// that are wrong are meant.
float ToleranceFor(const KernelRequest& request) {
  const auto narrow = [](const Operand& o) { return o.present && o.dtype == DType::kBF16; };
  const bool bf16 = std::any_of(request.inputs.begin(), request.inputs.end(), narrow) ||
                    std::any_of(request.outputs.begin(), request.outputs.end(), narrow);
  return bf16 ? 0x1p-4f : 0x1p-7f;
}

// Where results differ by more than `tolerance` of the largest; empty: nowhere.
std::string Difference(const std::vector<Seen>& expected, const std::vector<Seen>& got, float tolerance) {
  for (size_t output = 0; output < expected.size(); ++output) {
    float largest = 0;
    for (const float value : expected[output].sample) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < expected[output].sample.size(); ++i) {
      const float a = expected[output].sample[i], b = got[output].sample[i];
      if (a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= tolerance * largest) continue;
      return absl::StrCat("gave ", b, " where an own kernel gives ", a, " (output ", output, ")");
    }
  }
  return "";
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
  Bench(const KernelRequest& request, absl::Span<const std::unique_ptr<Kernel>> kernels, const Kernel* definition)
      : request_(request) {
    for (const auto* operands : {&request.inputs, &request.outputs}) {
      for (const Operand& operand : *operands) bytes_ += SizeOf(operand);
    }
    workspace_ = bytes_;
    size_t scratch = 0;
    for (const auto& kernel : kernels) scratch = std::max(scratch, kernel->workspace_bytes());
    if (definition != nullptr) scratch = std::max(scratch, definition->workspace_bytes());
    bytes_ += Aligned(scratch);
    look_ = bytes_;
    bytes_ += kTrialSample * sizeof(float) + kTrialSums * sizeof(uint64_t);
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

  // Runs a kernel once. What an output holds before it differs from run to run: an element that is not written shows.
  absl::StatusOr<std::vector<Seen>> Look(Kernel& kernel) {
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, NewCudaStream());
    runs_ = !runs_;
    for (size_t i = 0; i < request_.outputs.size(); ++i) {
      const Operand& output = request_.outputs[i];
      if (!output.present) continue;
      LS_RETURN_IF_ERROR(stream->Zero(arguments_.outputs[i], SizeOf(output)));
      if (!runs_) continue;
      LS_RETURN_IF_ERROR(
          FillWithTrialNumbers(HandleOf(*stream), output.dtype, NumElements(output.shape), arguments_.outputs[i]));
    }
    LS_RETURN_IF_ERROR(kernel.Bind(arguments_));
    LS_RETURN_IF_ERROR(kernel.Launch(*stream));
    std::vector<Seen> seen;
    for (size_t i = 0; i < request_.outputs.size(); ++i) {
      const Operand& output = request_.outputs[i];
      if (!output.present || (output.dtype != DType::kF32 && output.dtype != DType::kBF16)) continue;
      LS_RETURN_IF_ERROR(See(*stream, output, arguments_.outputs[i], seen.emplace_back()));
    }
    LS_RETURN_IF_ERROR(stream->Synchronize());
    return seen;
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
  absl::Status See(Stream& stream, const Operand& output, const std::byte* elements, Seen& seen) {
    auto* const sums = reinterpret_cast<uint64_t*>(memory_->address() + look_);
    auto* const sample = reinterpret_cast<float*>(sums + kTrialSums);
    const int64_t count = NumElements(output.shape);
    seen.sample.resize(static_cast<size_t>(std::min(count, kTrialSample)));
    seen.sums.resize(static_cast<size_t>(kTrialSums));
    LS_RETURN_IF_ERROR(LookAtTrial(HandleOf(stream), output.dtype, count, elements, sample, sums));
    LS_RETURN_IF_ERROR(stream.CopyToHost(reinterpret_cast<std::byte*>(seen.sample.data()),
                                         reinterpret_cast<const std::byte*>(sample),
                                         seen.sample.size() * sizeof(float)));
    LS_RETURN_IF_ERROR(stream.CopyToHost(reinterpret_cast<std::byte*>(seen.sums.data()),
                                         reinterpret_cast<const std::byte*>(sums),
                                         seen.sums.size() * sizeof(uint64_t)));
    return stream.Synchronize();  // the next output is seen in the same memory
  }

  const KernelRequest& request_;
  size_t bytes_ = 0;
  size_t workspace_ = 0;
  size_t look_ = 0;
  bool runs_ = false;
  std::unique_ptr<Buffer> memory_;
  std::unique_ptr<Stopwatch> watch_;
  KernelArguments arguments_;
};

void Remark(const KernelRequest& request, absl::string_view text) {
  if (request.remark != nullptr) absl::StrAppend(request.remark, request.remark->empty() ? "" : "; ", text);
}

// Why a kernel must not serve; empty: it may. `expected` is what the definition gives, empty where nothing can be
// compared.
std::string FaultOf(const KernelRequest& request, Bench& bench, Kernel& kernel, const std::vector<Seen>& expected) {
  const absl::StatusOr<std::vector<Seen>> once = bench.Look(kernel), again = bench.Look(kernel);
  if (!once.ok() || !again.ok()) return "";  // it fails when it is timed, too
  const std::string difference = expected.empty() ? "" : Difference(expected, *once, ToleranceFor(request));
  if (!difference.empty()) return difference;
  return *once == *again ? "" : "gave other bits when it ran again";
}

}  // namespace

bool SameLayouts(const KernelRequest& request, const Kernel& a, const Kernel& b) {
  for (int i = 0; i < static_cast<int>(request.inputs.size()); ++i) {
    if (!(a.input_layout(i) == b.input_layout(i))) return false;
  }
  for (int i = 0; i < static_cast<int>(request.outputs.size()); ++i) {
    if (!(a.output_layout(i) == b.output_layout(i))) return false;
  }
  return true;
}

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

std::string KernelTrials::Fastest(const KernelRequest& request, absl::Span<const std::unique_ptr<Kernel>> kernels,
                                  Kernel* definition) {
  std::string chosen = kernels.front()->implementation();
  Bench with_definition(request, kernels, definition), without(request, kernels, nullptr);
  const bool compared = definition != nullptr && with_definition.Allocate(budget_).ok();
  Bench& bench = compared ? with_definition : without;
  if (compared || (kernels.size() > 1 && without.Allocate(budget_).ok())) {
    std::vector<Seen> expected;
    if (compared) expected = bench.Look(*definition).value_or(std::vector<Seen>());
    std::vector<float> times;
    for (const auto& kernel : kernels) {
      const bool comparable = compared && SameLayouts(request, *definition, *kernel);
      const std::string fault = FaultOf(request, bench, *kernel, comparable ? expected : std::vector<Seen>());
      if (!fault.empty()) Remark(request, absl::StrCat(kernel->implementation(), " is left out, since it ", fault));
      const size_t fastest = FastestOf(times);
      const float best = times.empty() ? 0 : std::max(times[fastest], 0.0f);
      times.push_back(fault.empty() ? bench.Time(*kernel, best).value_or(-1) : -1);
    }
    const size_t fastest = FastestOf(times);
    const bool none = times[fastest] < 0;
    chosen = none && definition != nullptr ? definition->implementation() : kernels[fastest]->implementation();
  }
  choices_.push_back({.node = {.op = request.node->op, .attributes = request.node->attributes},
                      .epilogue = request.epilogue,
                      .inputs = request.inputs,
                      .outputs = request.outputs,
                      .implementation = chosen});
  return chosen;
}

}  // namespace lockstep::device::cuda
