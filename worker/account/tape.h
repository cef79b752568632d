// A log of what was queued on a device that records work instead of executing it (written_device.h): the bytes and
// operations of each piece of work, and the order of queueing.
//
// Threading: owned by the thread that owns the device.
#ifndef LOCKSTEP_WORKER_ACCOUNT_TAPE_H_
#define LOCKSTEP_WORKER_ACCOUNT_TAPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "worker/device/kernel.h"

namespace lockstep::worker {

// Classes of work that run at the same share of the machine's peak; rates.h has the shares. A vendor kernel is one of
// cuBLASLt or cuDNN; matrix units are tensor cores.
enum class Rate : uint8_t {
  kProduct,        // vendor kernels on matrix units, rows aligned to 16 bytes
  kOffProduct,     // the same with rows that are not aligned to 16 bytes
  kConvolution,    // vendor kernels on matrix units
  kFloatProduct,   // products and convolutions by vendor kernels in float32
  kAttention,      // vendor kernels
  kAttentionGrad,  // vendor kernels
  kOwnProduct,     // products, convolutions and attention by the project's kernels, without matrix units
  kLayerNorm,
  kBatchNorm,
  kLoss,
  kGelu,
  kCast,
  kElements,  // element-wise: sums, Relu, copies within the device
  kLayout,    // reorders between layouts
  kUpdate,    // StepMath: what a step computes after its passes
  kHostCopy,  // copies between host and device
  kOther,
};
inline constexpr int kRates = 17;

// The execution units that run a work's operations.
enum class Units : uint8_t { kBf16, kTf32, kF32 };

// A piece of work that may be queued many times: a node's kernel, a copy, a call of StepMath.
struct Work {
  std::string name;  // of the node
  std::string op;    // "MatMul"; in parentheses when it is no op of the graph: "(copy)"
  std::string kernel;
  std::string shapes;
  Rate rate = Rate::kOther;
  Units units = Units::kF32;
  int64_t operations = 0;  // of products, convolutions and attention; see ArithmeticOperations
  int64_t bytes = 0;       // memory traffic: each value once, scratch twice (written and read)
  int launches = 1;
  bool forward = false;  // a node of the forward pass, whose inputs are no gradients
};

// One item in queueing order: queued work, or a wait of the host.
struct TapeEntry {
  enum class Kind : uint8_t {
    kWork,
    kReplay,  // a recording is replayed; its works follow as entries with `recorded`
    kReduce,  // a bucket is handed to the device communicator
    kWait,    // the host waits for the stream
  };
  Kind kind = Kind::kWork;
  int stream = 0;
  int work = -1;          // kWork: index into Tape::works
  bool recorded = false;  // kWork: part of the preceding replay
  int64_t elements = 0;   // kReduce
  bool exact = false;     // kReduce: sums of int64, not of float32
  friend bool operator==(const TapeEntry&, const TapeEntry&) = default;
};

class Tape {
 public:
  // Adds a work and returns its index.
  int Add(Work work);
  // Returns the index of a copy of `bytes`, which is added when there is none yet.
  int FindCopy(const std::string& op, Rate rate, int64_t bytes);
  Work& work(int index) { return works_[static_cast<size_t>(index)]; }
  const std::vector<Work>& works() const { return works_; }

  // Drops all entries and begins to keep new ones.
  void Start();
  // Ends keeping and returns the entries since Start.
  std::vector<TapeEntry> Stop();
  // Appends an entry; ignored outside of Start and Stop.
  void Queue(TapeEntry entry);

 private:
  std::vector<Work> works_;
  std::vector<TapeEntry> entries_;
  bool keeping_ = false;
};

// The bytes and operations of a node's kernel. `implementation` and `workspace_bytes` are the kernel's.
Work DescribeWork(const device::KernelRequest& request, const std::string& implementation, int64_t workspace_bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_TAPE_H_
