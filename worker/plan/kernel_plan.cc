#include "worker/plan/kernel_plan.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"
#include "common/status/status_macros.h"
#include "protos/kernel_plan.pb.h"
#include "worker/device/choice/device_choice.h"

namespace lockstep::worker {
namespace {

constexpr int kFormatVersion = 1;

absl::Status Differs(absl::string_view what, absl::string_view planned, absl::string_view here) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the job's kernel plan needs ", what, " '", planned, "', this worker has '", here,
      "'. Run it on a machine like those that made the plan, or start a new run, which makes a new plan."));
}

}  // namespace

KernelPlan DescribeKernels(const device::DeviceInfo& device, const PlanOptions& options,
                           absl::Span<const Plan* const> plans) {
  KernelPlan result{.device = device.kind,
                    .library = device.library,
                    .instruction_set = device.instruction_set,
                    .threads = device.threads,
                    .tf32 = device.tf32,
                    .fuse = options.fuse,
                    .free_layouts = options.free_layouts};
  for (const Plan* plan : plans) result.choices.insert(plan->choices().begin(), plan->choices().end());
  return result;
}

std::string SerializeKernelPlan(const KernelPlan& plan) {
  KernelPlanProto proto;
  proto.set_version(kFormatVersion);
  proto.set_device(plan.device);
  proto.set_library(plan.library);
  proto.set_instruction_set(plan.instruction_set);
  proto.set_threads(plan.threads);
  proto.set_tf32(plan.tf32);
  proto.set_fuse(plan.fuse);
  proto.set_free_layouts(plan.free_layouts);
  for (const auto& [node, implementation] : plan.choices) {
    KernelChoiceProto* choice = proto.add_choices();
    choice->set_node(node);
    choice->set_implementation(implementation);
  }
  for (const NodeDigest& digest : plan.probe) {
    NodeDigestProto* entry = proto.add_probe();
    entry->set_node(digest.node);
    entry->set_sha256(absl::HexStringToBytes(digest.sha256));
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    proto.SerializeToCodedStream(&coded);
  }
  return bytes;
}

absl::StatusOr<KernelPlan> ParseKernelPlan(absl::string_view bytes) {
  KernelPlanProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || proto.version() < 1) {
    return absl::DataLossError(absl::StrCat("these ", bytes.size(), " bytes are not a kernel plan"));
  }
  if (proto.version() > kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat("the kernel plan has version ", proto.version(),
                                                      ", this program reads up to ", kFormatVersion,
                                                      "; use the version of Lockstep that made it"));
  }
  KernelPlan plan{.device = proto.device(),
                  .library = proto.library(),
                  .instruction_set = proto.instruction_set(),
                  .threads = proto.threads(),
                  .tf32 = proto.tf32(),
                  .fuse = proto.fuse(),
                  .free_layouts = proto.free_layouts()};
  for (const KernelChoiceProto& choice : proto.choices()) plan.choices[choice.node()] = choice.implementation();
  for (const NodeDigestProto& digest : proto.probe()) {
    plan.probe.push_back({digest.node(), absl::BytesToHexString(digest.sha256())});
  }
  return plan;
}

std::string KernelPlanHash(absl::string_view bytes) { return Sha256Hex(bytes); }

absl::Status CheckKernelPlan(const KernelPlan& plan, const device::DeviceInfo& device) {
  LS_RETURN_IF_ERROR(device::CheckPlannedKind(plan.device, device.kind, ""));
  if (plan.library != device.library) return Differs("the kernel library", plan.library, device.library);
  if (plan.instruction_set != device.instruction_set) {
    return Differs("the instruction set", plan.instruction_set, device.instruction_set);
  }
  if (plan.threads != device.threads) {
    return absl::FailedPreconditionError(absl::StrCat("the job's kernel plan was made for ", plan.threads,
                                                      " threads, the job asks for ", device.threads,
                                                      "; set `resources.cpu_threads` back, or start a new run"));
  }
  if (plan.tf32 != device.tf32) {
    const auto text = [](bool tf32) { return tf32 ? "true" : "false"; };
    return absl::FailedPreconditionError(
        absl::StrCat("the job's kernel plan was made with `numerics.tf32: ", text(plan.tf32), "`, the job says ",
                     text(device.tf32), "; set it back, or start a new run"));
  }
  return absl::OkStatus();
}

device::DeviceOptions DeviceOptionsFor(int threads, const KernelPlan* plan) {
  device::DeviceOptions options{.threads = threads};
  if (plan != nullptr) options.instruction_set = plan->instruction_set;
  return options;
}

void ApplyKernelPlan(const KernelPlan& plan, PlanOptions* options) {
  options->fuse = plan.fuse;
  options->free_layouts = plan.free_layouts;
  options->choices = &plan.choices;
}

}  // namespace lockstep::worker
