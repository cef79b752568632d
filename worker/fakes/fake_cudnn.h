// Replaces the functions of cuDNN that need a GPU by ones that compute in streams of host execution. Graphs, heuristics
// and plans remain the library's own, made for a described GPU; execution interprets the plan's own description
// (fake_cudnn_program.h).
//
// Threading: owned by the test's thread; work in streams reads only its own copies.
#ifndef LOCKSTEP_WORKER_FAKES_FAKE_CUDNN_H_
#define LOCKSTEP_WORKER_FAKES_FAKE_CUDNN_H_

#include <cudnn.h>

#include <cstdint>
#include <map>

namespace lockstep::device::cuda {

struct FakeCudnn {
  // The result of cudnnCreate.
  cudnnStatus_t create = CUDNN_STATUS_SUCCESS;
  // Refuses every graph.
  bool refuses = false;
  // The number of executions of plans.
  int executions = 0;
  // The number of plans made; making one may compile code.
  int plans = 0;
  // The duration of a launch on host execution's clock, by engine number; 1 for others.
  std::map<int64_t, double> milliseconds;

  static FakeCudnn& Get();
};

// The description, in cuDNN 9's form, of a GPU with 132 multiprocessors, to choose engines for.
inline constexpr char kDescribedGpu[] =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
    R"("multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
    R"("maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
    R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
    R"("supportCoopLaunch":1,"totalGlobalMem":85000000000,"smClockRateKHz":1980000,"memClockRateKHz":2619000,)"
    R"("l2CacheSize":52428800,"cudaDeviceId":0,"deviceVer":900,"driverVer":13000,"deviceName":"described"})";
inline constexpr char kDescribedGpuName[] = "sm_90x132";

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_FAKES_FAKE_CUDNN_H_
