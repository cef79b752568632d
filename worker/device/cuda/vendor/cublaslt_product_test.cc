// Products by cuBLASLt with fake_cublaslt.h in the place of what needs a GPU: descriptions are made and read by the
// library itself.
#include "worker/device/cuda/vendor/cublaslt_product.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/cuda/vendor/product_choice.h"
#include "worker/fakes/fake_cublaslt.h"

namespace lockstep::device::cuda {
namespace {

using Catch::Contains;

struct Asked {
  Node node;
  std::vector<Shape> inputs;
  Shape output;
};

Asked SomeGemm() { return {{.op = OpType::kGemm, .attributes = GemmAttributes{}}, {{3, 4}, {4, 5}, {5}}, {3, 5}}; }

// One product with an outer loop of two launches.
Asked SomeBatch() {
  return {
      {.op = OpType::kBatchMatMul, .attributes = BatchMatMulAttributes{}}, {{2, 1, 4, 4}, {2, 3, 4, 2}}, {2, 3, 4, 2}};
}

absl::StatusOr<std::unique_ptr<Kernel>> Make(const CublasLtContext& context, const Asked& asked,
                                             const std::string& implementation = "") {
  KernelRequest request{.node = &asked.node, .implementation = implementation};
  for (const Shape& shape : asked.inputs) request.inputs.push_back({.shape = shape});
  request.outputs.push_back({.shape = asked.output});
  auto kernels = MakeCublasLtProduct(context, request);
  if (!kernels.ok()) return kernels.status();
  return std::move(kernels->front());
}

CublasLtContext Open(bool tf32 = false) {
  FakeCublasLt::Get() = {};
  auto context = OpenCublasLt("sm_90x132", tf32);
  REQUIRE(context.ok());
  return *std::move(context);
}

std::string RefusalOf(const CublasLtContext& context, const Asked& asked, const std::string& name) {
  const absl::Status status = Make(context, asked, name).status();
  CHECK(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

template <typename T>
T Attribute(const CublasLtLayout& layout, cublasLtMatrixLayoutAttribute_t name) {
  T value = {};
  size_t written = 0;
  REQUIRE(cublasLtMatrixLayoutGetAttribute(layout.get(), name, &value, sizeof(value), &written) ==
          CUBLAS_STATUS_SUCCESS);
  return value;
}

}  // namespace

TEST_CASE("cublaslt product: the library describes the transposed product with swapped factors", "[cuda]") {
  ProductProblem problem;
  problem.matrix = {.m = 3, .n = 5, .k = 4, .trans_a = true};
  problem.addend = Addend::kRow;
  problem.count = 7;
  problem.stride = {.a = 0, .b = 20, .y = 15};

  const auto described = DescribeForCublasLt(problem);

  REQUIRE(described.ok());
  const auto rows = [](const CublasLtLayout& m) { return Attribute<uint64_t>(m, CUBLASLT_MATRIX_LAYOUT_ROWS); };
  const auto columns = [](const CublasLtLayout& m) { return Attribute<uint64_t>(m, CUBLASLT_MATRIX_LAYOUT_COLS); };
  CHECK((rows(described->b) == 5 && columns(described->b) == 4));
  CHECK((rows(described->a) == 3 && columns(described->a) == 4));
  CHECK((rows(described->y) == 5 && columns(described->y) == 3));
  CHECK(Attribute<int32_t>(described->a, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) == 7);
  CHECK(Attribute<int64_t>(described->a, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) == 0);
  CHECK(Attribute<int64_t>(described->b, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) == 20);
  CHECK(Attribute<int64_t>(described->b, CUBLASLT_MATRIX_LAYOUT_LD) == 5);
}

TEST_CASE("cublaslt product: the name of the chosen algorithm makes the same kernel again", "[cuda]") {
  const CublasLtContext context = Open();
  FakeCublasLt::Get().offers = {
      {.scheme = CUBLASLT_REDUCTION_SCHEME_INPLACE, .splits = 4},
      {.workspace_bytes = 4096, .scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, .splits = 3},
      {}};

  const auto kernel = Make(context, SomeGemm());

  REQUIRE(kernel.ok());
  CHECK((*kernel)->workspace_bytes() == 4096);
  const auto choice = ParseProductChoice((*kernel)->implementation());
  REQUIRE(choice.ok());
  CHECK((choice->math == "f32" && choice->version == cublasLtGetVersion() && choice->gpu == "sm_90x132"));
  FakeCublasLt::Get().offers.clear();
  const auto again = Make(context, SomeGemm(), (*kernel)->implementation());
  REQUIRE(again.ok());
  CHECK((*again)->implementation() == (*kernel)->implementation());
  CHECK((*again)->workspace_bytes() == 4096);
}

TEST_CASE("cublaslt product: the heuristics are told the scratch, the schemes and the alignment", "[cuda]") {
  const CublasLtContext context = Open();

  REQUIRE(Make(context, SomeBatch()).ok());

  CHECK(FakeCublasLt::Get().asked_workspace == context.workspace_limit);
  CHECK(FakeCublasLt::Get().asked_schemes == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  CHECK(FakeCublasLt::Get().asked_alignment_a == 32);  // cuBLASLt's A is the node's B
  CHECK(FakeCublasLt::Get().asked_alignment_b == 64);
}

TEST_CASE("cublaslt product: a name from elsewhere is refused with the reason", "[cuda]") {
  const CublasLtContext context = Open();
  const std::string name = (*Make(context, SomeGemm()))->implementation();
  ProductChoice choice = *ParseProductChoice(name);
  const auto with = [&choice](auto change) {
    ProductChoice other = choice;
    change(other);
    return PrintProductChoice(other);
  };

  const std::string newer = with([](ProductChoice& c) { ++c.version; });
  CHECK_THAT(RefusalOf(context, SomeGemm(), newer), Contains("which is for cuBLASLt"));
  CHECK_THAT(RefusalOf(context, SomeGemm(), with([](ProductChoice& c) { c.gpu = "sm_90x114"; })),
             Contains("sm_90x114"));
  CHECK_THAT(RefusalOf(context, SomeGemm(), with([](ProductChoice& c) { c.math = "tf32"; })), Contains("for tf32"));
  CHECK_THAT(RefusalOf(context, SomeGemm(), with([](ProductChoice& c) { c.workspace_bytes = uint64_t{1} << 40; })),
             Contains("more scratch"));
  CHECK_THAT(RefusalOf(context, SomeGemm(), with([](ProductChoice& c) { c.algorithm[7] = 8; })),
             Contains("8 bytes of scratch here"));
  CHECK_THAT(RefusalOf(context, SomeGemm(), "cublaslt:"), Contains("not one of cuBLASLt's"));
  FakeCublasLt::Get().check = CUBLAS_STATUS_NOT_SUPPORTED;
  CHECK_THAT(RefusalOf(context, SomeGemm(), name), Contains("CUBLAS_STATUS_NOT_SUPPORTED"));
}

TEST_CASE("cublaslt product: a name whose sums have no fixed order is refused", "[cuda]") {
  const CublasLtContext context = Open();
  ProductChoice choice = *ParseProductChoice((*Make(context, SomeGemm()))->implementation());
  cublasLtMatmulAlgo_t algorithm = {};
  const auto scheme = static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_INPLACE);
  REQUIRE(cublasLtMatmulAlgoConfigSetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                               sizeof(scheme)) == CUBLAS_STATUS_SUCCESS);
  std::copy(std::begin(algorithm.data), std::end(algorithm.data), choice.algorithm.begin());

  CHECK_THAT(RefusalOf(context, SomeGemm(), PrintProductChoice(choice)), Contains("no fixed order"));
}

TEST_CASE("cublaslt product: what the library cannot serve has a reason", "[cuda]") {
  const CublasLtContext context = Open();
  Asked column = SomeGemm();
  column.inputs[2] = {3, 1};
  CHECK(absl::IsUnimplemented(Make(context, column).status()));

  FakeCublasLt::Get().offers = {{.state = CUBLAS_STATUS_NOT_SUPPORTED}};
  CHECK(absl::IsUnimplemented(Make(context, SomeGemm()).status()));
  FakeCublasLt::Get().heuristics = CUBLAS_STATUS_NOT_SUPPORTED;
  CHECK(absl::IsUnimplemented(Make(context, SomeGemm()).status()));
  FakeCublasLt::Get().create = CUBLAS_STATUS_NOT_INITIALIZED;
  CHECK(absl::IsFailedPrecondition(OpenCublasLt("sm_90x132", false).status()));
}

TEST_CASE("cublaslt product: addresses that are aligned less than was promised are refused when bound", "[cuda]") {
  const CublasLtContext context = Open();
  const auto kernel = Make(context, SomeGemm());
  REQUIRE(kernel.ok());
  const auto at = [](uintptr_t address) { return reinterpret_cast<std::byte*>(address); };

  CHECK((*kernel)->Bind({.inputs = {at(64), at(128), at(192)}, .outputs = {at(256)}}).ok());
  CHECK(absl::IsInternal((*kernel)->Bind({.inputs = {at(64), at(132), at(192)}, .outputs = {at(256)}})));
  CHECK(absl::IsInternal((*kernel)->Bind({.inputs = {at(64), at(128), at(196)}, .outputs = {at(256)}})));
  CHECK(absl::IsInternal((*kernel)->Bind({.inputs = {at(64), at(128), at(192)}, .outputs = {at(260)}})));
}

TEST_CASE("cublaslt product: a broadcast batch is launched once per outer matrix", "[cuda]") {
  const CublasLtContext context = Open();
  const auto kernel = Make(context, SomeBatch());
  REQUIRE(kernel.ok());
  REQUIRE(SelectDevice(0).ok());
  const auto buffer = NewDeviceBuffer(4096);
  const auto stream = NewCudaStream();
  REQUIRE((buffer.ok() && stream.ok()));
  std::byte* const base = (*buffer)->address();

  REQUIRE((*kernel)->Bind({.inputs = {base, base + 1024}, .outputs = {base + 2048}}).ok());
  REQUIRE((*kernel)->Launch(**stream).ok());

  CHECK((*stream)->Synchronize().ok());
  CHECK(FakeCublasLt::Get().launches == 2);
}

}  // namespace lockstep::device::cuda
