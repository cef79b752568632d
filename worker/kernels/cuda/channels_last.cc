#include "worker/kernels/cuda/channels_last.h"

#include <algorithm>
#include <utility>

#include "common/graph/ops/elementwise_ops.h"

namespace lockstep::device::cuda {
namespace {

// Dropout draws by an element's place in the row-major order.
bool IsByElement(OpType op) {
  return IsElementwise(op) && op != OpType::kDropoutTraining && op != OpType::kDropoutGrad;
}

// Ops whose own kernels know where channels lie.
bool KnowsChannels(OpType op) {
  switch (op) {
    case OpType::kBatchNormalization:
    case OpType::kBatchNormTraining:
    case OpType::kBatchNormGrad:
    case OpType::kBatchNormFrozenGrad:
    case OpType::kMaxPool:
    case OpType::kMaxPoolWithArgmax:
    case OpType::kMaxPoolGrad:
    case OpType::kAveragePool:
    case OpType::kAveragePoolGrad:
      return true;
    default:
      return false;
  }
}

// The operand of a node that computes `rank` dimensions element by element, which are numbered from the last one.
// False where its elements would lie in no order that has a name.
bool PutInOrder(size_t rank, Operand* operand, Layout* layout) {
  if (!operand->present) return true;
  Shape full = operand->shape;
  full.insert(full.begin(), rank - full.size(), 1);
  *layout = ChannelsLast(operand->dtype, full);
  if (!layout->row_major() && operand->shape.size() < rank) return false;
  operand->shape = WithChannelsLast(full);
  operand->layout = Layout();
  return true;
}

}  // namespace

Layout ChannelsLast(DType dtype, const Shape& shape) {
  const int64_t elements = NumElements(shape);
  if (shape.size() < 3 || elements == 0 || shape[1] == 1 || elements == shape[0] * shape[1]) return Layout();
  Layout layout;
  layout.name = layout.encoding = "channels-last";
  layout.bytes = static_cast<size_t>(NumElements(shape) * DTypeSize(dtype));
  return layout;
}

Shape WithChannelsLast(const Shape& shape) {
  Shape moved = shape;
  std::rotate(moved.begin() + 1, moved.begin() + 2, moved.end());
  return moved;
}

RowPlan PlanChannels(const Shape& shape, bool last) {
  return last ? PlanPerIndex(WithChannelsLast(shape), shape.size() - 1) : PlanPerIndex(shape, 1);
}

OwnRequest PlaceChannels(const KernelRequest& given) {
  OwnRequest row_major{.request = given,
                       .inputs = std::vector<Layout>(given.inputs.size()),
                       .outputs = std::vector<Layout>(given.outputs.size())};
  for (auto* operands : {&row_major.request.inputs, &row_major.request.outputs}) {
    for (Operand& operand : *operands) operand.layout = Layout();
  }
  const OpType op = given.node->op;
  const bool by_element = IsByElement(op);
  const bool lies_last = std::any_of(given.inputs.begin(), given.inputs.end(), IsChannelsLast);
  if (!given.free_layouts || !lies_last || (!by_element && !KnowsChannels(op))) return row_major;
  OwnRequest own = row_major;
  const size_t rank = given.outputs[0].shape.size();
  for (const auto& [operands, layouts] :
       {std::pair(&own.request.inputs, &own.inputs), std::pair(&own.request.outputs, &own.outputs)}) {
    for (size_t i = 0; i < operands->size(); ++i) {
      Operand& operand = (*operands)[i];
      Layout& layout = (*layouts)[i];
      if (by_element) {
        if (!PutInOrder(rank, &operand, &layout)) return row_major;
      } else if (operand.present) {
        operand.layout = layout = ChannelsLast(operand.dtype, operand.shape);
      }
    }
  }
  return own;
}

}  // namespace lockstep::device::cuda
