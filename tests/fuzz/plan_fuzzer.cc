// Kernel plans. What is accepted can be written, and is the same then.
#include <google/protobuf/stubs/logging.h>

#include "protos/kernel_plan.pb.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/message_mutator.h"
#include "worker/plan/kernel_plan.h"

const lockstep::fuzz::StructuredMutator& lockstep::fuzz::TargetMutator() {
  static const BinaryMutator<KernelPlanProto> mutator;
  return mutator;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::worker;
  static google::protobuf::LogSilencer silence;
  const auto plan = ParseKernelPlan({reinterpret_cast<const char*>(data), size});
  if (!plan.ok()) {
    LS_CHECK(!plan.status().message().empty(), "a refusal says why");
    return 0;
  }
  const std::string bytes = SerializeKernelPlan(*plan);
  const auto again = ParseKernelPlan(bytes);
  LS_CHECK(again.ok() && SerializeKernelPlan(*again) == bytes, "a plan that is read and written is the same");
  return 0;
}
