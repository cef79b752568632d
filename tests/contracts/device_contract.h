// The contract suite for devices, as a library: a test binary links it and defines which devices it tests.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_TESTS_CONTRACTS_DEVICE_CONTRACT_H_
#define LOCKSTEP_TESTS_CONTRACTS_DEVICE_CONTRACT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/device/device.h"

namespace lockstep {

struct DeviceCandidate {
  std::string name;
  std::function<std::unique_ptr<device::Device>()> make;
  // Whether the device does nothing until somebody waits.
  bool deferred = false;
};

// Defined by the test binary.
std::vector<DeviceCandidate> DeviceCandidates();

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONTRACTS_DEVICE_CONTRACT_H_
