// Gemm, MatMul and BatchMatMul by oneDNN's matmul primitive.
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

absl::StatusOr<std::unique_ptr<Kernel>> Make(const DnnlContext& context, const KernelRequest& request,
                                             const BatchedMatrixShape& shape, bool with_bias) {
  const MatrixShape& s = shape.matrix;
  const size_t rank = shape.batch.size();
  if (rank > 3) return absl::UnimplementedError("more than three batch dimensions");
  const dnnl::memory::desc a = Matrices(Filled(shape.a_batch, rank), s.m, s.k, s.trans_a);
  const dnnl::memory::desc b = Matrices(Filled(shape.b_batch, rank), s.k, s.n, s.trans_b);
  const dnnl::memory::desc y = Matrices(shape.batch, s.m, s.n, false);
  const dnnl::memory::desc bias = RowMajor({1, s.n});
  const dnnl::matmul::desc op = with_bias ? dnnl::matmul::desc(a, b, bias, y) : dnnl::matmul::desc(a, b, y);
  dnnl::matmul::primitive_desc desc(op, Attributes(request.epilogue), context.engine);
  if (absl::Status status = SelectImplementation(desc, request.implementation); !status.ok()) return status;
  std::vector<DnnlSlot> slots = {{DNNL_ARG_SRC, true, 0, a, Layout()},
                                 {DNNL_ARG_WEIGHTS, true, 1, b, Layout()},
                                 {DNNL_ARG_DST, false, 0, y, Layout()}};
  if (with_bias) slots.push_back({DNNL_ARG_BIAS, true, 2, bias, Layout()});
  return MakeDnnlKernel(context, dnnl::matmul(desc), ImplementationName(desc), desc.scratchpad_desc().get_size(),
                        desc.scratchpad_desc(), std::move(slots));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnlProduct(const DnnlContext& context, const KernelRequest& request) {
  const Shape& a = request.inputs[0].shape;
  const Shape& b = request.inputs[1].shape;
  BatchedMatrixShape shape;
  bool with_bias = false;
  switch (request.node->op) {
    case OpType::kGemm: {
      const auto& attributes = std::get<GemmAttributes>(request.node->attributes);
      shape.matrix = GemmShape(attributes, a, b);
      with_bias = request.inputs.size() > 2 && request.inputs[2].present;
      if (attributes.alpha != 1.0) return absl::UnimplementedError("alpha other than 1");
      if (with_bias && (attributes.beta != 1.0 || !IsRow(request.inputs[2].shape, shape.matrix.n))) {
        return absl::UnimplementedError("C other than one row with beta 1");
      }
      break;
    }
    case OpType::kMatMul:
      shape = MatMulShape(a, b);
      break;
    default:
      shape = BatchMatMulShape(std::get<BatchMatMulAttributes>(request.node->attributes), a, b);
      break;
  }
  return CatchDnnl([&] { return Make(context, request, shape, with_bias); });
}

}  // namespace lockstep::device::cpu
