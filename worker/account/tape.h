// What was queued on a device that writes work down instead of doing it (written_device.h): what each work would move
// and compute, and the order in which all of it was queued.
//
// Threading: owned by the thread that owns the device.
#ifndef LOCKSTEP_WORKER_ACCOUNT_TAPE_H_
#define LOCKSTEP_WORKER_ACCOUNT_TAPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "worker/device/kernel.h"

namespace lockstep::worker {

// What works have in common that are equally good at what they do: rates.h says how good.
enum class Rate : uint8_t {
  kProduct,        // of a library on matrix units, rows of 16 bytes
  kOffProduct,     // likewise, rows that begin off 16 bytes
  kConvolution,    // of a library on matrix units
  kFloatProduct,   // products and convolutions of a library in float32
  kAttention,      // of a library
  kAttentionGrad,  // likewise
  kOwnProduct,     // products, convolutions and attention of own kernels, without matrix units
  kLayerNorm,
  kBatchNorm,
  kLoss,
  kGelu,
  kCast,
  kElements,  // element by element: sums, Relu, copies on the device
  kLayout,
  kUpdate,    // the arithmetic of a step behind its passes
  kHostCopy,  // over the bus
  kOther,
};
inline constexpr int kRates = 17;

// On which units operations run.
enum class Units : uint8_t { kBf16, kTf32, kF32 };

// Something that is queued again and again.
struct Work {
  std::string name;  // of the node
  std::string op;    // "MatMul"; in brackets what is no op of a graph
  std::string kernel;
  std::string shapes;
  Rate rate = Rate::kOther;
  Units units = Units::kF32;
  int64_t operations = 0;  // of products, convolutions and attention; see ArithmeticOperations
  int64_t bytes = 0;       // values once each, scratch twice
  int launches = 1;
  bool forward = false;  // a node that no gradient reaches
};

// One thing that was queued, or one that the host did.
struct TapeEntry {
  enum class Kind : uint8_t {
    kWork,
    kReplay,  // of a recording; its works follow
    kReduce,  // a bucket is handed to the communicator of the device
    kWait,    // the host waits for the stream
  };
  Kind kind = Kind::kWork;
  int stream = 0;
  int work = -1;          // kWork: into Tape::works
  bool recorded = false;  // kWork: a part of the replay before
  int64_t elements = 0;   // kReduce
  bool exact = false;     // kReduce: sums are integers
  friend bool operator==(const TapeEntry&, const TapeEntry&) = default;
};

class Tape {
 public:
  // The index of a new work.
  int Add(Work work);
  // The index of a copy of so many bytes, added when there is none.
  int FindCopy(const std::string& op, Rate rate, int64_t bytes);
  Work& work(int index) { return works_[static_cast<size_t>(index)]; }
  const std::vector<Work>& works() const { return works_; }

  // Forgets the entries and begins to keep.
  void Start();
  std::vector<TapeEntry> Stop();
  void Queue(TapeEntry entry);

 private:
  std::vector<Work> works_;
  std::vector<TapeEntry> entries_;
  bool keeping_ = false;
};

// What a node's kernel moves and computes. `implementation` and `workspace_bytes` are the kernel's.
Work DescribeWork(const device::KernelRequest& request, const std::string& implementation, int64_t workspace_bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_TAPE_H_
