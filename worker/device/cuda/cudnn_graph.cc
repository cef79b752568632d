#include "worker/device/cuda/cudnn_graph.h"

// Serialising is not used, and its JSON library is slow to compile.
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <cstdlib>
#include <exception>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/engine_choice.h"

namespace lockstep::device::cuda {

namespace fe = ::cudnn_frontend;

struct Cudnn::State {
  ~State() {
    if (handle != nullptr) cudnnDestroy(handle);
  }

  cudnnHandle_t handle = nullptr;
  uint64_t version = 0;
  // Null: that of the handle.
  std::shared_ptr<const fe::DeviceProperties> described_gpu;
  int capability = 0;
};

namespace {

using TensorPtr = std::shared_ptr<fe::graph::Tensor_attributes>;

// What graphs call their values.
enum Value : int64_t { kX = 1, kW, kY, kBias };

// The first line of what went wrong; the frontend adds one for every engine that it tried.
std::string Reason(fe::error_t error) {
  const std::string message = error.get_message();
  return message.substr(0, message.find('\n'));
}

absl::Status Check(const fe::error_t& error, absl::string_view what) {
  if (error.is_good()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("cuDNN: ", what, ": ", Reason(error)));
}

absl::Status Check(cudnnStatus_t status, absl::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cuDNN: ", what, ": ", cudnnGetErrorString(status)));
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

// Engines whose results depend on more than operands, or that round more than the factors' type says.
std::vector<fe::NumericalNote_t> Barred(ProductMath math) {
  using Note = fe::NumericalNote_t;
  std::vector<Note> notes = {Note::NONDETERMINISTIC,   Note::REDUCED_PRECISION_REDUCTION, Note::FFT,
                             Note::WINOGRAD,           Note::WINOGRAD_TILE_4x4,           Note::WINOGRAD_TILE_6x6,
                             Note::WINOGRAD_TILE_13x13};
  // Tensor cores take float32 as tf32.
  if (math == ProductMath::kF32) notes.insert(notes.end(), {Note::TENSOR_CORE, Note::DOWN_CONVERT_INPUTS});
  return notes;
}

// The graph of one convolution, from its values to an engine.
class Builder {
 public:
  Builder(const Cudnn& cudnn, const ConvolutionProblem& problem)
      : cudnn_(cudnn), problem_(problem), graph_(std::make_shared<fe::graph::Graph>()) {
    here_.math = ProductMathName(problem.math);
    here_.version = cudnn.state().version;
    here_.gpu = cudnn.options().gpu;
  }

  absl::Status Describe() {
    const auto type = problem_.dtype == DType::kBF16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::FLOAT;
    graph_->set_io_data_type(type)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    // Whoever keeps a recorded graph keeps the kernels in it.
    graph_->set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);
    Finish(Convolve(), type);
    LS_RETURN_IF_ERROR(Check(graph_->validate(), "the graph"));
    const Cudnn::State& state = cudnn_.state();
    if (state.described_gpu == nullptr) {
      return Check(graph_->build_operation_graph(state.handle), "the graph of operations");
    }
    graph_->set_device_properties(state.described_gpu).set_sm_version(state.capability);
    return Check(graph_->build_operation_graph(), "the graph of operations");
  }

  // The first engine of the heuristics' order that serves. Trying them out, when a kernel plan is made, would be here.
  absl::Status ChooseNew() {
    LS_RETURN_IF_ERROR(AskHeuristics());
    const int64_t count = graph_->get_execution_plan_count();
    for (index_ = 0; index_ < count; ++index_) {
      if (graph_->build_plan_at_index(index_).is_good()) {
        return Check(graph_->get_plan_name_at_index(index_, here_.engine), "an engine's name");
      }
    }
    return absl::UnimplementedError(absl::StrCat("cuDNN offers ", count, " engines, none that is deterministic in ",
                                                 here_.math, " within ", cudnn_.options().workspace_limit,
                                                 " bytes of scratch"));
  }

  absl::Status ChoosePlanned(const std::string& name) {
    LS_ASSIGN_OR_RETURN(const EngineChoice choice, ParseEngineChoice(name));
    LS_RETURN_IF_ERROR(CheckEngineChoice(choice, here_));
    LS_RETURN_IF_ERROR(AskHeuristics());
    here_ = choice;
    std::string reason = "they do not offer it";
    const int64_t count = graph_->get_execution_plan_count();
    for (index_ = 0; index_ < count; ++index_) {
      std::string engine;
      if (graph_->get_plan_name_at_index(index_, engine).is_bad() || engine != choice.engine) continue;
      const fe::error_t error = graph_->build_plan_at_index(index_);
      if (error.is_good()) return absl::OkStatus();
      reason = Reason(error);
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "the kernel plan asks for implementation '", name, "', which cuDNN's heuristics refuse here: ", reason,
        ". Use a machine like those that made the plan, or start a new run."));
  }

  std::string name() const { return PrintEngineChoice(here_); }
  int64_t workspace_bytes() const { return graph_->get_workspace_size_plan_at_index(index_); }
  std::shared_ptr<fe::graph::Graph> graph() const { return graph_; }

 private:
  TensorPtr Tensor(Value value, const Shape& shape) {
    return graph_->tensor(
        fe::graph::Tensor_attributes().set_uid(value).set_dim(shape).set_stride(RowMajorStrides(shape)));
  }

  template <typename Attributes>
  Attributes Window() const {
    return Attributes().set_padding(problem_.pads).set_stride(problem_.strides).set_dilation(problem_.dilations);
  }

  TensorPtr Convolve() {
    switch (problem_.pass) {
      case ConvolutionPass::kX:
        return graph_->conv_dgrad(Tensor(kY, problem_.y), Tensor(kW, problem_.w),
                                  Window<fe::graph::Conv_dgrad_attributes>());
      case ConvolutionPass::kW:
        return graph_->conv_wgrad(Tensor(kY, problem_.y), Tensor(kX, problem_.x),
                                  Window<fe::graph::Conv_wgrad_attributes>());
      case ConvolutionPass::kY:
        break;
    }
    return graph_->conv_fprop(Tensor(kX, problem_.x), Tensor(kW, problem_.w),
                              Window<fe::graph::Conv_fprop_attributes>());
  }

  TensorPtr Pointwise(TensorPtr value, const TensorPtr& other, fe::PointwiseMode_t mode) {
    value->set_dim(problem_.y).set_stride(RowMajorStrides(problem_.y));
    const auto attributes = fe::graph::Pointwise_attributes().set_mode(mode);
    return other == nullptr ? graph_->pointwise(value, attributes) : graph_->pointwise(value, other, attributes);
  }

  void Finish(TensorPtr result, fe::DataType_t type) {
    if (problem_.bias) {
      Shape channels(problem_.y.size(), 1);
      channels[1] = problem_.y[1];
      result = Pointwise(result, Tensor(kBias, channels), fe::PointwiseMode_t::ADD);
    }
    if (problem_.relu) result = Pointwise(result, nullptr, fe::PointwiseMode_t::RELU_FWD);
    const Shape& shape = problem_.pass == ConvolutionPass::kX   ? problem_.x
                         : problem_.pass == ConvolutionPass::kW ? problem_.w
                                                                : problem_.y;
    const Value value = problem_.pass == ConvolutionPass::kX ? kX : problem_.pass == ConvolutionPass::kW ? kW : kY;
    result->set_output(true).set_uid(value).set_data_type(type).set_dim(shape).set_stride(RowMajorStrides(shape));
  }

  absl::Status AskHeuristics() {
    LS_RETURN_IF_ERROR(
        Check(graph_->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}), "the heuristics"));
    graph_->deselect_numeric_notes(Barred(problem_.math));
    graph_->deselect_workspace_greater_than(cudnn_.options().workspace_limit);
    return absl::OkStatus();
  }

  const Cudnn& cudnn_;
  const ConvolutionProblem& problem_;
  const std::shared_ptr<fe::graph::Graph> graph_;
  EngineChoice here_;
  int64_t index_ = 0;
};

class Plan final : public CudnnPlan {
 public:
  Plan(const Cudnn& cudnn, const ConvolutionProblem& problem, const Builder& builder)
      : handle_(cudnn.state().handle),
        has_bias_(problem.bias),
        graph_(builder.graph()),
        name_(builder.name()),
        workspace_bytes_(static_cast<size_t>(builder.workspace_bytes())) {}

  const std::string& name() const override { return name_; }
  size_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Execute(const ConvolutionAddresses& addresses, std::byte* workspace, StreamHandle stream) override {
    std::unordered_map<int64_t, void*> pack = {{kX, addresses.x}, {kW, addresses.w}, {kY, addresses.y}};
    if (has_bias_) pack.emplace(kBias, addresses.bias);
    LS_RETURN_IF_ERROR(Check(cudnnSetStream(handle_, stream), "a stream"));
    try {
      const fe::error_t error = graph_->execute(handle_, pack, workspace);
      if (error.is_good()) return absl::OkStatus();
      return absl::InternalError(absl::StrCat("cuDNN failed in ", name_, ": ", Reason(error)));
    } catch (const std::exception& exception) {
      return absl::InternalError(absl::StrCat("cuDNN failed in ", name_, ": ", exception.what()));
    }
  }

 private:
  const cudnnHandle_t handle_;
  const bool has_bias_;
  const std::shared_ptr<fe::graph::Graph> graph_;
  const std::string name_;
  const size_t workspace_bytes_;
};

// "sm_90x132" to 90.
int CapabilityOf(const std::string& gpu) { return gpu.size() > 3 ? std::atoi(gpu.c_str() + 3) : 0; }

}  // namespace

Cudnn::Cudnn(CudnnOptions options, std::unique_ptr<State> state)
    : options_(std::move(options)), state_(std::move(state)) {}

Cudnn::~Cudnn() = default;

std::string Cudnn::name() const {
  const uint64_t version = state_->version;
  return absl::StrCat("cuDNN ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

absl::StatusOr<std::unique_ptr<Cudnn>> Cudnn::Open(CudnnOptions options) {
  auto state = std::make_unique<State>();
  if (const cudnnStatus_t status = cudnnCreate(&state->handle); status != CUDNN_STATUS_SUCCESS) {
    state->handle = nullptr;
    return absl::FailedPreconditionError(absl::StrCat("cuDNN does not start: ", cudnnGetErrorString(status)));
  }
  state->version = cudnnGetVersion();
  state->capability = CapabilityOf(options.gpu);
  if (!options.described_gpu.empty()) {
    auto properties = std::make_shared<fe::DeviceProperties>();
    const std::vector<uint8_t> json(options.described_gpu.begin(), options.described_gpu.end());
    if (const fe::error_t error = properties->deserialize(json); error.is_bad()) {
      return absl::InvalidArgumentError(absl::StrCat("cuDNN cannot read the GPU's description: ", Reason(error)));
    }
    state->described_gpu = std::move(properties);
  }
  return std::make_unique<Cudnn>(std::move(options), std::move(state));
}

absl::StatusOr<std::unique_ptr<CudnnPlan>> PlanConvolution(const Cudnn& cudnn, const ConvolutionProblem& problem,
                                                           const std::string& name) {
  try {
    Builder builder(cudnn, problem);
    LS_RETURN_IF_ERROR(builder.Describe());
    if (name.empty()) {
      LS_RETURN_IF_ERROR(builder.ChooseNew());
    } else {
      LS_RETURN_IF_ERROR(builder.ChoosePlanned(name));
    }
    return std::make_unique<Plan>(cudnn, problem, builder);
  } catch (const std::exception& exception) {
    return absl::InternalError(absl::StrCat("cuDNN's frontend: ", exception.what()));
  }
}

}  // namespace lockstep::device::cuda
