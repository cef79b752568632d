#include "worker/device/cuda/runtime/runtime.h"

#include <cuda_runtime_api.h>

#include <atomic>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/launch_status.h"
#include "worker/device/device_lost.h"

namespace lockstep::device::cuda {
namespace {

// The GPU that this process computes on, and that the calling thread is set to. Threads that only wait or free would
// otherwise work on GPU 0, and create a context there.
std::atomic<int> chosen{-1};
thread_local int current = -1;

void UseChosen() {
  const int ordinal = chosen.load(std::memory_order_relaxed);
  if (current != ordinal && cudaSetDevice(ordinal) == cudaSuccess) current = ordinal;
}

absl::Status Of(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();  // what is reported here is not the next launch's failure
  const std::string message =
      absl::StrCat("CUDA failed while ", doing, ": ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ")");
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(message);
    case cudaErrorInvalidDevice:
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
      return absl::FailedPreconditionError(message);
    // What stays for the life of the process.
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorExternalDevice:
    case cudaErrorContained:  // of a peer's memory that is gone
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
      return MarkDeviceLost(absl::InternalError(message));
    default:
      return absl::InternalError(message);
  }
}

absl::Status NoDeviceMemory(const char* where, size_t bytes, cudaError_t error) {
  (void)cudaGetLastError();  // an allocation that failed leaves nothing else behind
  size_t free = 0;
  size_t total = 0;
  if (error != cudaErrorMemoryAllocation || cudaMemGetInfo(&free, &total) != cudaSuccess) {
    return Of(error, "allocating memory");
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the ", where, " has no room for ", bytes, " bytes; ", free, " of the GPU's ", total, " are free"));
}

absl::Status Copy(StreamHandle stream, std::byte* to, const std::byte* from, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return absl::OkStatus();
  return Of(cudaMemcpyAsync(to, from, bytes, kind, stream), "queueing a copy");
}

}  // namespace

absl::Status LaunchStatus() { return Of(cudaGetLastError(), "launching a kernel"); }

absl::Status SelectDevice(int ordinal) {
  LS_RETURN_IF_ERROR(Of(cudaSetDevice(ordinal), "selecting a GPU"));
  current = ordinal;
  chosen = ordinal;
  return Of(cudaFree(nullptr), "creating a GPU's context");
}

absl::StatusOr<GpuFacts> FactsOf(int ordinal) {
  int count = 0;
  LS_RETURN_IF_ERROR(Of(cudaGetDeviceCount(&count), "counting GPUs"));
  if (ordinal < 0 || ordinal >= count) {
    return absl::InvalidArgumentError(absl::StrCat("there is no GPU ", ordinal, "; this machine shows ", count,
                                                   " of them, counted from 0 (CUDA_VISIBLE_DEVICES hides others)"));
  }
  cudaDeviceProp properties;
  LS_RETURN_IF_ERROR(Of(cudaGetDeviceProperties(&properties, ordinal), "asking for a GPU's properties"));
  return GpuFacts{
      .name = properties.name,
      .uuid = absl::BytesToHexString(absl::string_view(properties.uuid.bytes, sizeof properties.uuid.bytes)),
      .capability_major = properties.major,
      .capability_minor = properties.minor,
      .multiprocessors = properties.multiProcessorCount};
}

std::string RuntimeName() { return absl::StrCat("CUDA ", CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10); }

absl::Status MemoryNow(int64_t* free_bytes, int64_t* total_bytes) {
  size_t free = 0;
  size_t total = 0;
  LS_RETURN_IF_ERROR(Of(cudaMemGetInfo(&free, &total), "asking for free memory"));
  *free_bytes = static_cast<int64_t>(free);
  *total_bytes = static_cast<int64_t>(total);
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> AllocateDevice(size_t bytes) {
  UseChosen();
  void* memory = nullptr;
  // At least one byte, so that every buffer has an address of its own.
  const cudaError_t error = cudaMalloc(&memory, bytes == 0 ? 1 : bytes);
  if (error != cudaSuccess) return NoDeviceMemory("GPU", bytes, error);
  return static_cast<std::byte*>(memory);
}
void FreeDevice(std::byte* memory) {
  UseChosen();
  (void)cudaFree(memory);
}

absl::StatusOr<std::byte*> AllocatePinned(size_t bytes) {
  UseChosen();
  void* memory = nullptr;
  const cudaError_t error = cudaHostAlloc(&memory, bytes == 0 ? 1 : bytes, cudaHostAllocDefault);
  if (error != cudaSuccess) return NoDeviceMemory("host", bytes, error);
  return static_cast<std::byte*>(memory);
}
void FreePinned(std::byte* memory) {
  UseChosen();
  (void)cudaFreeHost(memory);
}

absl::StatusOr<StreamHandle> CreateStream() {
  UseChosen();
  cudaStream_t stream = nullptr;
  LS_RETURN_IF_ERROR(Of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream"));
  return stream;
}
void DestroyStream(StreamHandle stream) {
  UseChosen();
  (void)cudaStreamSynchronize(stream);
  (void)cudaStreamDestroy(stream);
}

absl::StatusOr<EventHandle> CreateEvent() {
  UseChosen();
  cudaEvent_t event = nullptr;
  LS_RETURN_IF_ERROR(Of(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event"));
  return event;
}
absl::StatusOr<EventHandle> CreateTimingEvent() {
  UseChosen();
  cudaEvent_t event = nullptr;
  LS_RETURN_IF_ERROR(Of(cudaEventCreate(&event), "creating an event"));
  return event;
}
void DestroyEvent(EventHandle event) {
  UseChosen();
  (void)cudaEventDestroy(event);
}

absl::Status RecordEvent(EventHandle event, StreamHandle stream) {
  return Of(cudaEventRecord(event, stream), "recording an event");
}
bool EventDone(EventHandle event) {
  UseChosen();
  if (cudaEventQuery(event) != cudaErrorNotReady) return true;
  (void)cudaGetLastError();  // CUDA keeps the answer "not yet" as an error
  return false;
}
absl::Status WaitForEvent(EventHandle event) {
  UseChosen();
  return Of(cudaEventSynchronize(event), "waiting for an event");
}
absl::StatusOr<float> MillisecondsBetween(EventHandle from, EventHandle to) {
  float milliseconds = 0;
  LS_RETURN_IF_ERROR(Of(cudaEventElapsedTime(&milliseconds, from, to), "reading the time between events"));
  return milliseconds;
}
absl::Status StreamWaits(StreamHandle stream, EventHandle event) {
  return Of(cudaStreamWaitEvent(stream, event, cudaEventWaitDefault), "queueing a wait");
}
absl::Status Synchronize(StreamHandle stream) {
  UseChosen();
  return Of(cudaStreamSynchronize(stream), "waiting for a stream");
}

absl::Status CopyToDevice(StreamHandle stream, std::byte* device, const std::byte* host, size_t bytes) {
  return Copy(stream, device, host, bytes, cudaMemcpyHostToDevice);
}
absl::Status CopyToHost(StreamHandle stream, std::byte* host, const std::byte* device, size_t bytes) {
  return Copy(stream, host, device, bytes, cudaMemcpyDeviceToHost);
}
absl::Status CopyOnDevice(StreamHandle stream, std::byte* to, const std::byte* from, size_t bytes) {
  return Copy(stream, to, from, bytes, cudaMemcpyDeviceToDevice);
}
absl::Status Zero(StreamHandle stream, std::byte* device, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return Of(cudaMemsetAsync(device, 0, bytes, stream), "queueing zeros");
}

// Thread-local: other threads (NCCL's, cuDNN's loaders) go on with calls that a capture would forbid.
absl::Status BeginCapture(StreamHandle stream) {
  return Of(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
}

absl::StatusOr<GraphHandle> EndCapture(StreamHandle stream) {
  cudaGraph_t graph = nullptr;
  LS_RETURN_IF_ERROR(Of(cudaStreamEndCapture(stream, &graph), "ending a capture"));
  cudaGraphExec_t executable = nullptr;
  const absl::Status made = Of(cudaGraphInstantiate(&executable, graph, 0), "instantiating a graph");
  (void)cudaGraphDestroy(graph);
  LS_RETURN_IF_ERROR(made);
  return executable;
}

absl::Status Replay(GraphHandle graph, StreamHandle stream) {
  return Of(cudaGraphLaunch(graph, stream), "launching a graph");
}
void DestroyGraph(GraphHandle graph) { (void)cudaGraphExecDestroy(graph); }

}  // namespace lockstep::device::cuda
