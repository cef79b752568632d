#include "worker/device/cuda/library.h"

#include "common/version/version.h"
#include "worker/collectives/nccl/join_gpus.h"
#include "worker/device/cuda/make_device.h"
#include "worker/device/cuda/report.h"

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
