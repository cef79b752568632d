#include "worker/device/cuda/checker/kernel_checks.h"

#include <cxxabi.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status/check.h"
#include "worker/device/cuda/checker/checker.h"
#include "worker/device/cuda/checker/report.h"

namespace lockstep::device::cuda::checker {

thread_local KernelChecks* running = nullptr;

namespace {

std::string Readable(absl::string_view linked) {
  const std::string name(linked);
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return name;
  const std::string readable =
      absl::StrReplaceAll(text, {{"lockstep::device::cuda::", ""}, {"(anonymous namespace)::", ""}});
  std::free(text);
  return readable;
}

struct SegmentSearch {
  uintptr_t address = 0;
  Range found;
};

int InReadOnly(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<SegmentSearch*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const Range range{info->dlpi_addr + segment.p_vaddr, segment.p_memsz};
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0 || !range.Has(search.address)) continue;
    search.found = range;
    return 1;
  }
  return 0;
}

// Where the program keeps its constants around `address`; nothing where it keeps none there.
Range ConstantsAround(uintptr_t address) {
  SegmentSearch search{.address = address, .found = {}};
  dl_iterate_phdr(&InReadOnly, &search);
  return search.found;
}

std::string At(int32_t place) {
  const std::string text = DescribePlace(place);
  return text.empty() ? "" : absl::StrCat(", in ", text);
}

}  // namespace

void KernelChecks::BeginBlock(uint64_t block, size_t threads, Range dynamic) {
  LS_CHECK(block <= UINT32_MAX, "blocks of a launch have numbers of 32 bits");
  now_.access.block = static_cast<uint32_t>(block);
  times_.assign((threads + kWarpThreads - 1) / kWarpThreads, 1);
  now_.barrier = 1;
  dynamic_ = dynamic;
  if (dynamic.bytes > 0 && (dynamic_shadow_ == nullptr || dynamic_shadow_->bytes() < dynamic.bytes)) {
    dynamic_shadow_ = std::make_unique<Shadow>(dynamic.bytes);
  }
}

void KernelChecks::PassBlockBarrier() {
  now_.barrier = *std::max_element(times_.begin(), times_.end()) + 1;
  std::fill(times_.begin(), times_.end(), now_.barrier);
}

void KernelChecks::Enter(size_t thread, Range stack) {
  now_.access.thread = static_cast<uint16_t>(thread);
  now_.access.time = times_[thread / kWarpThreads];
  stack_ = stack;
  if (kChecks) running = this;
}

void KernelChecks::Leave() { running = nullptr; }

void KernelChecks::StoreSame(const void* memory, size_t bytes, const void* return_address) {
  if (!kChecks) return;
  Leave();
  now_.access.who = Who::kSame;
  Touch(reinterpret_cast<uintptr_t>(memory), bytes, true, true, return_address);
  now_.access.who = Who::kThread;
  running = this;
}

std::string KernelChecks::DescribeThread() const {
  return absl::StrCat("thread ", now_.access.thread, " of block ", now_.access.block);
}

std::string KernelChecks::Describe(const Request& request) const {
  return absl::StrCat(DescribeThread(), request.write ? " writes " : " reads ", request.bytes, " bytes at 0x",
                      absl::Hex(request.address));
}

void KernelChecks::TouchMemory(const Request& request, const void* return_address) {
  const uintptr_t address = request.address;
  const bool device = Map().InDeviceRange(address);
  if (of_host_ && !device) return;
  now_.access.place = PlaceOf(return_address);
  if (request.aligned && (address & (request.bytes - 1)) != 0) Refuse(request, "which is not aligned to its size");
  if (device) {
    TouchDevice(request);
  } else if (dynamic_.Has(address)) {
    const size_t offset = address - dynamic_.from;
    if (offset + request.bytes > dynamic_.bytes) Refuse(request, "part of which is behind dynamic shared memory");
    TouchShadow(request, *dynamic_shadow_, offset, true, "dynamic shared memory");
  } else if (last_variable_.Has(address) && last_variable_.Has(address + request.bytes - 1)) {
    TouchVariable(request);
  } else if (const SharedMemory::Found* found = shared_.Find(address, request.bytes); found != nullptr) {
    if (found->variable == nullptr) Refuse(request, "which is in no __shared__ variable");
    last_shared_ = *found;
    last_shared_.offset -= address;  // what an address becomes an offset by
    last_variable_ = {found->variable->offset - last_shared_.offset, found->variable->bytes};
    TouchVariable(request);
  } else if (request.write || !IsConstant(address)) {
    TouchPinned(request);
  }
}

void KernelChecks::Refuse(const Request& request, const std::string& why) {
  Report(absl::StrCat(Describe(request), ", ", why, At(now_.access.place)));
}

void KernelChecks::TouchDevice(const Request& request) {
  if (last_ == nullptr || !last_->Has(request.address, request.bytes)) {
    Piece* const piece = Map().Device(request.address);
    if (piece == nullptr) Refuse(request, "which is not device memory, or not any more");
    if (!piece->Has(request.address, request.bytes)) {
      Refuse(request,
             absl::StrCat("byte ", request.address - piece->address, " of an allocation of ", piece->bytes, " bytes"));
    }
    piece->used.Set(now_.access.slot, now_.access.operation);
    last_ = piece;
  }
  TouchShadow(request, *last_->shadow, request.address - last_->address, false, "device memory");
}

void KernelChecks::TouchVariable(const Request& request) {
  TouchShadow(request, *last_shared_.shadow, request.address + last_shared_.offset, true, last_shared_.variable->name);
}

void KernelChecks::TouchPinned(const Request& request) {
  Piece* const piece = Map().Pinned(request.address);
  if (piece == nullptr || !piece->Has(request.address, request.bytes)) {
    Refuse(request, "which is neither memory that a GPU sees, nor its own, nor its block's");
  }
  piece->used.Set(now_.access.slot, now_.access.operation);
  TouchShadow(request, *piece->shadow, request.address - piece->address, false, "pinned memory");
}

bool KernelChecks::IsConstant(uintptr_t address) {
  if (!constants_.Has(address)) constants_ = ConstantsAround(address);
  return constants_.Has(address);
}

void KernelChecks::TouchShadow(const Request& request, Shadow& shadow, size_t offset, bool of_block,
                               absl::string_view memory) {
  shadow.Visit(offset, request.bytes, [&](size_t, Cell& cell) {
    if (!request.write && cell.IsRead(now_)) return;
    const bool holds = of_block ? cell.written_by_block(now_) : cell.written();
    if (of_block && !now_.SameBlock(cell.last_write())) cell.Begin(Access());
    if (!request.write && !holds) {
      Report(absl::StrCat(Describe(request), " of ", Readable(memory), ", which nothing has written",
                          of_block ? " in this block" : "", At(now_.access.place)));
    }
    const Access* const past = request.write ? cell.Write(now_) : cell.Read(now_);
    if (past != nullptr) ReportRace(request, *past, past == &cell.last_write(), memory);
  });
}

void KernelChecks::ReportRace(const Request& request, const Access& past, bool past_wrote, absl::string_view memory) {
  const bool other_operation = !now_.SameOperation(past);
  const bool other_block = !other_operation && (past.who == Who::kBlocks || past.block != now_.access.block);
  const std::string other = other_operation            ? "an operation of another stream"
                            : past.who == Who::kThread ? absl::StrCat("thread ", past.thread, " of block ", past.block)
                                                       : absl::StrCat("thread ", past.thread, " and others");
  Report(absl::StrCat("a race: ", Describe(request), " of ", Readable(memory), At(now_.access.place), "; ",
                      other_operation ? "no event"
                      : other_block   ? "nothing"
                                      : "no barrier",
                      " orders it after ", other, ", which ", past_wrote ? "wrote" : "read", " it", At(past.place)));
}

void RunLibrary(const char* name, absl::FunctionRef<void()> work) {
  const Operation operation(name);
  KernelChecks checks({}, true);
  checks.BeginLaunch(operation.now());
  checks.BeginBlock(0, 1, {});
  checks.Enter(0, {});
  work();
  KernelChecks::Leave();
}

}  // namespace lockstep::device::cuda::checker
