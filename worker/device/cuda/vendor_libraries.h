// NVIDIA's kernel libraries as one source of kernels: cuBLASLt for products, cuDNN for convolutions and
// attention. No vendor type is seen here. What a device opens is decided when it is linked: vendor_libraries_on_gpu.cc
// opens what the build has, no_vendor_libraries.cc stands in for it in host execution.
//
// Threading: as device.h.
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

// Marks that a library was asked for a kernel and has none, unlike nodes that no library is asked for.
inline absl::Status MarkRefusal(absl::Status status) {
  status.SetPayload(kRefusalMark, absl::Cord("1"));
  return status;
}

inline bool IsRefusal(const absl::Status& status) { return status.GetPayload(kRefusalMark).has_value(); }

struct VendorOptions {
  // The kind of GPU and its multiprocessors, on which the bits of a library's sums depend: "sm_90x132".
  std::string gpu;
  // Factors of float32 may be rounded to tf32.
  bool tf32 = false;
  // The GPU that cuDNN chooses engines for, as it describes one in JSON; empty: the calling thread's.
  std::string described_gpu;
};

class VendorLibraries {
 public:
  virtual ~VendorLibraries() = default;
  // For DeviceInfo: "cuBLASLt 13.1.0, cuDNN 9.19.0"; empty where there are none.
  virtual const std::string& name() const = 0;
  // At least one and at most `most` kernels, in the order in which they are preferred without trying them; one where
  // the request names it. NotFound where libraries are not used for such ops; Unimplemented with the reason where none
  // serves the node, marked if one was asked and refuses it; InvalidArgument where the request names an implementation
  // that is not a library's or does not run here.
  virtual absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> MakeKernels(const KernelRequest& request,
                                                                           int most) const = 0;
};

// On the calling thread's GPU. FailedPrecondition with the reason of the library that does not start. Kernels may not
// outlive what made them.
absl::StatusOr<std::unique_ptr<VendorLibraries>> OpenVendorLibraries(const VendorOptions& options);

// The same, always of the libraries that the build has.
absl::StatusOr<std::unique_ptr<VendorLibraries>> OpenNvidiaLibraries(const VendorOptions& options);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_LIBRARIES_H_
