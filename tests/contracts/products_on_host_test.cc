// Products and convolutions of the CUDA device in host execution whose shapes the random cases do not reach: sums in
// parts, large tiles, batches that broadcast in several runs.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/contracts/device_case_builder.h"
#include "tests/contracts/device_comparison.h"
#include "worker/device/cuda/make_device.h"
#include "worker/device/devices.h"

namespace lockstep {
namespace {

using device::DeviceKind;

// A graph of one op.
DeviceCase CaseOf(OpType op, const std::vector<Shape>& inputs, const OpAttributes& attributes, int64_t terms,
                  int outputs = 1) {
  DeviceCase c;
  c.terms = terms;
  c.sums_of_products = true;
  CaseBuilder b(&c);
  std::vector<std::string> names;
  for (const Shape& shape : inputs) names.push_back(b.In(shape));
  b.Op(op, names, attributes, outputs);
  return c;
}

void CheckAgainstReference(const DeviceCase& c) {
  const auto reference = Must(device::MakeDevice(DeviceKind::kReference, {}));
  const auto cuda = Must(device::MakeCudaDevice({}));
  CompareCase(c, RunCase(*reference, c.graph, 5, false), RunCase(*cuda, c.graph, 5, false),
              RunCase(*reference, c.graph, 5, true));
}

TEST_CASE("products on host: long sums in parts, and large tiles, are the reference's products", "[cuda]") {
  struct Sizes {
    int64_t m, n, k;
  };
  const auto [m, n, k] =
      GENERATE(values<Sizes>({{3, 5, 2000}, {70, 130, 1031}, {1, 1, 5000}, {2050, 2052, 5}, {5, 1, 0}}));
  const bool trans_a = GENERATE(false, true);
  const GemmAttributes attributes{.alpha = 0.5, .beta = 2.0, .trans_a = trans_a, .trans_b = !trans_a};
  INFO(m << " x " << n << " x " << k << (trans_a ? " a transposed" : " b transposed"));

  const Shape a = trans_a ? Shape{k, m} : Shape{m, k};
  const Shape b = trans_a ? Shape{k, n} : Shape{n, k};
  CheckAgainstReference(CaseOf(OpType::kGemm, {a, b, {m, 1}}, attributes, k + 2));
}

TEST_CASE("products on host: a batch that broadcasts in several runs", "[cuda]") {
  CheckAgainstReference(CaseOf(OpType::kMatMul, {{2, 1, 3, 1, 5, 4}, {1, 4, 3, 2, 4, 3}}, NoAttributes(), 4));
  CheckAgainstReference(CaseOf(OpType::kMatMul, {{2, 3, 5, 4}, {4, 7}}, NoAttributes(), 4));
  CheckAgainstReference(
      CaseOf(OpType::kBatchMatMul, {{3, 4, 5}, {2, 3, 4, 7}}, BatchMatMulAttributes{.trans_a = true}, 4));
}

}  // namespace
}  // namespace lockstep
