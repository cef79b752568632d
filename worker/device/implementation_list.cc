#include "worker/device/implementation_list.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/ops/op_type.h"

namespace lockstep::device {
namespace {

// REQUIRES: one of the list has an empty prefix.
const Implementation& ImplementationOf(absl::Span<const Implementation> list, absl::string_view kernel) {
  const Implementation* rest = nullptr;
  for (const Implementation& implementation : list) {
    if (implementation.prefix.empty()) {
      rest = &implementation;
    } else if (absl::StartsWith(kernel, implementation.prefix)) {
      return implementation;
    }
  }
  return *rest;
}

absl::Status NothingServes(const KernelRequest& request, const std::vector<Refusal>& refusals) {
  const std::string node = absl::StrCat(
      OpName(request.node->op), request.outputs.empty() ? "" : " on ",
      request.outputs.empty() ? absl::string_view() : absl::string_view(DTypeName(request.outputs[0].dtype)));
  if (refusals.empty()) return absl::UnimplementedError(absl::StrCat("this device has no kernel for ", node));
  return absl::UnimplementedError(absl::StrCat("this device has no kernel for ", node, " of these shapes (",
                                               absl::StrJoin(refusals, "; ",
                                                             [](std::string* out, const Refusal& refusal) {
                                                               absl::StrAppend(out, refusal.implementation, ": ",
                                                                               refusal.reason);
                                                             }),
                                               "). Floating point ops are served for F32: cast what goes in"));
}

}  // namespace

absl::Status NotItsOp() { return absl::NotFoundError("not an op of this implementation"); }

absl::StatusOr<std::unique_ptr<Kernel>> MakeFirst(absl::Span<const Implementation> list, const KernelRequest& request) {
  if (!request.implementation.empty()) {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = ImplementationOf(list, request.implementation).make(request);
    if (!absl::IsNotFound(kernel.status())) return kernel;
    return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '", request.implementation,
                                                   "', which this version does not have for ",
                                                   OpName(request.node->op)));
  }
  std::vector<Refusal> refusals;
  for (const Implementation& implementation : list) {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = implementation.make(request);
    if (kernel.ok()) {
      if (request.refusals != nullptr) {
        request.refusals->insert(request.refusals->begin(), refusals.begin(), refusals.end());
      }
      return kernel;
    }
    if (absl::IsNotFound(kernel.status())) continue;
    if (!absl::IsUnimplemented(kernel.status())) return kernel;
    refusals.push_back({implementation.name, std::string(kernel.status().message())});
  }
  return NothingServes(request, refusals);
}

}  // namespace lockstep::device
