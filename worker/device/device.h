// The interface of devices: memory, streams of work, events in them, and kernels.
//
// Every call that takes a stream may return before its work is done, although host devices do it at once: callers wait
// on an Event or for Synchronize before they read memory, and the contract suite also runs against a device that defers
// all work until then. No vendor type appears here; the implementations (`reference` and `cpu` in host/, `cuda`, and
// for tests the deferred device in worker/fakes) turn vendor errors into absl::Status. A device library links no
// protobuf, gRPC or logging.
//
// Threading: owned by one thread, the device's owner, which makes all kernels, streams and other objects of the device
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

// Device memory, freed by the destructor. REQUIRES: no queued work uses it then.
class Buffer {
 public:
  // The alignment of every buffer, in bytes.
  static constexpr size_t kAlignment = 256;

  virtual ~Buffer() = default;
  // The address in the device's address space, for kernels.
  virtual std::byte* address() const = 0;
  virtual size_t size() const = 0;
  // True when the host may access `address` directly (after waiting for the work that uses it).
  virtual bool host_visible() const = 0;
};

// A position in a stream, for which threads and other streams can wait.
class Event {
 public:
  virtual ~Event() = default;
  // True once everything queued before the latest Record has finished. Never blocks. True if never recorded.
  virtual bool Ready() const = 0;
  // Blocks until Ready. Returns the first failure of the work queued before the event.
  virtual absl::Status Wait() = 0;
};

// Recorded work that can be queued again as a whole, with the addresses and arguments of the recording.
class Recording {
 public:
  virtual ~Recording() = default;
};

// A queue whose work runs in order. After a failure later work is skipped, and every later call returns that first
// failure.
class Stream {
 public:
  virtual ~Stream() = default;
  // Places the event behind the work queued so far. An event may be recorded again; the latest recording counts.
  virtual absl::Status Record(Event& event) = 0;
  // Later work of this stream starts after the event's latest recording. REQUIRES: an event of the same device.
  virtual absl::Status WaitFor(Event& event) = 0;
  // Queues a copy between host and device memory. REQUIRES: `host` stays alive and unchanged until it is done.
  virtual absl::Status CopyToDevice(std::byte* device, const std::byte* host, size_t bytes) = 0;
  virtual absl::Status CopyToHost(std::byte* host, const std::byte* device, size_t bytes) = 0;
  virtual absl::Status CopyOnDevice(std::byte* to, const std::byte* from, size_t bytes) = 0;
  // Queues filling with zero bytes.
  virtual absl::Status Zero(std::byte* device, size_t bytes) = 0;
  // Blocks until everything queued has finished; returns the first failure.
  virtual absl::Status Synchronize() = 0;

  // Whether work can be recorded and replayed (CUDA graphs), which saves the host the individual launches.
  virtual bool can_record() const = 0;
  // Between BeginRecording and EndRecording, kernel launches, CopyOnDevice and Zero are recorded instead of queued.
  // REQUIRES: can_record(); no other call of this stream in between; each kernel was launched successfully before.
  virtual absl::Status BeginRecording() = 0;
  virtual absl::StatusOr<std::unique_ptr<Recording>> EndRecording() = 0;
  // Queues a recording of a stream of the same device. REQUIRES: the recording outlives the work.
  virtual absl::Status Replay(Recording& recording) = 0;
};

// The properties of a device that decide whether a kernel plan made elsewhere can run here.
struct DeviceInfo {
  std::string kind;             // "cpu", "reference": the job's `resources.device`
  std::string library;          // name, version and build of the kernel library: "oneDNN 2.6.3 (52b5f107…)"
  std::string instruction_set;  // the widest one that kernels use: "avx2", "avx512_core"; "portable" when irrelevant
  std::string model;            // the hardware's name, only for messages
  int threads = 1;
  // The bytes of device memory that buffers may take, by the free memory and the limit when the device was made; 0: the
  // device computes in host memory.
  int64_t memory = 0;
  bool tf32 = false;  // DeviceOptions::tf32, if the device supports it
};

// The properties of a device that a job and its kernel plan determine.
struct DeviceOptions {
  int threads = 1;
  // The highest instruction set that kernels may use, as in DeviceInfo; empty: the best one of this machine. Making a
  // device fails with InvalidArgument if the machine lacks it.
  std::string instruction_set;
  // The number of the device among those of its kind. Host devices ignore it.
  int ordinal = 0;
  // The most bytes of device memory that this process may take, context and libraries included; 0: no limit. Host
  // devices ignore it.
  int64_t memory_limit = 0;
  // Float32 matrix products and convolutions may round their factors to tf32, which changes bits. Host devices ignore
  // it.
  bool tf32 = false;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // Zeroed memory, with all pages touched so that later uses do not pay for page faults. ResourceExhausted names the
  // size.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) = 0;
  // Zeroed host memory for copies to and from the device; pinned on a GPU, so that copies are fast and overlap with
  // kernels. It is visible to the host, may outlive the device, and may be dropped by any thread.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) = 0;
  // Whether buffers of Allocate are visible to the host.
  virtual bool host_visible() const = 0;
  virtual absl::StatusOr<std::unique_ptr<Stream>> NewStream() = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> NewEvent() = 0;

  // OK when MakeKernel would succeed; else Unimplemented or InvalidArgument with the reason, without the node's name.
  virtual absl::Status Supports(const KernelRequest& request) const = 0;
  // Makes a kernel for one node. Errors are those of Supports.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelRequest& request) = 0;
  // Makes a kernel with one input and one output that changes a value's layout.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> MakeReorder(const ReorderRequest& request) = 0;

  // The arithmetic that follows a step's passes; lives as long as the device.
  virtual StepMath& step_math() = 0;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_DEVICE_H_
