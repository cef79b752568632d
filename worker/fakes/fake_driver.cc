// CUDA's driver for tests on machines without one, as the library that NVIDIA's libraries load by name: kernels that
// cuDNN compiles while it makes a plan are taken and never run. All else fails.
//
// Threading: thread-safe.

extern "C" {

// CUresult's CUDA_SUCCESS and CUDA_ERROR_UNKNOWN. Parameters are left out: nobody reads them.
enum : int { kDone = 0, kUnknown = 999 };

namespace {

int Give(void** handle) {
  static char something = 0;
  *handle = &something;
  return kDone;
}

}  // namespace

int cuLibraryLoadData(void** library) { return Give(library); }
int cuLibraryGetKernel(void** kernel) { return Give(kernel); }
int cuKernelGetFunction(void** function) { return Give(function); }
int cuLibraryUnload() { return kDone; }
int cuKernelSetAttribute() { return kDone; }
int cuFuncSetAttribute() { return kDone; }

#define LS_FAILS(name) \
  int name() { return kUnknown; }

LS_FAILS(cuCtxGetCurrent)
LS_FAILS(cuCtxGetLimit)
LS_FAILS(cuCtxPopCurrent)
LS_FAILS(cuCtxPushCurrent)
LS_FAILS(cuDeviceGet)
LS_FAILS(cuDeviceGetCount)
LS_FAILS(cuDriverGetVersion)
LS_FAILS(cuGetErrorName)
LS_FAILS(cuGetErrorString)
LS_FAILS(cuKernelGetAttribute)
LS_FAILS(cuLaunchCooperativeKernel)
LS_FAILS(cuLaunchKernel)
LS_FAILS(cuLaunchKernelEx)
LS_FAILS(cuLibraryLoadFromFile)
LS_FAILS(cuLinkAddData)
LS_FAILS(cuLinkComplete)
LS_FAILS(cuLinkCreate)
LS_FAILS(cuLinkDestroy)
LS_FAILS(cuOccupancyMaxPotentialClusterSize)
LS_FAILS(cuStreamGetCtx)

}  // extern "C"
