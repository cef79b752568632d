// What a plan needs of the machine it runs on: memory, ordered queues of work, marks in them, and kernels.
//
// Every call that touches a stream may return before the work is done, also where a CPU does it at once: callers wait
// on an Event or on Synchronize before they read memory, and the contract suite runs against a device that postpones
// everything until then. No vendor type appears here; implementations (`reference` and `cpu` in host/, `cuda`, and for
// tests the deferred one in worker/fakes) turn vendor errors into absl::Status. A device library links no protobuf,
// gRPC or logging.
//
// Threading: owned by one thread, the device's owner, which makes everything that the device makes (kernels, streams)
// and launches all work. Event::Ready and Event::Wait may be called from any thread.
#ifndef LOCKSTEP_WORKER_DEVICE_DEVICE_H_
#define LOCKSTEP_WORKER_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/layout.h"

namespace lockstep::device {

class Kernel;
class StepMath;
struct KernelRequest;
struct ReorderRequest;

// Device memory. Freed when the last owner drops it; REQUIRES: no queued work uses it then.
class Buffer {
 public:
  // Every buffer begins at a multiple of this.
  static constexpr size_t kAlignment = 256;

  virtual ~Buffer() = default;
  // The address in the device's own address space: what kernels are bound to.
  virtual std::byte* address() const = 0;
  virtual size_t size() const = 0;
  // True when the host may read and write `address` directly (after waiting for the work that uses it).
  virtual bool host_visible() const = 0;
};

// A mark in a stream.
class Event {
 public:
  virtual ~Event() = default;
  // True once everything queued before the newest Record has finished. Never blocks. True if never recorded.
  virtual bool Ready() const = 0;
  // Blocks until Ready. Returns the first failure of the work queued before the mark.
  virtual absl::Status Wait() = 0;
};

// Work that was written down once and can be queued as a whole, with the addresses and numbers of that time.
class Recording {
 public:
  virtual ~Recording() = default;
};

// Work that runs in the order in which it was queued. The first failure stays: later work is not run, and every later
// call returns that failure, until the stream is dropped.
class Stream {
 public:
  virtual ~Stream() = default;
  // Queues a mark. An event may be recorded again; the newest mark counts.
  virtual absl::Status Record(Event& event) = 0;
  // Later work of this stream starts after the event's newest mark. REQUIRES: an event of the same device.
  virtual absl::Status WaitFor(Event& event) = 0;
  // Queues a copy between host and device memory. REQUIRES: `host` stays alive and unchanged until it is done.
  virtual absl::Status CopyToDevice(std::byte* device, const std::byte* host, size_t bytes) = 0;
  virtual absl::Status CopyToHost(std::byte* host, const std::byte* device, size_t bytes) = 0;
  virtual absl::Status CopyOnDevice(std::byte* to, const std::byte* from, size_t bytes) = 0;
  // Queues filling with zero bytes.
  virtual absl::Status Zero(std::byte* device, size_t bytes) = 0;
  // Blocks until everything queued has finished; returns the first failure.
  virtual absl::Status Synchronize() = 0;

  // Whether work can be recorded and replayed, which takes a GPU's launches off the host.
  virtual bool can_record() const = 0;
  // Between these two, launches, copies on the device and zeros are written down instead of queued. REQUIRES:
  // can_record(); no other call of this stream in between; a launch of everything has succeeded before.
  virtual absl::Status BeginRecording() = 0;
  virtual absl::StatusOr<std::unique_ptr<Recording>> EndRecording() = 0;
  // Queues what was recorded by a stream of the same device. REQUIRES: the recording outlives the work.
  virtual absl::Status Replay(Recording& recording) = 0;
};

// What decides whether a kernel plan made elsewhere can run here.
struct DeviceInfo {
  std::string kind;             // "cpu", "reference": the job's `resources.device`
  std::string library;          // name, version and build of the kernel library: "oneDNN 2.6.3 (52b5f107…)"
  std::string instruction_set;  // the newest one that kernels use: "avx2", "avx512_core"; "portable" when none matters
  std::string model;            // the machine's own name for itself; explains a refusal, decides nothing
  int threads = 1;
  // Bytes of the device's own memory that its buffers may take, of what was free or allowed when it was made; 0: its
  // memory is the host's.
  int64_t memory = 0;
  bool tf32 = false;  // DeviceOptions::tf32, where the device has it
};

// What a job and a kernel plan fix about a device.
struct DeviceOptions {
  int threads = 1;
  // Highest instruction set that kernels may use, in the words of DeviceInfo; empty for the best one of this machine.
  // InvalidArgument at creation where this machine lacks it.
  std::string instruction_set;
  // Which of the machine's devices of this kind. Host devices know only 0 and ignore it.
  int ordinal = 0;
  // Most bytes of the device's own memory that this process may take, the context and libraries counted; 0: no limit.
  // Host devices ignore it.
  int64_t memory_limit = 0;
  // Matrix products and convolutions of float32 may round their factors to tf32. Other bits; host devices ignore it.
  bool tf32 = false;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // Memory filled with zeros, touched once so that no later use pays for it. ResourceExhausted names the size.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) = 0;
  // Host memory, likewise, from and to which copies are fastest and really overlap with work: pinned on a GPU. It is
  // visible to the host, and may outlive the device and be dropped by any thread.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) = 0;
  // Whether buffers of Allocate are visible to the host.
  virtual bool host_visible() const = 0;
  virtual absl::StatusOr<std::unique_ptr<Stream>> NewStream() = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> NewEvent() = 0;

  // OK when MakeKernel would succeed; else Unimplemented or InvalidArgument with the reason, without the node's name.
  virtual absl::Status Supports(const KernelRequest& request) const = 0;
  // A kernel for one node. Its errors are those of Supports.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelRequest& request) = 0;
  // A kernel with one input and one output that changes a value's layout.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> MakeReorder(const ReorderRequest& request) = 0;

  // What a step does behind its passes; lives as long as the device.
  virtual StepMath& step_math() = 0;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_DEVICE_H_
