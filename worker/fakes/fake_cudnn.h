// Those of cuDNN's functions that need a GPU, replaced by ones that compute in host execution's streams. Graphs, the
// heuristics and plans stay the library's own, for a GPU that is described to it: what is executed is what the plan
// that cuDNN built says of itself.
//
// Threading: owned by the test's thread; what a stream runs reads only what it was given.
#ifndef LOCKSTEP_WORKER_FAKES_FAKE_CUDNN_H_
#define LOCKSTEP_WORKER_FAKES_FAKE_CUDNN_H_

#include <cudnn.h>

#include <cstdint>
#include <map>

namespace lockstep::device::cuda {

struct FakeCudnn {
  // What cudnnCreate answers.
  cudnnStatus_t create = CUDNN_STATUS_SUCCESS;
  // Refuses every graph.
  bool refuses = false;
  // How often a plan was executed.
  int executions = 0;
  // How often a plan was made, which may mean compiling.
  int plans = 0;
  // What a launch takes by host execution's clock, by the engine's number; others take 1.
  std::map<int64_t, double> milliseconds;

  static FakeCudnn& Get();
};

// A GPU of 132 multiprocessors as cuDNN 9 describes one, to choose engines for.
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
