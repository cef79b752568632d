#include "worker/device/cuda/vendor/cublaslt_product.h"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/cuda/vendor/product_choice.h"
#include "worker/device/cuda/vendor_libraries.h"

namespace lockstep::device::cuda {
namespace {

// How many algorithms the heuristics are asked for.
constexpr int kAsked = 16;

absl::Status Check(cublasStatus_t status, absl::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cuBLASLt: ", what, ": ", cublasLtGetStatusName(status)));
}

cudaDataType_t TypeOf(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

cublasComputeType_t ComputeTypeOf(ProductMath math) {
  return math == ProductMath::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

template <typename T>
absl::Status Set(const CublasLtOperation& operation, cublasLtMatmulDescAttributes_t name, const T& value) {
  return Check(cublasLtMatmulDescSetAttribute(operation.get(), name, &value, sizeof(value)),
               "an operation's attribute");
}

template <typename T>
absl::Status Set(const CublasLtLayout& layout, cublasLtMatrixLayoutAttribute_t name, const T& value) {
  return Check(cublasLtMatrixLayoutSetAttribute(layout.get(), name, &value, sizeof(value)), "a matrix's attribute");
}

// A matrix stored with `rows` elements side by side, as cuBLASLt counts rows.
absl::StatusOr<CublasLtLayout> DescribeMatrix(DType dtype, int64_t rows, int64_t columns, int64_t count,
                                              int64_t stride) {
  cublasLtMatrixLayout_t made = nullptr;
  LS_RETURN_IF_ERROR(Check(cublasLtMatrixLayoutCreate(&made, TypeOf(dtype), static_cast<uint64_t>(rows),
                                                      static_cast<uint64_t>(columns), rows),
                           "a matrix's description"));
  CublasLtLayout layout(made);
  if (count > 1) {
    LS_RETURN_IF_ERROR(Set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(count)));
    LS_RETURN_IF_ERROR(Set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride));
  }
  return layout;
}

cublasLtEpilogue_t EpilogueOf(const ProductProblem& problem) {
  const bool row = problem.addend == Addend::kRow;
  if (problem.relu) return row ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  return row ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

template <typename T>
bool Get(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t name, T& value) {
  size_t written = 0;
  return cublasLtMatmulAlgoConfigGetAttribute(&algorithm, name, &value, sizeof(value), &written) ==
             CUBLAS_STATUS_SUCCESS &&
         written == sizeof(value);
}

ProductCandidate CandidateOf(const cublasLtMatmulHeuristicResult_t& result) {
  static_assert(sizeof(result.algo) == sizeof(AlgorithmWords));
  ProductCandidate candidate;
  uint32_t scheme = 0;
  candidate.usable = result.state == CUBLAS_STATUS_SUCCESS &&
                     Get(result.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, scheme) &&
                     Get(result.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, candidate.splits);
  candidate.scheme = static_cast<SumScheme>(scheme);
  candidate.workspace_bytes = result.workspaceSize;
  std::memcpy(candidate.algorithm.data(), &result.algo, sizeof(result.algo));
  return candidate;
}

using Preference = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                                   CublasLtDestroy<&cublasLtMatmulPreferenceDestroy>>;

absl::StatusOr<Preference> PreferenceFor(const CublasLtContext& context, const ProductProblem& problem) {
  cublasLtMatmulPreference_t made = nullptr;
  LS_RETURN_IF_ERROR(Check(cublasLtMatmulPreferenceCreate(&made), "a preference"));
  Preference preference(made);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& value) {
    return Check(cublasLtMatmulPreferenceSetAttribute(made, name, &value, sizeof(value)), "a preference's attribute");
  };
  const ProductOffsets alignment = AlignmentOf(problem);
  LS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, context.workspace_limit));
  LS_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)));
  LS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(alignment.b)));
  LS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(alignment.a)));
  LS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(alignment.y)));
  LS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(alignment.y)));
  return preference;
}

// Asks the heuristics and chooses.
absl::StatusOr<std::vector<ProductChoice>> ChooseNew(const CublasLtContext& context, const ProductProblem& problem,
                                                     const CublasLtProblem& described, int most) {
  LS_ASSIGN_OR_RETURN(const Preference preference, PreferenceFor(context, problem));
  std::array<cublasLtMatmulHeuristicResult_t, kAsked> results = {};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      context.handle.get(), described.operation.get(), described.b.get(), described.a.get(), described.y.get(),
      described.y.get(), preference.get(), kAsked, results.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return MarkRefusal(absl::UnimplementedError(
        absl::StrCat("cuBLASLt offers nothing for this product: ", cublasLtGetStatusName(status))));
  }
  std::vector<ProductCandidate> candidates;
  for (int i = 0; i < count; ++i) candidates.push_back(CandidateOf(results[static_cast<size_t>(i)]));
  const absl::StatusOr<std::vector<size_t>> chosen = ChooseProducts(candidates, context.workspace_limit, most);
  if (!chosen.ok()) return MarkRefusal(chosen.status());
  std::vector<ProductChoice> choices;
  for (const size_t i : *chosen) {
    choices.push_back({.math = ProductMathName(problem.math),
                       .version = context.version,
                       .gpu = context.gpu,
                       .workspace_bytes = candidates[i].workspace_bytes,
                       .algorithm = candidates[i].algorithm});
  }
  return choices;
}

absl::Status Refuse(absl::string_view name, absl::string_view because) {
  return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '", name, "', ", because,
                                                 ". Use a machine like those that made the plan, or start a new run."));
}

// What a kernel plan's name spells, once it is known to be for this library, this GPU and this product.
absl::StatusOr<ProductChoice> ChoosePlanned(const CublasLtContext& context, const ProductProblem& problem,
                                            const CublasLtProblem& described, const std::string& name) {
  LS_ASSIGN_OR_RETURN(const ProductChoice choice, ParseProductChoice(name));
  if (choice.version != context.version) {
    return Refuse(name, absl::StrCat("which is for cuBLASLt ", choice.version, "; this is ", context.version));
  }
  if (choice.gpu != context.gpu) {
    return Refuse(name, absl::StrCat("which is for a GPU ", choice.gpu, "; this is ", context.gpu));
  }
  if (choice.math != ProductMathName(problem.math)) {
    return Refuse(name, absl::StrCat("which is for ", choice.math, "; the node is ", ProductMathName(problem.math)));
  }
  if (choice.workspace_bytes > context.workspace_limit) {
    return Refuse(name, absl::StrCat("which takes more scratch than ", context.workspace_limit, " bytes"));
  }
  cublasLtMatmulHeuristicResult_t result = {};
  std::memcpy(&result.algo, choice.algorithm.data(), sizeof(result.algo));
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(context.handle.get(), described.operation.get(), described.b.get(), described.a.get(),
                              described.y.get(), described.y.get(), &result.algo, &result);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return Refuse(name, absl::StrCat("which cuBLASLt refuses here: ", cublasLtGetStatusName(status)));
  }
  if (result.workspaceSize > choice.workspace_bytes) {
    return Refuse(name, absl::StrCat("which takes ", result.workspaceSize, " bytes of scratch here"));
  }
  const ProductCandidate candidate = CandidateOf(result);
  if (absl::Status order = CheckOrderOfSums(candidate.scheme, candidate.splits); !candidate.usable || !order.ok()) {
    return Refuse(name, candidate.usable ? order.message() : "whose bytes cuBLASLt cannot read");
  }
  return choice;
}

class CublasLtProduct final : public Kernel {
 public:
  CublasLtProduct(const CublasLtContext& context, ProductProblem problem, CublasLtProblem described,
                  const ProductChoice& choice)
      : handle_(context.handle.get()),
        problem_(std::move(problem)),
        described_(std::move(described)),
        alignment_(AlignmentOf(problem_)),
        implementation_(PrintProductChoice(choice)),
        workspace_bytes_(choice.workspace_bytes) {
    std::memcpy(&algorithm_, choice.algorithm.data(), sizeof(algorithm_));
  }

  const std::string& implementation() const override { return implementation_; }
  size_t workspace_bytes() const override { return workspace_bytes_; }
  Layout input_layout(int) const override { return Layout(); }
  Layout output_layout(int) const override { return Layout(); }
  bool CanShare(int input, int output) const override {
    return problem_.addend == Addend::kMatrix && input == 2 && output == 0;
  }

  absl::Status Bind(const KernelArguments& arguments) override {
    a_ = arguments.inputs[0];
    b_ = arguments.inputs[1];
    y_ = arguments.outputs[0];
    workspace_ = arguments.workspace;
    LS_RETURN_IF_ERROR(CheckAddress(a_, alignment_.a));
    LS_RETURN_IF_ERROR(CheckAddress(b_, alignment_.b));
    LS_RETURN_IF_ERROR(CheckAddress(y_, alignment_.y));
    c_ = y_;
    if (problem_.addend == Addend::kNone) return absl::OkStatus();
    LS_RETURN_IF_ERROR(CheckAddress(arguments.inputs[2], kArgumentAlignment));
    if (problem_.addend == Addend::kMatrix) {
      c_ = arguments.inputs[2];
      return absl::OkStatus();
    }
    return Set(described_.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(arguments.inputs[2]));
  }

  absl::Status Launch(Stream& stream) override {
    for (const ProductOffsets& at : problem_.launches) {
      std::byte* const y = y_ + at.y * DTypeSize(problem_.out);
      const cublasStatus_t status =
          cublasLtMatmul(handle_, described_.operation.get(), &problem_.alpha, b_ + at.b * DTypeSize(problem_.in),
                         described_.b.get(), a_ + at.a * DTypeSize(problem_.in), described_.a.get(), &problem_.beta,
                         problem_.addend == Addend::kMatrix ? c_ : y, described_.y.get(), y, described_.y.get(),
                         &algorithm_, workspace_, workspace_bytes_, HandleOf(stream));
      LS_RETURN_IF_ERROR(Check(status, implementation_));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status CheckAddress(const std::byte* address, int64_t alignment) {
    if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(alignment) == 0) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("a product is bound to an address that is no multiple of ", alignment));
  }

  const cublasLtHandle_t handle_;
  const ProductProblem problem_;
  const CublasLtProblem described_;
  const ProductOffsets alignment_;
  const std::string implementation_;
  const size_t workspace_bytes_;
  cublasLtMatmulAlgo_t algorithm_;
  const std::byte* a_ = nullptr;
  const std::byte* b_ = nullptr;
  const std::byte* c_ = nullptr;
  std::byte* y_ = nullptr;
  std::byte* workspace_ = nullptr;
};

}  // namespace

absl::StatusOr<CublasLtContext> OpenCublasLt(std::string gpu, bool tf32) {
  cublasLtHandle_t handle = nullptr;
  if (const cublasStatus_t status = cublasLtCreate(&handle); status != CUBLAS_STATUS_SUCCESS) {
    return absl::FailedPreconditionError(absl::StrCat("cuBLASLt does not start: ", cublasLtGetStatusName(status)));
  }
  CublasLtContext context;
  context.handle.reset(handle);
  context.version = cublasLtGetVersion();
  context.gpu = std::move(gpu);
  context.tf32 = tf32;
  return context;
}

absl::StatusOr<CublasLtProblem> DescribeForCublasLt(const ProductProblem& problem) {
  const MatrixShape& s = problem.matrix;
  CublasLtProblem described;
  cublasLtMatmulDesc_t operation = nullptr;
  LS_RETURN_IF_ERROR(
      Check(cublasLtMatmulDescCreate(&operation, ComputeTypeOf(problem.math), CUDA_R_32F), "an operation"));
  described.operation.reset(operation);
  const int32_t turn_b = s.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int32_t turn_a = s.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  LS_RETURN_IF_ERROR(Set(described.operation, CUBLASLT_MATMUL_DESC_TRANSA, turn_b));
  LS_RETURN_IF_ERROR(Set(described.operation, CUBLASLT_MATMUL_DESC_TRANSB, turn_a));
  LS_RETURN_IF_ERROR(
      Set(described.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(EpilogueOf(problem))));
  if (problem.addend == Addend::kRow) {
    // The heuristics leave out what a row that is added needs as long as there is no address; its alignment counts.
    const auto nowhere = static_cast<uintptr_t>(kArgumentAlignment);
    LS_RETURN_IF_ERROR(Set(described.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, nowhere));
  }
  LS_ASSIGN_OR_RETURN(described.b, DescribeMatrix(problem.in, s.trans_b ? s.k : s.n, s.trans_b ? s.n : s.k,
                                                  problem.count, problem.stride.b));
  LS_ASSIGN_OR_RETURN(described.a, DescribeMatrix(problem.in, s.trans_a ? s.m : s.k, s.trans_a ? s.k : s.m,
                                                  problem.count, problem.stride.a));
  LS_ASSIGN_OR_RETURN(described.y, DescribeMatrix(problem.out, s.n, s.m, problem.count, problem.stride.y));
  return described;
}

absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> MakeCublasLtProduct(const CublasLtContext& context,
                                                                         const KernelRequest& request, int most) {
  LS_ASSIGN_OR_RETURN(const ProductProblem problem, DescribeProduct(request, context.tf32));
  LS_ASSIGN_OR_RETURN(CublasLtProblem described, DescribeForCublasLt(problem));
  std::vector<ProductChoice> choices;
  if (request.implementation.empty()) {
    LS_ASSIGN_OR_RETURN(choices, ChooseNew(context, problem, described, most));
  } else {
    LS_ASSIGN_OR_RETURN(ProductChoice planned, ChoosePlanned(context, problem, described, request.implementation));
    choices.push_back(std::move(planned));
  }
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const ProductChoice& choice : choices) {
    // Each has a description of its own: addresses are bound to it.
    LS_ASSIGN_OR_RETURN(CublasLtProblem own, DescribeForCublasLt(problem));
    kernels.push_back(std::make_unique<CublasLtProduct>(context, problem, std::move(own), choice));
  }
  return kernels;
}

}  // namespace lockstep::device::cuda
