#include "worker/device/implementation_list.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/ops/ir.h"

namespace lockstep::device {
namespace {

using Catch::Matchers::Contains;

class NamedKernel final : public Kernel {
 public:
  explicit NamedKernel(std::string name) : name_(std::move(name)) {}
  const std::string& implementation() const override { return name_; }
  size_t workspace_bytes() const override { return 0; }
  Layout input_layout(int) const override { return Layout(); }
  Layout output_layout(int) const override { return Layout(); }
  bool CanShare(int, int) const override { return false; }
  absl::Status Bind(const KernelArguments&) override { return absl::OkStatus(); }
  absl::Status Launch(Stream&) override { return absl::OkStatus(); }

 private:
  const std::string name_;
};

Implementation Serves(const std::string& name, const std::string& prefix) {
  return {name, prefix, [name](const KernelRequest&) { return std::make_unique<NamedKernel>(name); }};
}

Implementation Refuses(const std::string& name, const std::string& prefix, const absl::Status& why) {
  return {name, prefix, [why](const KernelRequest&) { return why; }};
}

struct Asked {
  Node node{"relu", OpType::kRelu, {"x"}, {"y"}, NoAttributes{}};
  std::vector<Refusal> refusals;

  absl::StatusOr<std::unique_ptr<Kernel>> Of(const std::vector<Implementation>& list, const std::string& kernel = "") {
    KernelRequest request;
    request.node = &node;
    request.outputs = {{.dtype = DType::kF64, .shape = {2}}};
    request.implementation = kernel;
    request.refusals = &refusals;
    return MakeFirst(list, request);
  }
};

TEST_CASE("implementation list: the first one that serves makes the kernel, and those before it say why not",
          "[device]") {
  Asked asked;

  const auto kernel = asked.Of({Refuses("library", "lib:", NotItsOp()),
                                Refuses("own", "own:", absl::UnimplementedError("too many dimensions")),
                                Serves("definition", ""), Serves("never", "never:")});

  REQUIRE(kernel.ok());
  CHECK((*kernel)->implementation() == "definition");
  REQUIRE(asked.refusals.size() == 1);
  CHECK(asked.refusals[0].implementation == "own");
  CHECK(asked.refusals[0].reason == "too many dimensions");
}

TEST_CASE("implementation list: a name of a kernel plan decides alone", "[device]") {
  const std::vector<Implementation> list = {Serves("library", "lib:"),
                                            Refuses("own", "own:", absl::UnimplementedError("too many dimensions")),
                                            Refuses("tables", "table:", NotItsOp()), Serves("definition", "")};
  Asked asked;

  CHECK((*asked.Of(list, "definition"))->implementation() == "definition");
  CHECK(asked.Of(list, "own:relu").status() == absl::UnimplementedError("too many dimensions"));
  const absl::Status no_such = asked.Of(list, "table:relu").status();
  CHECK(absl::IsInvalidArgument(no_such));
  CHECK_THAT(std::string(no_such.message()), Contains("'table:relu'") && Contains("Relu"));
  CHECK(asked.refusals.empty());
}

TEST_CASE("implementation list: where nothing serves a node, every reason is said", "[device]") {
  Asked asked;

  const absl::Status refused = asked
                                   .Of({Refuses("library", "lib:", absl::UnimplementedError("no such layout")),
                                        Refuses("own", "", absl::UnimplementedError("too many dimensions"))})
                                   .status();
  const absl::Status unknown = asked.Of({Refuses("library", "lib:", NotItsOp())}).status();

  CHECK(absl::IsUnimplemented(refused));
  CHECK_THAT(std::string(refused.message()),
             Contains("Relu on F64") && Contains("library: no such layout") && Contains("own: too many dimensions"));
  CHECK(absl::IsUnimplemented(unknown));
  CHECK(unknown.message() == "this device has no kernel for Relu on F64");
}

TEST_CASE("implementation list: an error that is no refusal ends the search", "[device]") {
  Asked asked;

  CHECK(asked.Of({Refuses("library", "lib:", absl::InternalError("broken")), Serves("definition", "")}).status() ==
        absl::InternalError("broken"));
}

}  // namespace
}  // namespace lockstep::device
