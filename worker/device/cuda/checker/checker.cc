#include "worker/device/cuda/checker/checker.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "worker/device/cuda/checker/report.h"

namespace lockstep::device::cuda::checker {

#ifdef LS_HOST_CHECKS
const bool kChecks = true;
#else
const bool kChecks = false;
#endif

namespace {

thread_local StreamOrder* of_thread = nullptr;

// What streams leave behind, and what the host knows.
struct Order {
  std::mutex mutex;
  Clock host;
  std::set<uint8_t> free;
  int slots = 0;
  std::vector<Clock> left = std::vector<Clock>(256);  // by slot, of the last stream that had it
};
Order& Streams() {
  static auto* order = new Order;
  return *order;
}

// Where nothing runs in a stream, as in tests of kernels by themselves.
StreamOrder& OwnOrder() {
  thread_local StreamOrder order;
  return order;
}

std::string Describe(const Piece& piece, size_t offset) {
  return absl::StrCat(piece.pinned ? "pinned" : "device", " memory, byte ", offset, " of ", piece.bytes);
}

}  // namespace

MemoryMap& Map() {
  static auto* map = new MemoryMap;
  return *map;
}

std::mutex& Lock() {
  static auto* lock = new std::mutex;
  return *lock;
}

Clock HostKnows() {
  const std::lock_guard<std::mutex> lock(Streams().mutex);
  return Streams().host;
}

void HostLearns(const Clock& clock) {
  const std::lock_guard<std::mutex> lock(Streams().mutex);
  Streams().host.Join(clock);
}

StreamOrder::StreamOrder() {
  Order& streams = Streams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  if (streams.free.empty()) {
    LS_CHECK(streams.slots < 256, "the checker has numbers for as many streams");
    slot_ = static_cast<uint8_t>(streams.slots++);
  } else {
    slot_ = *streams.free.begin();
    streams.free.erase(streams.free.begin());
  }
  clock_ = streams.left[slot_];
}

StreamOrder::~StreamOrder() {
  Order& streams = Streams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  streams.host.Join(clock_);
  streams.left[slot_] = clock_;
  streams.free.insert(slot_);
}

void StreamOrder::Enter() { of_thread = this; }
StreamOrder& StreamOrder::OfThread() { return *of_thread; }

Operation::Operation(const char* name) : name_(name), lock_(Lock()) {
  StreamOrder& order = of_thread != nullptr ? *of_thread : OwnOrder();
  if (of_thread == nullptr) order.Learn(HostKnows());
  const uint32_t operation = order.clock_.At(order.slot_) + 1;
  order.clock_.Set(order.slot_, operation);
  now_.access = {
      .operation = operation, .block = 0, .time = 0, .place = 0, .thread = 0, .slot = order.slot_, .who = Who::kThread};
  now_.clock = &order.clock_;
}

Operation::~Operation() {
  if (of_thread == nullptr) HostLearns(*now_.clock);
}

void Operation::Touch(const void* memory, size_t bytes, bool write) {
  if (!kChecks || bytes == 0) return;
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const bool device = Map().InDeviceRange(address);
  Piece* const piece = device ? Map().Device(address) : Map().Pinned(address);
  const bool inside = piece != nullptr && piece->Has(address, bytes);
  const std::string does = absl::StrCat(name_, write ? " writes " : " reads ");
  if (device && !inside) {
    Report(absl::StrCat(does, bytes, " bytes ",
                        piece == nullptr ? "where no device memory is, or not any more"
                                         : absl::StrCat("from byte ", address - piece->address, " of an allocation of ",
                                                        piece->bytes)));
  }
  if (!inside) return;
  piece->used.Set(now_.access.slot, now_.access.operation);
  piece->shadow->Visit(address - piece->address, bytes, [&](size_t offset, Cell& cell) {
    const bool holds = write || !device || cell.written();
    if (!holds) Report(absl::StrCat(does, Describe(*piece, offset), ", which nothing has written"));
    const Access* const past = write ? cell.Write(now_) : cell.Read(now_);
    if (past == nullptr) return;
    Report(absl::StrCat(does, Describe(*piece, offset),
                        ", and nothing orders it after an operation of another stream that ",
                        past == &cell.last_write() ? "wrote" : "read", " it",
                        past->place == 0 ? "" : absl::StrCat(", in ", DescribePlace(past->place))));
  });
}

void Operation::Empties(const void* memory, size_t bytes) {
  Writes(memory, bytes);
  Piece* const piece = Map().Device(reinterpret_cast<uintptr_t>(memory));
  if (!kChecks || piece == nullptr) return;
  piece->shadow->Visit(reinterpret_cast<uintptr_t>(memory) - piece->address, bytes,
                       [](size_t, Cell& cell) { cell.Begin(Access()); });
}

void CheckFree(const Piece& piece) {
  if (!kChecks || HostKnows().KnowsAllOf(piece.used)) return;
  Report(absl::StrCat(piece.bytes, " bytes of ", piece.pinned ? "pinned" : "device",
                      " memory are freed, and nobody has waited for an operation of a stream that uses them"));
}

}  // namespace lockstep::device::cuda::checker
