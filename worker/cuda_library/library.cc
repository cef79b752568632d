#include "worker/cuda_library/library.h"

#include "common/version/version.h"
#include "worker/cuda_library/join_gpus.h"
#include "worker/cuda_library/report.h"
#include "worker/device/cuda/make_device.h"

const lockstep::device::CudaLibrary* LockstepCudaLibrary() {
  static const lockstep::device::CudaLibrary library = {
      .abi = lockstep::device::kCudaLibraryAbi,
      .program_version = lockstep::kVersion,
      .report = &lockstep::device::ReportCuda,
      .make_device = &lockstep::device::MakeCudaDevice,
      .join = &lockstep::worker::JoinGpus,
  };
  return &library;
}
