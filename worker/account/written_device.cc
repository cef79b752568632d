#include "worker/account/written_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/account/written_step_math.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/cuda/runtime/host_gpu.h"

namespace lockstep::worker {
namespace {

// A range of addresses. What the host may see takes memory where it is written to, nothing else does.
class ReservedBuffer final : public device::Buffer {
 public:
  ReservedBuffer(void* address, size_t mapped, size_t size, bool visible)
      : address_(address), mapped_(mapped), size_(size), visible_(visible) {}
  ~ReservedBuffer() override { munmap(address_, mapped_); }
  ReservedBuffer(const ReservedBuffer&) = delete;
  ReservedBuffer& operator=(const ReservedBuffer&) = delete;

  std::byte* address() const override { return static_cast<std::byte*>(address_); }
  size_t size() const override { return size_; }
  bool host_visible() const override { return visible_; }

 private:
  void* const address_;
  const size_t mapped_;
  const size_t size_;
  const bool visible_;
};

absl::StatusOr<std::unique_ptr<device::Buffer>> Reserve(size_t bytes, bool visible) {
  constexpr size_t kPage = 4096;
  const size_t mapped = (bytes / kPage + 1) * kPage;
  void* const address = mmap(nullptr, mapped, visible ? PROT_READ | PROT_WRITE : PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("could not reserve addresses for ", bytes, " bytes"));
  }
  return std::make_unique<ReservedBuffer>(address, mapped, bytes, visible);
}

class WrittenEvent final : public device::Event {
 public:
  bool Ready() const override { return true; }
  absl::Status Wait() override { return absl::OkStatus(); }
};

struct WrittenRecording final : device::Recording {
  std::vector<int> works;
};

class WrittenStream final : public device::Stream {
 public:
  WrittenStream(Tape* tape, int number) : tape_(tape), number_(number) {}

  int number() const { return number_; }
  absl::Status Queue(int work) {
    if (recording_ != nullptr) {
      recording_->works.push_back(work);
    } else {
      tape_->Queue({.stream = number_, .work = work});
    }
    return absl::OkStatus();
  }

  absl::Status Record(device::Event&) override { return absl::OkStatus(); }
  absl::Status WaitFor(device::Event&) override { return absl::OkStatus(); }
  absl::Status CopyToDevice(std::byte*, const std::byte*, size_t bytes) override {
    return Copy("(copy to device)", Rate::kHostCopy, bytes);
  }
  absl::Status CopyToHost(std::byte* host, const std::byte*, size_t bytes) override {
    constexpr double kOne = 1;
    for (size_t at = 0; at < bytes; at += sizeof kOne) std::memcpy(host + at, &kOne, std::min(sizeof kOne, bytes - at));
    return Copy("(copy to host)", Rate::kHostCopy, bytes);
  }
  absl::Status CopyOnDevice(std::byte*, const std::byte*, size_t bytes) override {
    return Copy("(copy)", Rate::kElements, 2 * bytes);
  }
  absl::Status Zero(std::byte*, size_t bytes) override { return Copy("(zero)", Rate::kElements, bytes); }
  absl::Status Synchronize() override {
    tape_->Queue({.kind = TapeEntry::Kind::kWait, .stream = number_});
    return absl::OkStatus();
  }

  bool can_record() const override { return true; }
  absl::Status BeginRecording() override {
    recording_ = std::make_unique<WrittenRecording>();
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<device::Recording>> EndRecording() override { return std::move(recording_); }
  absl::Status Replay(device::Recording& recording) override {
    tape_->Queue({.kind = TapeEntry::Kind::kReplay, .stream = number_});
    for (const int work : static_cast<WrittenRecording&>(recording).works) {
      tape_->Queue({.stream = number_, .work = work, .recorded = true});
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Copy(const std::string& op, Rate rate, size_t bytes) {
    return Queue(tape_->FindCopy(op, rate, static_cast<int64_t>(bytes)));
  }

  Tape* const tape_;
  const int number_;
  std::unique_ptr<WrittenRecording> recording_;
};

class WrittenKernel final : public device::Kernel {
 public:
  WrittenKernel(std::unique_ptr<device::Kernel> inner, Tape* tape, int work, device::Stream* counting)
      : inner_(std::move(inner)), tape_(tape), work_(work), counting_(counting) {}

  const std::string& implementation() const override { return inner_->implementation(); }
  size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  device::Layout input_layout(int input) const override { return inner_->input_layout(input); }
  device::Layout output_layout(int output) const override { return inner_->output_layout(output); }
  bool CanShare(int input, int output) const override { return inner_->CanShare(input, output); }
  absl::Status Bind(const device::KernelArguments& arguments) override {
    counted_ = false;
    return inner_->Bind(arguments);
  }
  absl::Status Launch(device::Stream& stream) override {
    if (!std::exchange(counted_, true)) {
      LS_ASSIGN_OR_RETURN(tape_->work(work_).launches,
                          CountLaunches(*counting_, [this](device::Stream& inner) { return inner_->Launch(inner); }));
    }
    return QueueWork(stream, work_);
  }

 private:
  std::unique_ptr<device::Kernel> inner_;
  Tape* const tape_;
  const int work_;
  device::Stream* const counting_;
  bool counted_ = false;
};

}  // namespace

absl::StatusOr<int> CountLaunches(device::Stream& counting,
                                  const std::function<absl::Status(device::Stream& inner)>& queue) {
  LS_RETURN_IF_ERROR(counting.BeginRecording());
  const absl::Status queued = queue(counting);
  const int launches = device::cuda::CapturedWork(device::cuda::HandleOf(counting));
  LS_RETURN_IF_ERROR(counting.EndRecording().status());
  LS_RETURN_IF_ERROR(queued);
  return launches;
}

int NumberOf(const device::Stream& stream) { return static_cast<const WrittenStream&>(stream).number(); }

absl::Status QueueWork(device::Stream& stream, int work) { return static_cast<WrittenStream&>(stream).Queue(work); }

WrittenDevice::WrittenDevice(std::unique_ptr<device::Device> inner, Tape* tape)
    : inner_(std::move(inner)), tape_(tape) {}
WrittenDevice::~WrittenDevice() = default;

absl::StatusOr<std::unique_ptr<WrittenDevice>> WrittenDevice::Make(std::unique_ptr<device::Device> inner, Tape* tape) {
  std::unique_ptr<WrittenDevice> written(new WrittenDevice(std::move(inner), tape));
  LS_ASSIGN_OR_RETURN(written->counting_, written->inner_->NewStream());
  written->step_math_ =
      std::make_unique<WrittenStepMath>(&written->inner_->step_math(), tape, written->counting_.get());
  return written;
}

absl::StatusOr<std::unique_ptr<device::Buffer>> WrittenDevice::Allocate(size_t bytes) { return Reserve(bytes, false); }
absl::StatusOr<std::unique_ptr<device::Buffer>> WrittenDevice::AllocateHost(size_t bytes) {
  return Reserve(bytes, true);
}

absl::StatusOr<std::unique_ptr<device::Stream>> WrittenDevice::NewStream() {
  return std::make_unique<WrittenStream>(tape_, streams_++);
}

absl::StatusOr<std::unique_ptr<device::Event>> WrittenDevice::NewEvent() { return std::make_unique<WrittenEvent>(); }

absl::StatusOr<std::unique_ptr<device::Kernel>> WrittenDevice::MakeKernel(const device::KernelRequest& request) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel, inner_->MakeKernel(request));
  Work work = DescribeWork(request, kernel->implementation(), static_cast<int64_t>(kernel->workspace_bytes()));
  work.forward = !gradients_.Reaches(*request.node);
  const int index = tape_->Add(std::move(work));
  return std::make_unique<WrittenKernel>(std::move(kernel), tape_, index, counting_.get());
}

absl::StatusOr<std::unique_ptr<device::Kernel>> WrittenDevice::MakeReorder(const device::ReorderRequest& request) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel, inner_->MakeReorder(request));
  const auto word = [](const device::Layout& layout) {
    return layout.row_major() ? std::string("row-major") : layout.name;
  };
  const int index = tape_->Add({.name = absl::StrCat(word(request.from), " to ", word(request.to)),
                                .op = "(layout)",
                                .kernel = kernel->implementation(),
                                .shapes = absl::StrCat(DTypeName(request.dtype), ShapeString(request.shape)),
                                .rate = Rate::kLayout,
                                .bytes = 2 * NumElements(request.shape) * DTypeSize(request.dtype)});
  return std::make_unique<WrittenKernel>(std::move(kernel), tape_, index, counting_.get());
}

device::StepMath& WrittenDevice::step_math() { return *step_math_; }

}  // namespace lockstep::worker
