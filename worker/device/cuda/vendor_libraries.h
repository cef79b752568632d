// NVIDIA's kernel libraries as one source of kernels: cuBLASLt for products, cuDNN for convolutions and attention. No
// vendor type appears here. The link decides what a device opens: vendor_libraries_on_gpu.cc opens the libraries of the
// build, no_vendor_libraries.cc replaces it in host execution.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_LIBRARIES_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_LIBRARIES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "worker/device/kernel.h"

namespace lockstep::device::cuda {

inline constexpr char kRefusalMark[] = "lockstep.library_refusal";

// Marks the error of a library that refused a node, to distinguish it from nodes for which no library is asked.
inline absl::Status MarkRefusal(absl::Status status) {
  status.SetPayload(kRefusalMark, absl::Cord("1"));
  return status;
}

inline bool IsRefusal(const absl::Status& status) { return status.GetPayload(kRefusalMark).has_value(); }

struct VendorOptions {
  // The kind of GPU and its number of multiprocessors, on which the bits of a library's sums depend: "sm_90x132".
  std::string gpu;
  // Float32 factors may be rounded to tf32.
  bool tf32 = false;
  // The GPU for which cuDNN chooses engines, in its JSON description; empty: the calling thread's.
  std::string described_gpu;
};

class VendorLibraries {
 public:
  virtual ~VendorLibraries() = default;
  // For DeviceInfo: "cuBLASLt 13.1.0, cuDNN 9.19.0"; empty without libraries.
  virtual const std::string& name() const = 0;
  // Returns between one and `most` kernels in order of preference without trials; exactly one if the request names it.
  // NotFound when libraries are not used for such ops; Unimplemented with the reason when no library serves the node
  // (marked if a library refuses it); InvalidArgument when the request names an implementation that is not a library's
  // or does not run here.
  virtual absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> MakeKernels(const KernelRequest& request,
                                                                           int most) const = 0;
};

// Opens the libraries on the calling thread's GPU. FailedPrecondition with the reason of a library that does not start.
// Kernels must not outlive the libraries.
absl::StatusOr<std::unique_ptr<VendorLibraries>> OpenVendorLibraries(const VendorOptions& options);

// The same, but always the real libraries of the build, in host execution too.
absl::StatusOr<std::unique_ptr<VendorLibraries>> OpenNvidiaLibraries(const VendorOptions& options);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_LIBRARIES_H_
