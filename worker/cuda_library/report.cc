#include "worker/cuda_library/report.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::device {
namespace {

// The oldest GPU, by the first part of its compute capability, that the library has code for.
constexpr int kOldestMajor = LS_OLDEST_GPU;

std::string Version(int64_t number, int64_t major_unit, int64_t minor_unit) {
  return absl::StrCat(number / major_unit, ".", number % major_unit / minor_unit);
}

std::string ThreePartVersion(int64_t number, int64_t major_unit, int64_t minor_unit) {
  return absl::StrCat(Version(number, major_unit, minor_unit), ".", number % minor_unit);
}

// NVIDIA's management library, which comes with the driver: it knows free memory without a context on the GPU. Its C
// interface is small enough to be declared here; the toolkit of a build machine need not have its header.
class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    const auto init = Find<int()>("nvmlInit_v2");
    if (init == nullptr || init() != 0) return;
    driver_version_ = Find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
    handle_of_ = Find<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    memory_of_ = Find<int(void*, Memory*)>("nvmlDeviceGetMemoryInfo");
  }
  ~Nvml() {
    if (library_ == nullptr) return;
    if (const auto shutdown = Find<int()>("nvmlShutdown"); shutdown != nullptr) shutdown();
    dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Empty where it is not known.
  std::string DriverVersion() const {
    char version[96] = {};
    return driver_version_ != nullptr && driver_version_(version, sizeof version) == 0 ? version : "";
  }
  // -1 where it is not known.
  int64_t FreeBytes(const char* bus_id) const {
    void* handle = nullptr;
    Memory memory;
    if (handle_of_ == nullptr || memory_of_ == nullptr) return -1;
    if (handle_of_(bus_id, &handle) != 0 || memory_of_(handle, &memory) != 0) return -1;
    return static_cast<int64_t>(memory.free);
  }

 private:
  struct Memory {
    unsigned long long total = 0;  // NOLINT(runtime/int): the interface's own type
    unsigned long long free = 0;   // NOLINT(runtime/int)
    unsigned long long used = 0;   // NOLINT(runtime/int)
  };
  template <typename F>
  F* Find(const char* name) const {
    return reinterpret_cast<F*>(dlsym(library_, name));
  }

  void* const library_;
  int (*driver_version_)(char*, unsigned) = nullptr;
  int (*handle_of_)(const char*, void**) = nullptr;
  int (*memory_of_)(void*, Memory*) = nullptr;
};

// A library that is not linked, asked for its version.
CudaComponent Loaded(const char* file, const char* package, std::string (*version)(void* library)) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return {"", absl::StrCat(file, " is not there: install it (Python's package ", package,
                             " has it) and name its folder in LD_LIBRARY_PATH")};
  }
  return {version(library), ""};
}

std::string CudnnVersion(void* library) {
  const auto ask = reinterpret_cast<size_t (*)()>(dlsym(library, "cudnnGetVersion"));
  return ask == nullptr ? "unknown" : ThreePartVersion(static_cast<int64_t>(ask()), 10000, 100);
}

std::string NcclVersion(void* library) {
  const auto ask = reinterpret_cast<int (*)(int*)>(dlsym(library, "ncclGetVersion"));
  int version = 0;
  return ask == nullptr || ask(&version) != 0 ? "unknown" : ThreePartVersion(version, 10000, 100);
}

CudaGpu DescribeGpu(int ordinal, int count, const Nvml& nvml) {
  CudaGpu gpu;
  gpu.ordinal = ordinal;
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal); error != cudaSuccess) {
    gpu.problem = cudaGetErrorString(error);
    return gpu;
  }
  gpu.name = properties.name;
  gpu.capability_major = properties.major;
  gpu.capability_minor = properties.minor;
  gpu.total_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  char bus_id[32] = {};
  if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, ordinal) == cudaSuccess) gpu.free_bytes = nvml.FreeBytes(bus_id);
  // Not known: what is taken shows when memory is allocated.
  if (gpu.free_bytes <= 0) gpu.free_bytes = gpu.total_bytes;
  for (int peer = 0; peer < count; ++peer) {
    int can = 0;
    if (peer != ordinal && cudaDeviceCanAccessPeer(&can, ordinal, peer) == cudaSuccess && can != 0) {
      gpu.peers.push_back(peer);
    }
  }
  int mode = cudaComputeModeDefault;
  (void)cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, ordinal);
  if (gpu.capability_major < kOldestMajor) {
    gpu.problem = absl::StrCat("compute capability ", gpu.capability_major, ".", gpu.capability_minor, "; ",
                               kOldestMajor, ".0 is the oldest that this build serves");
  } else if (mode == cudaComputeModeProhibited) {
    gpu.problem = "its compute mode is 'prohibited' (nvidia-smi -c DEFAULT changes it)";
  }
  return gpu;
}

}  // namespace

CudaReport ReportCuda() {
  CudaReport report;
  report.runtime = {Version(CUDART_VERSION, 1000, 10), ""};
  report.cublaslt = {ThreePartVersion(static_cast<int64_t>(cublasLtGetVersion()), 10000, 100), ""};
  report.cudnn = Loaded("libcudnn.so.9", "nvidia-cudnn-cu13", &CudnnVersion);
  report.nccl = Loaded("libnccl.so.2", "nvidia-nccl-cu13", &NcclVersion);
  int driver = 0;
  (void)cudaDriverGetVersion(&driver);
  if (driver == 0) {
    report.problem = "no NVIDIA driver (libcuda.so.1) is loaded on this machine";
    report.driver = {"", report.problem};
    return report;
  }
  const Nvml nvml;
  report.driver = {Version(driver, 1000, 10), ""};
  if (const std::string own = nvml.DriverVersion(); !own.empty())
    absl::StrAppend(&report.driver.version, " (", own, ")");
  if (driver < CUDART_VERSION / 1000 * 1000) {
    report.problem = absl::StrCat("the driver runs CUDA up to ", Version(driver, 1000, 10), ", Lockstep needs ",
                                  CUDART_VERSION / 1000, ".0: install a newer NVIDIA driver");
    report.driver.problem = report.problem;
    return report;
  }
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess || count == 0) {
    report.problem = counted == cudaSuccess || counted == cudaErrorNoDevice
                         ? "the driver shows no GPU (CUDA_VISIBLE_DEVICES hides those that it does not name)"
                         : absl::StrCat("GPUs cannot be counted: ", cudaGetErrorString(counted));
    return report;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) report.gpus.push_back(DescribeGpu(ordinal, count, nvml));
  (void)cudaGetLastError();  // what went wrong is in the report, and no later call's failure
  return report;
}

}  // namespace lockstep::device
