// Convolution, transposed convolution and the gradients by oneDNN, row-major or in oneDNN's own layouts.
#include <algorithm>

#include "absl/strings/match.h"
#include "common/status/status_macros.h"
#include "worker/kernels/convolution/dnnl_gradient_parts.h"
#include "worker/kernels/cpu/dnnl_kernel.h"

namespace lockstep::device::cpu {
namespace {

using Dims = dnnl::memory::dims;

constexpr auto kDirect = dnnl::algorithm::convolution_direct;
constexpr int64_t kWinogradChannels = 32;
// A gradient of weights that would take more scratch is computed in parts.
constexpr size_t kMostScratch = size_t{48} << 20;
constexpr int64_t kChannelBlock = 16;

// The descriptions that one convolution and its gradients share.
struct Problem {
  Problem(const ConvAttributes& attributes, const Shape& x_shape, const Shape& w_shape, const Shape& y_shape,
          bool free_layouts)
      : x_dims(x_shape.begin(), x_shape.end()),
        w_dims(w_shape.begin(), w_shape.end()),
        y_dims(y_shape.begin(), y_shape.end()),
        strides(attributes.strides.begin(), attributes.strides.end()),
        before(attributes.pads.begin(), attributes.pads.begin() + Rank(attributes)),
        after(attributes.pads.begin() + Rank(attributes), attributes.pads.end()) {
    for (const int64_t dilation : attributes.dilations) dilations.push_back(dilation - 1);
    if (attributes.group > 1) {
      w_dims[0] /= attributes.group;
      w_dims.insert(w_dims.begin(), attributes.group);
    }
    x = Describe(x_dims, free_layouts);
    w = Describe(w_dims, free_layouts);
    y = Describe(y_dims, free_layouts);
    bias = RowMajor({y_shape[1]});
  }

  static std::ptrdiff_t Rank(const ConvAttributes& attributes) {
    return static_cast<std::ptrdiff_t>(attributes.kernel_shape.size());
  }

  static dnnl::memory::desc Describe(const Dims& dims, bool free_layouts) {
    if (!free_layouts) return RowMajor(dims);
    return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
  }

  dnnl::convolution_forward::desc Forward(dnnl::algorithm algorithm, bool with_bias) const {
    const auto kind = dnnl::prop_kind::forward_training;
    if (with_bias) return {kind, algorithm, x, w, bias, y, strides, dilations, before, after};
    return {kind, algorithm, x, w, y, strides, dilations, before, after};
  }

  // What the gradients' descriptions are derived from.
  dnnl::convolution_forward::primitive_desc Hint(const dnnl::engine& engine, bool with_bias) const {
    return {Forward(kDirect, with_bias), Attributes(Epilogue::kNone), engine};
  }

  Dims x_dims, w_dims, y_dims, strides, dilations, before, after;
  dnnl::memory::desc x, w, y, bias;
};

template <typename PrimitiveDesc>
absl::StatusOr<std::unique_ptr<Kernel>> Finish(const DnnlContext& context, const PrimitiveDesc& desc,
                                               const dnnl::primitive& primitive, std::vector<DnnlSlot> slots) {
  return MakeDnnlKernel(context, primitive, ImplementationName(desc), desc.scratchpad_desc().get_size(),
                        desc.scratchpad_desc(), std::move(slots));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeForward(const DnnlContext& context, const KernelRequest& request,
                                                    dnnl::algorithm algorithm) {
  const auto& attributes = std::get<ConvAttributes>(request.node->attributes);
  const Problem p(attributes, request.inputs[0].shape, request.inputs[1].shape, request.outputs[0].shape,
                  request.free_layouts);
  const bool with_bias = request.inputs.size() > 2 && request.inputs[2].present;
  // SelectImplementation reads the operation's description again: it may not be a temporary.
  const auto op = p.Forward(algorithm, with_bias);
  dnnl::convolution_forward::primitive_desc desc(op, Attributes(request.epilogue), context.engine);
  if (absl::Status status = SelectImplementation(desc, request.implementation); !status.ok()) return status;
  std::vector<DnnlSlot> slots = {
      {DNNL_ARG_SRC, true, 0, desc.src_desc(), ToLayout(desc.src_desc(), p.x_dims)},
      {DNNL_ARG_WEIGHTS, true, 1, desc.weights_desc(), ToLayout(desc.weights_desc(), p.w_dims)},
      {DNNL_ARG_DST, false, 0, desc.dst_desc(), ToLayout(desc.dst_desc(), p.y_dims)}};
  if (with_bias) slots.push_back({DNNL_ARG_BIAS, true, 2, desc.bias_desc(), Layout()});
  return Finish(context, desc, dnnl::convolution_forward(desc), std::move(slots));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGradInput(const DnnlContext& context, const KernelRequest& request,
                                                      dnnl::algorithm algorithm) {
  const auto& attributes = std::get<ConvAttributes>(request.node->attributes);
  const Problem p(attributes, request.outputs[0].shape, request.inputs[1].shape, request.inputs[0].shape,
                  request.free_layouts);
  using Backward = dnnl::convolution_backward_data;
  const auto hint = p.Hint(context.engine, false);
  const Backward::desc op(algorithm, p.x, p.w, p.y, p.strides, p.dilations, p.before, p.after);
  Backward::primitive_desc desc(op, Attributes(Epilogue::kNone), context.engine, hint);
  if (absl::Status status = SelectImplementation(desc, request.implementation); !status.ok()) return status;
  return Finish(context, desc, Backward(desc),
                {{DNNL_ARG_DIFF_DST, true, 0, desc.diff_dst_desc(), ToLayout(desc.diff_dst_desc(), p.y_dims)},
                 {DNNL_ARG_WEIGHTS, true, 1, desc.weights_desc(), ToLayout(desc.weights_desc(), p.w_dims)},
                 {DNNL_ARG_DIFF_SRC, false, 0, desc.diff_src_desc(), ToLayout(desc.diff_src_desc(), p.x_dims)}});
}

// Describes the gradient of the weights of 1/parts of the output channels.
absl::StatusOr<GradWeightDesc> DescribeGradWeight(const DnnlContext& context, const KernelRequest& request,
                                                  dnnl::algorithm algorithm, int parts,
                                                  const std::string& implementation) {
  const auto& attributes = std::get<ConvAttributes>(request.node->attributes);
  Shape w = request.outputs[0].shape;
  Shape y = request.inputs[0].shape;
  w[0] /= parts;
  y[1] /= parts;
  const Problem p(attributes, request.inputs[1].shape, w, y, request.free_layouts);
  const bool with_bias = request.outputs.size() > 1 && request.outputs[1].present;
  const auto hint = p.Hint(context.engine, with_bias);
  using Backward = dnnl::convolution_backward_weights;
  const Backward::desc op =
      with_bias ? Backward::desc(algorithm, p.x, p.w, p.bias, p.y, p.strides, p.dilations, p.before, p.after)
                : Backward::desc(algorithm, p.x, p.w, p.y, p.strides, p.dilations, p.before, p.after);
  GradWeightDesc desc(op, Attributes(Epilogue::kNone), context.engine, hint);
  if (absl::Status status = SelectImplementation(desc, implementation); !status.ok()) return status;
  return desc;
}

// The fewest parts with which the scratch is within its limit; the most that are possible where it never is.
int PartsOf(const DnnlContext& context, const KernelRequest& request, const GradWeightDesc& whole) {
  if (!absl::StrContains(ImplementationName(whole), "wino")) return 1;
  const int64_t channels = request.outputs[0].shape[0];
  int parts = 1;
  for (size_t scratch = whole.scratchpad_desc().get_size();
       scratch > kMostScratch && channels % (2 * parts * kChannelBlock) == 0;) {
    const auto part = DescribeGradWeight(context, request, dnnl::algorithm::convolution_winograd, 2 * parts, "");
    if (!part.ok() || !absl::StrContains(ImplementationName(*part), "wino")) break;
    parts *= 2;
    scratch = ScratchInParts(*part);
  }
  return parts;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeGradWeight(const DnnlContext& context, const KernelRequest& request,
                                                       dnnl::algorithm algorithm) {
  LS_ASSIGN_OR_RETURN(const PartsName name, ParsePartsName(request.implementation));
  LS_ASSIGN_OR_RETURN(const GradWeightDesc desc,
                      DescribeGradWeight(context, request, algorithm, 1, name.implementation));
  const bool with_bias = request.outputs.size() > 1 && request.outputs[1].present;
  const bool planned = !request.implementation.empty();
  if (const int parts = planned ? name.parts : PartsOf(context, request, desc); parts > 1) {
    const absl::StatusOr<GradWeightDesc> part =
        DescribeGradWeight(context, request, algorithm, parts, name.implementation);
    if (!part.ok()) return part.status();
    auto kernel = MakeGradWeightInParts(context, desc, *part, parts, with_bias);
    if (kernel.ok() || planned) return kernel;
  }
  std::vector<DnnlSlot> slots = {
      {DNNL_ARG_DIFF_DST, true, 0, desc.diff_dst_desc(), ToLayout(desc.diff_dst_desc(), desc.diff_dst_desc().dims())},
      {DNNL_ARG_SRC, true, 1, desc.src_desc(), ToLayout(desc.src_desc(), desc.src_desc().dims())},
      {DNNL_ARG_DIFF_WEIGHTS, false, 0, desc.diff_weights_desc(),
       ToLayout(desc.diff_weights_desc(), desc.diff_weights_desc().dims())}};
  if (with_bias) slots.push_back({DNNL_ARG_DIFF_BIAS, false, 1, desc.diff_bias_desc(), Layout()});
  return Finish(context, desc, dnnl::convolution_backward_weights(desc), std::move(slots));
}

// oneDNN's deconvolution counts weights as [group, out, in, kernel...]; a node has [in, out, kernel...].
dnnl::memory::desc TransposedWeights(const Problem& p, int64_t group) {
  Dims dims(p.w_dims.end() - static_cast<std::ptrdiff_t>(p.strides.size()) - 2, p.w_dims.end());
  const dnnl::memory::dim in = dims[0], out = dims[1];
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d > 2; --d) strides[d - 1] = strides[d] * dims[d];
  const dnnl::memory::dim volume = strides[2] * dims[2];
  strides[0] = volume;
  strides[1] = out * volume;
  std::swap(dims[0], dims[1]);
  if (group > 1) {
    dims.insert(dims.begin(), group);
    strides.insert(strides.begin(), in * out * volume);
  }
  return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, strides);
}

// Row-major throughout: the shapes in which oneDNN's own layouts pay are those of the convolutions around it.
absl::StatusOr<std::unique_ptr<Kernel>> MakeTransposed(const DnnlContext& context, const KernelRequest& request) {
  const auto& attributes = std::get<ConvAttributes>(request.node->attributes);
  const Problem p(attributes, request.inputs[0].shape, request.inputs[1].shape, request.outputs[0].shape, false);
  const bool with_bias = request.inputs.size() > 2 && request.inputs[2].present;
  const dnnl::memory::desc w = TransposedWeights(p, attributes.group);
  using Forward = dnnl::deconvolution_forward;
  const auto kind = dnnl::prop_kind::forward_training;
  const auto direct = dnnl::algorithm::deconvolution_direct;
  const Forward::desc op =
      with_bias ? Forward::desc(kind, direct, p.x, w, p.bias, p.y, p.strides, p.dilations, p.before, p.after)
                : Forward::desc(kind, direct, p.x, w, p.y, p.strides, p.dilations, p.before, p.after);
  Forward::primitive_desc desc(op, Attributes(request.epilogue), context.engine);
  if (absl::Status status = SelectImplementation(desc, request.implementation); !status.ok()) return status;
  std::vector<DnnlSlot> slots = {{DNNL_ARG_SRC, true, 0, desc.src_desc(), Layout()},
                                 {DNNL_ARG_WEIGHTS, true, 1, desc.weights_desc(), Layout()},
                                 {DNNL_ARG_DST, false, 0, desc.dst_desc(), Layout()}};
  if (with_bias) slots.push_back({DNNL_ARG_BIAS, true, 2, desc.bias_desc(), Layout()});
  return Finish(context, desc, Forward(desc), std::move(slots));
}

// Whether a convolution runs faster by Winograd's method in its three passes, as measured on AVX-512 machines (oneDNN
// has it for those alone): where the channels pay for transforming tiles. Its results differ from direct ones by some
// 1e-6 of their root mean square.
bool PrefersWinograd(const KernelRequest& request) {
  if (request.node->op == OpType::kConvTranspose || !request.free_layouts) return false;
  const auto& attributes = std::get<ConvAttributes>(request.node->attributes);
  const auto all = [](const std::vector<int64_t>& values, int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [wanted](int64_t value) { return value == wanted; });
  };
  // With other padding oneDNN 2.6.3 offers it too, and its gradients are wrong.
  if (attributes.kernel_shape != std::vector<int64_t>{3, 3} || !all(attributes.strides, 1) ||
      !all(attributes.dilations, 1) || !all(attributes.pads, 1) || attributes.group != 1) {
    return false;
  }
  const bool grad_weight = request.node->op == OpType::kConvGradWeight;
  const Shape& weights = grad_weight ? request.outputs[0].shape : request.inputs[1].shape;
  return weights[0] >= kWinogradChannels && weights[1] >= kWinogradChannels;
}

// The algorithms to try, in order. A kernel plan's choice names its own.
std::vector<dnnl::algorithm> Algorithms(const KernelRequest& request) {
  const bool planned = !request.implementation.empty();
  const bool winograd = planned ? absl::StrContains(request.implementation, "wino") : PrefersWinograd(request);
  if (!winograd) return {kDirect};
  if (planned) return {dnnl::algorithm::convolution_winograd};
  return {dnnl::algorithm::convolution_winograd, kDirect};
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBy(dnnl::algorithm algorithm, const DnnlContext& context,
                                               const KernelRequest& request) {
  return CatchDnnl([&] {
    switch (request.node->op) {
      case OpType::kConv:
        return MakeForward(context, request, algorithm);
      case OpType::kConvTranspose:
        return MakeTransposed(context, request);
      case OpType::kConvGradInput:
        return MakeGradInput(context, request, algorithm);
      default:
        return MakeGradWeight(context, request, algorithm);
    }
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnlConvolution(const DnnlContext& context, const KernelRequest& request) {
  absl::Status reason;
  for (const dnnl::algorithm algorithm : Algorithms(request)) {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = MakeBy(algorithm, context, request);
    if (kernel.ok()) return kernel;
    reason = kernel.status();
  }
  return reason;
}

}  // namespace lockstep::device::cpu
