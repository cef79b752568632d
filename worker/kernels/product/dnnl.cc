// Gemm, MatMul and BatchMatMul by oneDNN's matmul primitive.
#include <cstring>
#include <memory>
#include <utility>

#include "common/status/status_macros.h"
#include "worker/kernels/cpu/dnnl_kernel.h"
#include "worker/kernels/product/product.h"

namespace lockstep::device::cpu {
namespace {

using Dims = dnnl::memory::dims;

// A stack of matrices, each maybe stored transposed, as a description with strides.
dnnl::memory::desc Matrices(const Shape& batch, int64_t rows, int64_t columns, bool transposed) {
  Dims dims(batch.begin(), batch.end());
  dims.push_back(rows);
  dims.push_back(columns);
  Dims strides(dims.size());
  strides[dims.size() - 2] = transposed ? 1 : columns;
  strides[dims.size() - 1] = transposed ? rows : 1;
  dnnl::memory::dim stride = rows * columns;
  for (size_t i = batch.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= batch[i];
  }
  return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, strides);
}

// The operand's leading dimensions, filled up with ones to the rank of the result's.
Shape Filled(const Shape& batch, size_t rank) {
  Shape filled(rank - batch.size(), 1);
  filled.insert(filled.end(), batch.begin(), batch.end());
  return filled;
}

// True when C is one row that is added to every row of the product.
bool IsRow(const Shape& c, int64_t n) {
  return (c.size() == 1 && c[0] == n) || (c.size() == 2 && c[0] == 1 && c[1] == n);
}

// What a Gemm adds to its product: nothing, one row, or a matrix of Y's shape times `beta`.
struct Addend {
  enum class Kind : uint8_t { kNone, kRow, kMatrix };
  Kind kind = Kind::kNone;
  float beta = 1;
};

// The primitive adds to what lies in Y: C, which is copied there before.
class AddingProduct final : public Kernel {
 public:
  AddingProduct(std::unique_ptr<Kernel> product, size_t bytes) : product_(std::move(product)), bytes_(bytes) {}

  const std::string& implementation() const override { return product_->implementation(); }
  size_t workspace_bytes() const override { return product_->workspace_bytes(); }
  Layout input_layout(int input) const override { return product_->input_layout(input); }
  Layout output_layout(int output) const override { return product_->output_layout(output); }
  bool CanShare(int, int) const override { return false; }

  absl::Status Bind(const KernelArguments& arguments) override {
    c_ = arguments.inputs[2];
    y_ = arguments.outputs[0];
    return product_->Bind(arguments);
  }
  absl::Status Launch(Stream& stream) override {
    std::memcpy(y_, c_, bytes_);
    return product_->Launch(stream);
  }

 private:
  std::unique_ptr<Kernel> product_;
  size_t bytes_;
  const std::byte* c_ = nullptr;
  std::byte* y_ = nullptr;
};

dnnl::primitive_attr AttributesWith(const Addend& addend, Epilogue epilogue) {
  dnnl::primitive_attr attributes = Attributes(epilogue);
  if (addend.kind != Addend::Kind::kMatrix) return attributes;
  dnnl::post_ops after;
  after.append_sum(addend.beta);
  if (epilogue == Epilogue::kRelu) AppendRelu(after);
  attributes.set_post_ops(after);
  return attributes;
}

absl::StatusOr<std::unique_ptr<Kernel>> Make(const DnnlContext& context, const KernelRequest& request,
                                             const BatchedMatrixShape& shape, const Addend& addend) {
  const MatrixShape& s = shape.matrix;
  const size_t rank = shape.batch.size();
  if (rank > 3) return absl::UnimplementedError("more than three batch dimensions");
  const dnnl::memory::desc a = Matrices(Filled(shape.a_batch, rank), s.m, s.k, s.trans_a);
  const dnnl::memory::desc b = Matrices(Filled(shape.b_batch, rank), s.k, s.n, s.trans_b);
  const dnnl::memory::desc y = Matrices(shape.batch, s.m, s.n, false);
  const dnnl::memory::desc bias = RowMajor({1, s.n});
  const bool with_bias = addend.kind == Addend::Kind::kRow;
  const dnnl::matmul::desc op = with_bias ? dnnl::matmul::desc(a, b, bias, y) : dnnl::matmul::desc(a, b, y);
  dnnl::matmul::primitive_desc desc(op, AttributesWith(addend, request.epilogue), context.engine);
  if (absl::Status status = SelectImplementation(desc, request.implementation); !status.ok()) return status;
  std::vector<DnnlSlot> slots = {{DNNL_ARG_SRC, true, 0, a, Layout()},
                                 {DNNL_ARG_WEIGHTS, true, 1, b, Layout()},
                                 {DNNL_ARG_DST, false, 0, y, Layout()}};
  if (with_bias) slots.push_back({DNNL_ARG_BIAS, true, 2, bias, Layout()});
  std::unique_ptr<Kernel> product =
      MakeDnnlKernel(context, dnnl::matmul(desc), ImplementationName(desc), desc.scratchpad_desc().get_size(),
                     desc.scratchpad_desc(), std::move(slots));
  if (addend.kind != Addend::Kind::kMatrix) return product;
  return std::make_unique<AddingProduct>(std::move(product), y.get_size());
}

absl::StatusOr<Addend> AddendOf(const KernelRequest& request, const MatrixShape& shape) {
  const auto& attributes = std::get<GemmAttributes>(request.node->attributes);
  if (attributes.alpha != 1.0) return absl::UnimplementedError("alpha other than 1");
  if (request.inputs.size() < 3 || !request.inputs[2].present) return Addend{};
  const Shape& c = request.inputs[2].shape;
  if (c == Shape{shape.m, shape.n} && shape.m > 1) {
    return Addend{.kind = Addend::Kind::kMatrix, .beta = static_cast<float>(attributes.beta)};
  }
  if (attributes.beta != 1.0 || !IsRow(c, shape.n)) {
    return absl::UnimplementedError("C other than a matrix of Y's shape, or one row with beta 1");
  }
  return Addend{.kind = Addend::Kind::kRow};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnlProduct(const DnnlContext& context, const KernelRequest& request) {
  const Shape& a = request.inputs[0].shape;
  const Shape& b = request.inputs[1].shape;
  BatchedMatrixShape shape;
  Addend addend;
  switch (request.node->op) {
    case OpType::kGemm: {
      const auto& attributes = std::get<GemmAttributes>(request.node->attributes);
      shape.matrix = GemmShape(attributes, a, b);
      LS_ASSIGN_OR_RETURN(addend, AddendOf(request, shape.matrix));
      break;
    }
    case OpType::kMatMul:
      shape = MatMulShape(a, b);
      break;
    default:
      shape = BatchMatMulShape(std::get<BatchMatMulAttributes>(request.node->attributes), a, b);
      break;
  }
  return CatchDnnl([&] { return Make(context, request, shape, addend); });
}

}  // namespace lockstep::device::cpu
